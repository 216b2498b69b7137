package traj

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// isNative knows the version or, since that may be absent, recorded turns. An
// OpenAI chat with such turns would lose them elsewhere.
func isNative(v value, _ *fileReader) bool {
	if v.Get("turnpack_version").Kind() == jsonscan.Number {
		return true
	}
	for _, t := range v.Get("turns").Items() {
		return t.Get("output_ids").Kind() == jsonscan.Array || t.Get("message").Kind() == jsonscan.Number
	}
	return false
}

// nativeKeys are those of a record of the native format.
var nativeKeys = []string{"id", "group", "index", "instance", "messages", "tools", "turns", "outcome", "status", "exit_status", "failure", "steps", "temperature", "template_kwargs", "metadata", "notes", "origin"}

// isNativeChat knows a native record without version and turns, which both may be
// absent, where other formats do not: by a mark that only the native format has, or by
// one of its keys beside nothing else. Read as a chat it would lose what they say: which
// replies were sampled, how the run ended, whether it solved the task.
func isNativeChat(v value, _ *fileReader) bool {
	if v.Get("messages").Kind() != jsonscan.Array {
		return false
	}
	for _, m := range v.Get("messages").Items() {
		if isSampledMark(m.Get("sampled")) {
			return true
		}
	}
	if isOutcome(v.Get("outcome")) || v.Path("failure", "reason").Kind() == jsonscan.String {
		return true
	}
	for _, s := range v.Get("steps").Items() {
		return s.Get("step").Kind() == jsonscan.Number && v.Get("reward").IsNull() && v.Get("resolved").IsNull()
	}
	return hasNativeKey(v) && onlyNative(v)
}

// hasNativeKey knows the keys that only the native format has, of the kinds it gives them.
func hasNativeKey(v value) bool {
	_, group := v.Get("group").Text()
	_, instance := v.Get("instance").Text()
	index, numbered := v.Get("index").Int()
	_, ended := statusWord(v.Get("status"))
	if group || instance || numbered && index >= 0 || ended || v.Path("origin", "format").Kind() == jsonscan.String ||
		v.Get("template_kwargs").Kind() == jsonscan.Object {
		return true
	}
	for _, n := range v.Get("notes").Items() {
		return n.Get("code").Kind() == jsonscan.String
	}
	return false
}

// onlyNative reports whether a chat has nothing that the native format would not read:
// no other keys, no blocks of the Messages API, no marks of fine-tuning sets.
func onlyNative(v value) bool {
	for key := range v.Members() {
		if !contains(nativeKeys, key) {
			return false
		}
	}
	for _, m := range v.Get("messages").Items() {
		if m.Get("role").Kind() != jsonscan.String || !m.Get("weight").IsNull() || !m.Get("train").IsNull() {
			return false
		}
	}
	return !holdsBlocks(v.Get("messages"))
}

func isSampledMark(v value) bool {
	var s rollout.Sampled
	word, ok := v.Text()
	return ok && s.UnmarshalText([]byte(word)) == nil
}

// isOutcome knows an object with no other keys than those of an outcome.
func isOutcome(v value) bool {
	for key := range v.Members() {
		if !contains([]string{"resolved", "reward", "verdict", "reason", "submission"}, key) {
			return false
		}
	}
	return v.Len() > 0 && v.Kind() == jsonscan.Object
}

// statusWord knows a status in any case: "Aborted" says no less.
func statusWord(v value) (s rollout.Status, ok bool) {
	word, ok := v.Text()
	return s, ok && s.UnmarshalText([]byte(strings.ToLower(word))) == nil && s != rollout.StatusUnknown
}

// nativeSaid checks a record of another format for keys of the native format that its
// importer did not read. It refuses one that says who wrote a reply, what was sampled,
// what the template was given, that the run failed or did not end by itself, or its
// outcome: trained without that it would be another rollout. All other keys are named in
// one note.
func (j *fileReader) nativeSaid(r *rollout.Rollout) error {
	v, where, key, says := j.current, j.where, "", ""
	for i := range r.Messages {
		raw, there := r.Messages[i].Extra["sampled"]
		if !there {
			continue
		}
		var word string
		var mark rollout.Sampled
		if json.Unmarshal(raw, &word) == nil && mark.UnmarshalText([]byte(word)) == nil && mark != r.Messages[i].Sampled {
			where.Message, key, says = rollout.At(i), "sampled", word
		}
	}
	o := r.Outcome
	if isOutcome(v.Get("outcome")) && o.Resolved == nil && o.Reward == nil && o.Verdict == rollout.VerdictUnknown && o.Submission == nil {
		key, says = "outcome", fmt.Sprintf("%.80s", v.Get("outcome").Raw())
	}
	if s, ok := statusWord(v.Get("status")); ok && s != rollout.StatusCompleted && r.Failure == nil &&
		(r.Status == rollout.StatusUnknown || r.Status == rollout.StatusCompleted) {
		key, says = "status", s.String()
	}
	if reason, ok := v.Path("failure", "reason").Text(); ok && r.Failure == nil {
		key, says = "failure", reason
	}
	for _, t := range v.Get("turns").Items() {
		if t.Get("output_ids").Kind() == jsonscan.Array || t.Get("message").Kind() == jsonscan.Number {
			key, says = "turns", "what was sampled"
		}
	}
	if r.Tools == nil && definesTools(v.Get("tools")) {
		key, says = "tools", fmt.Sprintf("%.80s", v.Get("tools").Raw())
	}
	for name, x := range v.Get("template_kwargs").Members() {
		if have, there := r.TemplateKwargs[name]; !there || !bytes.Equal(have, x.Clone()) {
			key, says = "template_kwargs", name
		}
	}
	if key == "" {
		if keys := nativeUnread(r, v); keys != nil {
			j.note("native_key_unread", 0, "the record has %s as the native format has, which the importer of %s does not read: write turnpack_version: 1 into native records", strings.Join(keys, ", "), j.imp.name)
		}
		return nil
	}
	return rollout.Errorf(rollout.KindFormat, where, "the record says %s: %s, as the native format does, and was read as %s, which has no such key", key, says, j.imp.name).
		WithFix("write turnpack_version: 1 into native records, or take the key out")
}

