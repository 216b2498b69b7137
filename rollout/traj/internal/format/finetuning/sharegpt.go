package finetuning

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// replies are digests of replies with their contexts, from records that repeat the
// conversation so far.
type replies map[[16]byte]struct{}

// episode names the run of such a record, and marks replies that an earlier record of the
// run has in the same context: each was sampled once.
func episode(in *format.File, r *rollout.Rollout, v format.Value) {
	run := format.FirstID(v, "run_id", "trial_name")
	if run == "" || v.Get("episode").Kind() != jsonscan.String {
		return
	}
	r.ID = run + "/" + v.Get("episode").String()
	if r.Instance == "" {
		r.Instance = format.Identifier(v.Get("task"))
	}
	seen := *format.Remembered[replies](in.OfReader)
	if seen == nil {
		seen = replies{}
		*format.Remembered[replies](in.OfReader) = seen
	}
	so := sha256.Sum256([]byte(run))
	for i := range r.Messages {
		next := format.Digest(r.Messages[i : i+1])
		so = sha256.Sum256(append(so[:], next[:]...))
		if r.Messages[i].Sampled != rollout.SampledByPolicy {
			continue
		}
		key := [16]byte(so[:16])
		if _, known := seen[key]; known {
			r.Messages[i].Sampled = rollout.SampledCopied
		}
		seen[key] = struct{}{}
	}
}

// ShareGPT reads conversations.
func ShareGPT() format.Importer {
	return format.Importer{Name: "sharegpt", Match: isShareGPT, Read: readShareGPT}
}

func isShareGPT(v format.Value, _ *format.File) bool {
	list, key := shareList(v)
	if key == "conversations" {
		return list.Kind() == jsonscan.Array || list.Kind() == jsonscan.String
	}
	first := list.First()
	return first.Get("from").Kind() == jsonscan.String
}

// shareList returns the conversation of a record and its key; LMSYS uses the singular.
func shareList(v format.Value) (list format.Value, key string) {
	if list = v.Get("conversations"); list.Kind() != jsonscan.Absent {
		return list, "conversations"
	}
	return v.Get("conversation"), "conversation"
}

// scriptedBytes is the maximum length of an opening reply that may be a canned "OK".
const scriptedBytes = 80

func readShareGPT(in *format.File, v format.Value) error {
	list, key := shareList(v)
	if key == "conversation" && list.IsNull() {
		key = "conversations"
	}
	list = in.Inner(list, "/"+key)
	in.WantList(list, "/"+key)
	r := &rollout.Rollout{
		ID:       format.FirstID(v, "id", "uuid"),
		Instance: format.Identifier(v.Get("instance_id")),
		Index:    format.NoIndex,
		Outcome:  in.Outcome(v),
		Tools:    shareTools(in, v.Get("tools")),
	}
	for _, x := range list.Items() {
		m, err := shareMessage(in, x, len(r.Messages))
		if err != nil {
			return err
		}
		r.Messages = format.AppendMessage(r.Messages, m, format.FirstID(x, "from", "role"))
	}
	if _, err := systemPrompt(in, r, v); err != nil {
		return err
	}
	media(in, r, v)
	in.TemplateKwargs(r, v)
	for _, settings := range []format.Value{v, v.Get("sampling_params")} {
		if t := format.Temperature(settings.Get("temperature")); r.Temperature == nil && t != nil && *t >= 0 {
			r.Temperature = t
		}
	}
	r.Outcome.Submission = format.Text(v.Get("patch"))
	if word, ok := v.Get("exit_status").Text(); ok {
		r.ExitStatus, r.Status = word, format.StatusOf(word)
	}
	episode(in, r, v)
	r.Turns = format.TurnsOf(r.Messages)
	cannedReply(in, r)
	opinion(in, r, v)
	in.EmptyReplies(r)
	in.Leftover(r, v, append(slices.Concat(systemKeys, opinionKeys), "id", "instance_id", key, "reward", "resolved", "tools", "chat_template_kwargs", "template_kwargs", "patch", "exit_status")...)
	return in.Emit(r)
}

func shareTools(in *format.File, v format.Value) []rollout.Tool {
	inner, err := in.ParseInner(v, "/tools")
	if err != nil {
		if s := v.String(); s != "" {
			in.Note("tools_unreadable", 0, "%s", err)
		}
		return nil
	}
	return format.FunctionTools(inner)
}

func shareMessage(in *format.File, x format.Value, i int) (rollout.Message, error) {
	word := format.FirstID(x, "from", "role")
	if x.Kind() == jsonscan.Object && word == "" {
		return rollout.Message{}, in.Fail(rollout.At(i), "/from", "the message says neither from nor role")
	}
	role, err := in.Speaker(word, i, "/from")
	if err != nil && x.Kind() == jsonscan.Object {
		return rollout.Message{}, err
	}
	body := bodyOf(x, "value", "content", "text")
	read := in.Message
	if slices.Contains(format.CallRoles, word) {
		read = in.CallMessage
	}
	m, err := read(x, i, role, body)
	if err != nil {
		return m, err
	}
	format.Drop(&m.Extra, "from", "value", "text", "loss", "weight", "train")
	if m.Role == rollout.RoleAssistant {
		m.Sampled = rollout.SampledByPolicy
		// The published AgentTuning sets mark replies that must not be trained.
		train := x.Get("loss")
		if b, ok := train.Bool(); ok && !b {
			m.Sampled = rollout.SampledScripted
		} else if n, ok := train.Float(); ok && n == 0 {
			m.Sampled = rollout.SampledScripted
		}
		applyTrainFlag(in, &m, x, i)
	}
	return m, nil
}

// cannedReply notes a short opening "OK" that a script wrote in some sets. The mark that
// would prove it is lost, so it counts as sampled.
func cannedReply(in *format.File, r *rollout.Rollout) {
	if len(r.Turns) < 2 {
		return
	}
	i := r.Turns[0].Message
	m := &r.Messages[i]
	start := strings.ToLower(strings.TrimSpace(m.Content))
	if i <= 1 && len(m.Content) <= scriptedBytes && (strings.HasPrefix(start, "ok") || strings.HasPrefix(start, "i've understood")) {
		in.Note("perhaps_scripted", rollout.At(i), "the first reply looks like a canned one; the set does not mark it, so it counts as sampled")
	}
}
