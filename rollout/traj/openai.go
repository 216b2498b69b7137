package traj

import (
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// OpenAI-style chat JSONL as used for fine-tuning: "messages" is a list or a
// JSON string of one.

func isChat(v value, _ *job) bool {
	m := v.Get("messages")
	if m.Kind() == jsonscan.String {
		return true
	}
	if m.Kind() != jsonscan.Array {
		return false
	}
	for _, first := range m.Items() {
		return first.Get("role").Kind() == jsonscan.String || first.Get("content").Kind() != jsonscan.Absent
	}
	return true
}

// inner parses a value that is JSON inside a string; other values pass.
func (j *job) inner(v value, field string) (value, error) {
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

// readChat reads messages, tools, ids and outcome under the names in use.
func readChat(j *job, v value) error {
	list, err := j.inner(v.Get("messages"), "/messages")
	if err != nil {
		return err
	}
	messages, err := j.chatMessages(list, "/messages")
	if err != nil {
		return err
	}
	sampleAll(messages, rollout.SampledByPolicy)
	r := &rollout.Rollout{
		ID:       firstID(v, "traj_id", "trajectory_id", "rollout_id", "id", "uuid"),
		Instance: firstID(v, "instance_id", "task_id"),
		Index:    noIndex,
		Messages: messages,
		Turns:    turns(messages),
		Outcome:  rollout.Outcome{Reward: number(v.Get("reward"))},
	}
	if r.ID == "" {
		if r.ID = r.Instance; !v.Get("run_id").IsNull() {
			r.ID += "/" + identifier(v.Get("run_id"))
		}
	}
	if err := j.captureMessages(r, list); err != nil {
		return err
	}
	for _, key := range []string{"resolved", "verified"} {
		if b := boolean(v.Get(key)); b != nil && r.Outcome.Resolved == nil {
			r.Outcome.Resolved = b
		}
	}
	r.Outcome.Submission = text(v.Get("patch"))
	if r.Outcome.Submission == nil {
		r.Outcome.Submission = text(v.Path("test_result", "git_patch"))
	}
	if word, ok := v.Get("exit_status").Text(); ok {
		r.ExitStatus, r.Status = word, statusOf(word)
	}
	for _, key := range []string{"tools", "available_tools"} {
		defs, err := j.inner(v.Get(key), "/"+key)
		if err != nil {
			j.note("tools_unreadable", 0, "%s", err)
			continue
		}
		if r.Tools == nil {
			r.Tools = tools(defs)
		}
	}
	j.leftover(r, v, "messages", "tools", "available_tools", "traj_id", "id", "instance_id", "reward", "resolved", "patch", "exit_status")
	j.noteParts(r)
	return j.emit(r)
}

// captureMessages takes the token fields that some recorders write on the
// assistant messages themselves.
func (j *job) captureMessages(r *rollout.Rollout, list value) error {
	next := 0
	for i, m := range list.Items() {
		if next == len(r.Turns) {
			break
		}
		if r.Turns[next].Message != i {
			continue
		}
		if err := j.capture(&r.Turns[next], m, i); err != nil {
			return err
		}
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