// definesTools knows a list of tool definitions, by its first.
func definesTools(v value) bool {
	for _, t := range v.Items() {
		return t.Get("function").Kind() == jsonscan.Object || t.Get("parameters").Kind() == jsonscan.Object || t.Get("input_schema").Kind() == jsonscan.Object
	}
	return false
}

// nativeUnread lists the keys of a record that hold what the native format writes
// there and of which r says nothing, or something else.
func nativeUnread(r *rollout.Rollout, v value) []string {
	var out []string
	differs := func(key, have string) bool {
		s, ok := v.Get(key).Text()
		return ok && s != "" && s != have
	}
	index, numbered := v.Get("index").Int()
	status, ended := statusWord(v.Get("status"))
	marked := func(list value, keys ...string) bool {
		for _, x := range list.Items() {
			return slices.ContainsFunc(keys, func(k string) bool { return !x.Get(k).IsNull() })
		}
		return false
	}
	for _, x := range []struct {
		key    string
		unread bool
	}{
		{"group", differs("group", r.Group)},
		{"index", numbered && index >= 0 && index != r.Index},
		{"instance", differs("instance", r.Instance)},
		{"tools", v.Get("tools").Kind() == jsonscan.Array && v.Get("tools").Len() > 0 && r.Tools == nil},
		{"turns", marked(v.Get("turns"), "message", "output_ids")},
		{"outcome", isOutcome(v.Get("outcome")) && !saysOutcome(r.Outcome, v.Get("outcome"))},
		{"status", ended && status != r.Status},
		{"exit_status", differs("exit_status", r.ExitStatus)},
		{"failure", v.Path("failure", "reason").Kind() == jsonscan.String && r.Failure == nil},
		{"steps", marked(v.Get("steps"), "step")},
		{"temperature", v.Get("temperature").Kind() == jsonscan.Number && r.Temperature == nil && !slices.ContainsFunc(r.Turns, func(t rollout.Turn) bool { return t.Sampling != nil && t.Sampling.Temperature != nil })},
	} {
		if x.unread {
			out = append(out, x.key)
		}
	}
	return out
}

// saysOutcome reports whether o holds all that a native outcome says.
func saysOutcome(o rollout.Outcome, v value) bool {
	same := func(key, have string) bool { s, ok := v.Get(key).Text(); return !ok || s == have }
	resolved, reward := boolean(v.Get("resolved")), number(v.Get("reward"))
	submission := ""
	if o.Submission != nil {
		submission = *o.Submission
	}
	return (resolved == nil || o.Resolved != nil && *o.Resolved == *resolved) && (reward == nil || o.Reward != nil && *o.Reward == *reward) &&
		same("verdict", o.Verdict.String()) && same("reason", o.Reason) && same("submission", submission)
}

// readNative hands a line to the native reader. A rollout that was imported
// before keeps the origin of that time.
func readNative(j *fileReader, v value) error {
	if !isNative(v, j) && !isNativeChat(v, j) && v.Get("messages").Kind() == jsonscan.Absent && v.Get("turns").Kind() == jsonscan.Absent {
		return j.want(v.Get("messages"), 0, "/messages", "a list")
	}
	r, err := rollout.ParseJSON(v.Raw(), rollout.ReaderOptions{File: j.file.Name, Limits: rollout.Limits{
		Depth: j.r.opt.Limits.Depth, Messages: j.r.opt.Limits.Messages,
	}})
	if err != nil {
		return err
	}
	if r.Origin.Format == "native" {
		r.Origin = rollout.Origin{}
	}
	if v.Get("index").Kind() == jsonscan.Absent {
		r.Index = noIndex
	}
	return j.emit(r)
}
