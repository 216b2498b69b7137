package finetuning

import (
	"cmp"
	"slices"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

func chatList(v format.Value) (list format.Value, key string) {
	for _, key := range []string{"trajectory", "conversation"} {
		if m := v.Get(key); m.Kind() != jsonscan.Absent && v.Get("messages").Kind() == jsonscan.Absent {
			return m, key
		}
	}
	return v.Get("messages"), "messages"
}

// Chat reads lists of messages.
func Chat() format.Importer {
	return format.Importer{Name: "openai-chat", Match: isChat, Read: readChat, Stateless: true}
}

func isChat(v format.Value, _ *format.File) bool {
	m, key := chatList(v)
	if key != "messages" && m.Len() == 0 {
		return false
	}
	if m.Kind() == jsonscan.String {
		return true
	}
	if m.Kind() != jsonscan.Array {
		return false
	}
	first := m.First()
	return m.Len() == 0 || first.Get("role").Kind() == jsonscan.String || key == "messages" && (first.Get("content").Kind() != jsonscan.Absent || first.Get("from").Kind() == jsonscan.String)
}

// readChat reads messages, tools, ids and outcome under all names in use.
func readChat(in *format.File, v format.Value) error {
	list, key := chatList(v)
	list = in.Inner(list, "/"+key)
	blocks := format.HoldsBlocks(list)
	messages, at, err := chatOrBlocks(in, list, "/"+key, blocks)
	if err != nil {
		return err
	}
	format.MarkReplies(messages, rollout.SampledByPolicy)
	for i, x := range list.Items() {
		applyTrainFlag(in, &messages[at[i]], x, at[i])
	}
	r := &rollout.Rollout{
		ID:       format.FirstID(v, "traj_id", "trajectory_id", "rollout_id", "id", "uuid"),
		Instance: format.FirstID(v, "instance_id", "task_id"),
		Index:    format.NoIndex,
		Messages: messages,
		Outcome:  rollout.Outcome{Reward: in.Reward(v.Get("reward"))},
	}
	if added, err := systemPrompt(in, r, v); err != nil {
		return err
	} else if added {
		for i := range at {
			at[i]++
		}
	}
	media(in, r, v)
	if r.Turns = format.TurnsOf(r.Messages); len(r.Turns) == 0 {
		for _, key := range replyKeys {
			if x := v.Get(key); x.Kind() == jsonscan.String && !x.Is("") || x.Len() > 0 {
				return in.Fail(0, "/"+key, "the messages hold no reply, and the key %q beside them is not understood", key)
			}
		}
	}
	if r.ID == "" {
		if r.ID = r.Instance; !v.Get("run_id").IsNull() {
			r.ID += "/" + format.Identifier(v.Get("run_id"))
		}
	}
	captureMessages(in, r, list, at)
	chatOutcome(in, r, v)
	chatSettings(in, r, v, blocks)
	in.Leftover(r, v, append(slices.Concat(systemKeys, opinionKeys, toolKeys), key, "model_patch", "traj_id", "id", "instance_id", "reward", "resolved", "patch", "exit_status", "chat_template_kwargs", "template_kwargs")...)
	for _, key := range []string{"engine", "model"} { // they name the model that the prompts were for
		x := v.Path("metadata", key)
		if _, there := r.Metadata[key]; !there && x.Kind() == jsonscan.String {
			format.Keep(&r.Metadata, key, x)
		}
	}
	in.NoteParts(r)
	in.EmptyReplies(r)
	return in.Emit(r)
}

// chatOutcome reads the outcome and status under all names in use.
func chatOutcome(in *format.File, r *rollout.Rollout, v format.Value) {
	for _, key := range []string{"resolved", "verified"} {
		if b := in.Resolved(v.Get(key)); r.Outcome.Resolved == nil {
			r.Outcome.Resolved = b
		}
	}
	opinion(in, r, v)
	for _, patch := range []format.Value{v.Get("patch"), v.Path("test_result", "git_patch"), v.Get("model_patch")} {
		if r.Outcome.Submission == nil {
			r.Outcome.Submission = format.Text(patch)
		}
	}
	if word, ok := v.Get("exit_status").Text(); ok {
		r.ExitStatus, r.Status = word, format.StatusOf(word)
	}
	chatError(r, v.Get("error"))
	maybeOutcome(in, r, v)
	for _, key := range []string{"finish_reason", "stop_reason"} {
		// Other values of these keys come from a harness and describe the run.
		if why := v.Get(key).String(); slices.Contains(format.ReplyEnds, why) {
			if format.EndLast(r, why); r.Status == rollout.StatusUnknown {
				r.Status = format.StatusOf(why)
			}
		}
	}
}

// maybeOutcome notes a key that may be an outcome, if no outcome was read: only the
// recorder knows what its value means.
func maybeOutcome(in *format.File, r *rollout.Rollout, v format.Value) {
	if r.Outcome.Resolved != nil || r.Outcome.Reward != nil {
		return
	}
	for _, key := range []string{"score", "success", "is_success", "passed", "correct", "is_correct", "solved", "is_resolved", "utility"} {
		if k := v.Get(key).Kind(); k == jsonscan.Bool || k == jsonscan.Number {
			in.Note("outcome_unread", 0, "the key %q may be the outcome, and no outcome was taken: name it reward or resolved, or give the file among the rewards", key)
			return
		}
	}
}

// chatError reads an error beside the messages: if the run earned nothing, the error may be
// the cause, not the policy.
func chatError(r *rollout.Rollout, v format.Value) {
	detail := cmp.Or(v.Get("message").String(), format.PlainText(v))
	earned := r.Outcome.Resolved != nil && *r.Outcome.Resolved || r.Outcome.Reward != nil && *r.Outcome.Reward > 0
	told := v.Kind() == jsonscan.String && detail != "" || v.Kind() == jsonscan.Object && v.Len() > 0
	if !told || earned || r.Status != rollout.StatusUnknown {
		return
	}
	r.Status, r.Failure = rollout.StatusFailed, &rollout.Failure{Reason: "error", Detail: detail}
}

// chatSettings reads the call settings beside the messages.
func chatSettings(in *format.File, r *rollout.Rollout, v format.Value, blocks bool) {
	for _, settings := range []format.Value{v, v.Get("sampling_params"), v.Get("sampling_args")} {
		in.TemplateKwargs(r, settings)
		if t := format.Temperature(settings.Get("temperature")); r.Temperature == nil && t != nil && *t >= 0 {
			r.Temperature = t
		}
	}
	for _, key := range toolKeys {
		defs, err := in.ParseInner(v.Get(key), "/"+key)
		if err != nil {
			in.Note("tools_unreadable", 0, "%s", err)
			continue
		}
		switch {
		case r.Tools != nil:
		case blocks || key != "tools" && key != "available_tools":
			r.Tools = format.FunctionTools(defs)
		default:
			r.Tools = format.Tools(defs)
		}
	}
}

// toolKeys are keys of tool definitions.
var toolKeys = []string{"tools", "available_tools", "functions", "tool_definitions", "tool_defs", "tool_schemas"}

// replyKeys are columns that may hold the reply if the messages have none.
var replyKeys = []string{"completion", "response", "output", "reply", "choices", "generations", "responses", "completions", "candidates"}

// chatOrBlocks reads a list of messages. at gives the index of the message for each entry:
// the last one, if the entry also holds tool results.
func chatOrBlocks(in *format.File, list format.Value, field string, blocks bool) (messages []rollout.Message, at []int, err error) {
	if list.Kind() != jsonscan.Array {
		return nil, nil, in.Want(list, 0, field, "a list of messages")
	}
	r := rollout.Rollout{Messages: make([]rollout.Message, 0, list.Len())}
	at = make([]int, 0, list.Len())
	for _, x := range list.Items() {
		if blocks {
			err = chatBlocks(in, &r, x)
		} else {
			var m rollout.Message
			m, err = chatEntry(in, x, len(r.Messages))
			r.Messages = format.AppendMessage(r.Messages, m, format.FirstID(x, "role", "from"))
		}
		if err != nil {
			return nil, nil, err
		}
		at = append(at, len(r.Messages)-1)
	}
	return r.Messages, at, nil
}

// chatEntry reads a chat message whose text may be under value or text.
func chatEntry(in *format.File, x format.Value, i int) (rollout.Message, error) {
	if x.Get("content").Kind() != jsonscan.Absent {
		return in.ChatMessage(x, i)
	}
	word, body := format.FirstID(x, "role", "from"), bodyOf(x, "value", "text")
	if word == "" || body.Kind() != jsonscan.String {
		return in.ChatMessage(x, i)
	}
	m, err := shareMessage(in, x, i)
	format.Drop(&m.Extra, "role")
	return m, err
}

// chatBlocks adds a message whose content may hold blocks; calls, the call id of a result
// and reasoning may be beside the content.
func chatBlocks(in *format.File, r *rollout.Rollout, x format.Value) error {
	i, body := len(r.Messages), x.Get("content")
	if body.Kind() != jsonscan.Array {
		m, err := chatEntry(in, x, i)
		r.Messages = format.AppendMessage(r.Messages, m, format.FirstID(x, "role", "from"))
		return err
	}
	role := rollout.Role(x.Get("role").Word())
	if role != "" {
		var err error
		if role, err = in.Speaker(string(role), i, "/role"); err != nil {
			return err
		}
	}
	m, err := in.Message(x, i, role, body) // reads reasoning and calls
	if err != nil {
		return err
	}
	m.Content, m.Parts = "", nil
	return in.Blocks(r, m, body)
}

// captureMessages reads token fields that some recorders write on the assistant messages;
// at gives the message of each entry.
func captureMessages(in *format.File, r *rollout.Rollout, list format.Value, at []int) {
	next := 0
	for i, m := range list.Items() {
		if next == len(r.Turns) {
			break
		}
		if r.Turns[next].Message != at[i] {
			continue
		}
		in.Capture(&r.Turns[next], m, at[i])
		next++
	}
}
