package traj

import (
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// OpenAI-style chat JSONL as used for fine-tuning: "messages" is a list or a
// JSON string of one; some sets call the list "trajectory", and some hold blocks
// of the Messages API.

func chatList(v value) (list value, key string) {
	for _, key := range []string{"trajectory", "conversation"} {
		if m := v.Get(key); m.Kind() != jsonscan.Absent && v.Get("messages").Kind() == jsonscan.Absent {
			return m, key
		}
	}
	return v.Get("messages"), "messages"
}

func isChat(v value, _ *fileReader) bool {
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
	for _, first := range m.Items() {
		return first.Get("role").Kind() == jsonscan.String || key == "messages" && (first.Get("content").Kind() != jsonscan.Absent || first.Get("from").Kind() == jsonscan.String)
	}
	return true
}

// inner parses a value that is JSON inside a string; other values pass.
func (j *fileReader) inner(v value, field string) (value, error) {
	s, ok := v.Text()
	if !ok {
		return v, nil
	}
	var d jsonscan.Doc
	out, err := d.Parse([]byte(s), jsonscan.Options{Depth: j.r.opt.Limits.Depth, NonFinite: true})
	if err != nil {
		w := j.where
		w.Field = field
		return v, rollout.Errorf(rollout.KindFormat, w, "the string is not the JSON it should hold: %s", err)
	}
	return out, nil
}

// replyEnds are the words by which the chat and Messages APIs say how a reply ended.
var replyEnds = []string{"stop", "length", "tool_calls", "function_call", "content_filter", "end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal", "eos", "eos_token"}

// readChat reads messages, tools, ids and outcome under the names in use.
func readChat(j *fileReader, v value) error {
	list, key := chatList(v)
	list, err := j.inner(list, "/"+key)
	if err != nil {
		return err
	}
	blocks := holdsBlocks(list)
	messages, at, err := j.chatOrBlocks(list, "/"+key, blocks)
	if err != nil {
		return err
	}
	sampleAll(messages, rollout.SampledByPolicy)
	for i, x := range list.Items() {
		j.applyTrainFlag(&messages[at[i]], x, at[i])
	}
	r := &rollout.Rollout{
		ID:       firstID(v, "traj_id", "trajectory_id", "rollout_id", "id", "uuid"),
		Instance: firstID(v, "instance_id", "task_id"),
		Index:    noIndex,
		Messages: messages,
		Outcome:  rollout.Outcome{Reward: j.reward(v.Get("reward"))},
	}
	if added, err := j.systemPrompt(r, v); err != nil {
		return err
	} else if added {
		for i := range at {
			at[i]++
		}
	}
	if err := j.media(r, v); err != nil {
		return err
	}
	if r.Turns = turns(r.Messages); len(r.Turns) == 0 {
		for _, key := range replyKeys {
			if x := v.Get(key); x.Kind() == jsonscan.String && !x.Is("") || x.Len() > 0 {
				return j.fail(0, "/"+key, "the messages hold no reply, and the key %q beside them is not understood", key)
			}
		}
	}
	if r.ID == "" {
		if r.ID = r.Instance; !v.Get("run_id").IsNull() {
			r.ID += "/" + identifier(v.Get("run_id"))
		}
	}
	j.captureMessages(r, list, at)
	for _, key := range []string{"resolved", "verified"} {
		if b := j.resolved(v.Get(key)); r.Outcome.Resolved == nil {
			r.Outcome.Resolved = b
		}
	}
	for _, patch := range []value{v.Get("patch"), v.Path("test_result", "git_patch"), v.Get("model_patch")} {
		if r.Outcome.Submission == nil {
			r.Outcome.Submission = text(patch)
		}
	}
	if word, ok := v.Get("exit_status").Text(); ok {
		r.ExitStatus, r.Status = word, statusOf(word)
	}
	for _, key := range []string{"finish_reason", "stop_reason"} {
		// Other words under these names are a harness's, about the run.
		if why := v.Get(key).String(); contains(replyEnds, why) {
			if lastEnded(r, why); r.Status == rollout.StatusUnknown {
				r.Status = statusOf(why)
			}
		}
	}
	for _, settings := range []value{v, v.Get("sampling_params"), v.Get("sampling_args")} {
		if err := j.templateKwargs(r, settings); err != nil {
			return err
		}
		if t := temperature(settings.Get("temperature")); r.Temperature == nil && t != nil && *t >= 0 {
			r.Temperature = t
		}
	}
	for _, key := range []string{"tools", "available_tools", "functions"} {
		defs, err := j.inner(v.Get(key), "/"+key)
		if err != nil {
			j.note("tools_unreadable", 0, "%s", err)
			continue
		}
		switch {
		case r.Tools != nil:
		case blocks || key == "functions":
			r.Tools = functionTools(defs)
		default:
			r.Tools = tools(defs)
		}
	}
	j.leftover(r, v, append(systemKeys, key, "model_patch", "tools", "available_tools", "functions", "traj_id", "id", "instance_id", "reward", "resolved", "patch", "exit_status", "chat_template_kwargs", "template_kwargs")...)
	for _, key := range []string{"engine", "model"} { // they say whose prompts the record holds
		x := v.Path("metadata", key)
		if _, there := r.Metadata[key]; !there && x.Kind() == jsonscan.String {
			keep(&r.Metadata, key, x)
		}
	}
	j.noteParts(r)
	j.emptyReplies(r)
	return j.emit(r)
}

// replyKeys are columns that may hold the reply to messages which hold none.
var replyKeys = []string{"completion", "response", "output", "reply"}

// holdsBlocks reports whether a list of messages has blocks of the Messages API
// as contents.
func holdsBlocks(list value) bool {
	for _, m := range list.Items() {
		for _, b := range m.Get("content").Items() {
			if kind := b.Get("type"); kind.Is("tool_use") || kind.Is("tool_result") || kind.Is("thinking") {
				return true
			}
		}
	}
	return false
}

// chatOrBlocks reads a list of messages and tells which message each entry of the
// list became: the last one, of an entry that also holds tool results.
func (j *fileReader) chatOrBlocks(list value, field string, blocks bool) (messages []rollout.Message, at []int, err error) {
	if list.Kind() != jsonscan.Array {
		return nil, nil, j.want(list, 0, field, "a list of messages")
	}
	r := rollout.Rollout{Messages: make([]rollout.Message, 0, list.Len())}
	at = make([]int, 0, list.Len())
	for _, x := range list.Items() {
		if blocks {
			err = j.chatBlocks(&r, x)
		} else {
			var m rollout.Message
			m, err = j.chatEntry(x, len(r.Messages))
			r.Messages = said(r.Messages, m, x.Get("role").Word())
		}
		if err != nil {
			return nil, nil, err
		}
		at = append(at, len(r.Messages)-1)
	}
	return r.Messages, at, nil
}

// chatEntry is a message of a chat, whose text may stand under value or text.
func (j *fileReader) chatEntry(x value, i int) (rollout.Message, error) {
	if x.Get("content").Kind() != jsonscan.Absent {
		return j.chatMessage(x, i)
	}
	word, body := firstID(x, "role", "from"), bodyOf(x, "value", "text")
	if word == "" || body.Kind() != jsonscan.String {
		return j.chatMessage(x, i)
	}
	m, err := j.shareMessage(x, i)
	drop(&m.Extra, "role")
	return m, err
}

// chatBlocks adds a message whose content may hold blocks; calls, the id that a
// result answers and reasoning may stand beside them all the same.
func (j *fileReader) chatBlocks(r *rollout.Rollout, x value) error {
	i, body := len(r.Messages), x.Get("content")
	if body.Kind() != jsonscan.Array {
		m, err := j.chatEntry(x, i)
		r.Messages = said(r.Messages, m, x.Get("role").Word())
		return err
	}
	role := rollout.Role(x.Get("role").Word())
	if role != "" {
		var err error
		if role, err = j.speaker(string(role), i, "/role"); err != nil {
			return err
		}
	}
	m, err := j.message(x, i, role, body) // its reasoning and calls
	if err != nil {
		return err
	}
	m.Content, m.Parts = "", nil
	return j.blocks(r, m, body)
}

// captureMessages takes the token fields that some recorders write on the
// assistant messages themselves; at tells which message each entry became.
func (j *fileReader) captureMessages(r *rollout.Rollout, list value, at []int) error {
	next := 0
	for i, m := range list.Items() {
		if next == len(r.Turns) {
			break
		}
		if r.Turns[next].Message != at[i] {
			continue
		}
		j.capture(&r.Turns[next], m, at[i])
		next++
	}
	return nil
}

// firstID is the first of the keys that holds a string or number.
func firstID(v value, keys ...string) string {
	for _, k := range keys {
		if s := identifier(v.Get(k)); s != "" {
			return s
		}
	}
	return ""
}
