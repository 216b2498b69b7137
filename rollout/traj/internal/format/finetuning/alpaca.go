package finetuning

import (
	"slices"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Alpaca reads instructions with written answers, as in LLaMA-Factory and ms-swift.
func Alpaca() format.Importer {
	return format.Importer{Name: "alpaca", Match: isAlpaca, Read: readAlpaca, Stateless: true}
}

// answered lists the columns of questions and their answers.
var answered = [][2]string{{"instruction", "output"}, {"instruction", "response"}, {"query", "response"}}

func isAlpaca(v format.Value, _ *format.File) bool {
	if !v.Get("messages").IsNull() || !v.Get("conversations").IsNull() || !v.Get("trajectory").IsNull() {
		return false
	}
	_, ok := answerOf(v)
	return (ok || conversed(v)) && pairsOnly(v.Get("history"))
}

// conversed reports whether a record's output answers a conversation in its input, as in
// Nemotron's sets from before they had messages.
func conversed(v format.Value) bool {
	if v.Get("output").Kind() != jsonscan.String || v.Get("input").Kind() != jsonscan.Array || v.Get("instruction").Kind() == jsonscan.String {
		return false
	}
	for _, m := range v.Get("input").Items() {
		if m.Get("role").Kind() != jsonscan.String || m.Get("content").Kind() == jsonscan.Absent {
			return false
		}
	}
	return v.Get("input").Len() > 0
}

func answerOf(v format.Value) (pair [2]string, ok bool) {
	for _, p := range answered {
		if v.Get(p[0]).Kind() == jsonscan.String && v.Get(p[1]).Kind() == jsonscan.String {
			return p, true
		}
	}
	return pair, false
}

// pairsOnly reports whether v is a history of questions with answers.
func pairsOnly(v format.Value) bool {
	for _, x := range v.Items() {
		if x.Kind() != jsonscan.Array || x.Len() != 2 {
			return false
		}
	}
	return v.IsNull() || v.Kind() == jsonscan.Array
}

// readAlpaca reads a record. Its replies are demonstrations: nothing says that the policy
// sampled them.
func readAlpaca(in *format.File, v format.Value) error {
	pair, ok := answerOf(v)
	if conversed(v) {
		pair, ok = [2]string{"input", "output"}, true
	}
	if !ok {
		return in.Want(v.Get("output"), 0, "/output", "the text of an answer beside an instruction")
	}
	r := &rollout.Rollout{ID: format.FirstID(v, "id", "uuid"), Instance: format.FirstID(v, "instance_id", "task_id"), Index: format.NoIndex, Outcome: rollout.Outcome{Reward: in.Reward(v.Get("reward"))}}
	say := func(role rollout.Role, x format.Value, field string) {
		i := len(r.Messages)
		m := rollout.Message{Role: role, Content: in.Text(x, rollout.At(i), "/"+field)}
		if role == rollout.RoleAssistant {
			m.Sampled = rollout.SampledDemonstration
		}
		r.Messages = append(r.Messages, m)
	}
	for _, x := range v.Get("history").Items() {
		for k, y := range x.Items() {
			if y.Kind() != jsonscan.String {
				return in.Want(y, rollout.At(len(r.Messages)), "/history", "a text")
			}
			say([]rollout.Role{rollout.RoleUser, rollout.RoleAssistant}[k], y, "history")
		}
	}
	more := v.Get("input")
	switch {
	case pair[0] == "input":
		given, _, err := chatOrBlocks(in, more, "/input", format.HoldsBlocks(more))
		if err != nil {
			return err
		}
		format.MarkReplies(given, rollout.SampledDemonstration)
		r.Messages = append(r.Messages, given...)
	case more.IsNull() || more.Kind() == jsonscan.String:
		say(rollout.RoleUser, v.Get(pair[0]), pair[0])
		if !more.IsNull() && !more.Is("") {
			m := &r.Messages[len(r.Messages)-1]
			m.Content += "\n" + in.Text(more, rollout.At(len(r.Messages)-1), "/input")
		}
	default:
		return in.Want(more, 0, "/input", "a text")
	}
	say(rollout.RoleAssistant, v.Get(pair[1]), pair[1])
	if _, err := systemPrompt(in, r, v); err != nil {
		return err
	}
	in.TemplateKwargs(r, v)
	r.Outcome.Resolved = in.Resolved(v.Get("resolved"))
	media(in, r, v)
	in.Note("demonstrations", 0, "the answers of an instruction set were written by somebody, not sampled by the policy: they are not trained unless they are marked as sampled")
	in.Leftover(r, v, append(slices.Clone(systemKeys), "id", pair[0], pair[1], "input", "history", "reward", "resolved", "chat_template_kwargs", "template_kwargs")...)
	return in.Emit(r)
}
