package native

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// CheckUnread checks a record of another format for keys of the native format that its
// importer did not read. It returns an error if such a key says who wrote a reply, what was
// sampled, the template variables, that the run failed or did not end by itself, or the
// outcome: without it, another rollout would be trained. One note names all other such
// keys.
func CheckUnread(in *format.File, r *rollout.Rollout) error {
	v, where, key, says := in.Record, in.Where, "", ""
	for i := range r.Messages {
		raw, there := r.Messages[i].Extra["sampled"]
		if !there {
			continue
		}
		if word, differs := marks(raw, r.Messages[i].Sampled); differs {
			where.Message, key, says = rollout.At(i), "sampled", word
		}
	}
	o := r.Outcome
	if holdsOutcome(v.Get("outcome")) && o.Resolved == nil && o.Reward == nil && o.Verdict == rollout.VerdictUnknown && o.Submission == nil {
		key, says = "outcome", fmt.Sprintf("%.80s", v.Get("outcome").Raw())
	}
	if s, ok := statusWord(v.Get("status")); ok && s != rollout.StatusCompleted && r.Failure == nil &&
		(r.Status == rollout.StatusUnknown || r.Status == rollout.StatusCompleted) {
		key, says = "status", s.String()
	}
	if reason, ok := failed(v.Get("failure")); ok && r.Failure == nil {
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
		if keys := unreadKeys(r, v); keys != nil {
			in.Note("native_key_unread", 0, "the record has %s as the native format has, which the importer of %s does not read: write turnpack_version: 1 into native records", strings.Join(keys, ", "), in.Importer.Name)
		}
		return nil
	}
	return rollout.Errorf(rollout.KindFormat, where, "the record says %s: %s, as the native format does, and was read as %s, which has no such key", key, says, in.Importer.Name).
		WithFix("write turnpack_version: 1 into native records, or take the key out")
}

// marks reports whether a sampled mark contradicts have: a word other than have's, even an
// unknown one, or false if have is SampledByPolicy. Null and other kinds do not.
func marks(raw json.RawMessage, have rollout.Sampled) (word string, differs bool) {
	if json.Unmarshal(raw, &word) == nil && word != "" {
		var mark rollout.Sampled
		return word, mark.UnmarshalText([]byte(word)) != nil || mark != have
	}
	no := string(raw) == "false"
	return string(raw), no && have == rollout.SampledByPolicy
}

// holdsOutcome reports whether v is an object with an outcome, whatever else it holds.
func holdsOutcome(v format.Value) bool {
	return isOutcome(v) || v.Get("resolved").Kind() == jsonscan.Bool || v.Get("reward").Kind() == jsonscan.Number || v.Get("verdict").Kind() == jsonscan.String
}

// failed returns the text of a failure: its reason, its detail or v as a string.
func failed(v format.Value) (string, bool) {
	for _, x := range []format.Value{v.Get("reason"), v.Get("detail"), v} {
		if s, ok := x.Text(); ok && s != "" {
			return s, true
		}
	}
	return "", false
}

// definesTools reports whether v is a list of tool definitions, by its first.
func definesTools(v format.Value) bool {
	t := v.First()
	return t.Get("function").Kind() == jsonscan.Object || t.Get("parameters").Kind() == jsonscan.Object || t.Get("input_schema").Kind() == jsonscan.Object
}

// unreadKeys lists the keys of a record that hold a value of the native format and that r
// lacks or contradicts.
func unreadKeys(r *rollout.Rollout, v format.Value) []string {
	var out []string
	differs := func(key, have string) bool {
		s, ok := v.Get(key).Text()
		return ok && s != "" && s != have
	}
	index, numbered := v.Get("index").Int()
	status, ended := statusWord(v.Get("status"))
	marked := func(list format.Value, keys ...string) bool {
		x := list.First()
		return slices.ContainsFunc(keys, func(k string) bool { return !x.Get(k).IsNull() })
	}
	for _, x := range []struct {
		key    string
		unread bool
	}{
		{"group", differs("group", r.Group)},
		{"index", numbered && index >= 0 && index != r.Index},
		{"instance", differs("instance", r.Instance)},
		{"tools", v.Get("tools").Kind() == jsonscan.Array && v.Get("tools").Len() > 0 && r.Tools == nil},
		{"turns", marked(v.Get("turns"), "message", "output_ids", "prompt_ids", "logprobs", "incomplete")},
		{"outcome", isOutcome(v.Get("outcome")) && !saysOutcome(r.Outcome, v.Get("outcome"))},
		{"status", ended && status != r.Status},
		{"exit_status", differs("exit_status", r.ExitStatus)},
		{"failure", v.Path("failure", "reason").Kind() == jsonscan.String && r.Failure == nil},
		{"steps", marked(v.Get("steps"), "step")},
		{"notes", marked(v.Get("notes"), "code")},
		{"origin", v.Path("origin", "format").Kind() == jsonscan.String},
		{"temperature", v.Get("temperature").Kind() == jsonscan.Number && r.Temperature == nil && !slices.ContainsFunc(r.Turns, func(t rollout.Turn) bool { return t.Sampling != nil && t.Sampling.Temperature != nil })},
	} {
		if x.unread {
			out = append(out, x.key)
		}
	}
	return out
}

// saysOutcome reports whether o holds all of a native outcome.
func saysOutcome(o rollout.Outcome, v format.Value) bool {
	same := func(key, have string) bool { s, ok := v.Get(key).Text(); return !ok || s == have }
	resolved, reward := format.Boolean(v.Get("resolved")), format.Number(v.Get("reward"))
	submission := ""
	if o.Submission != nil {
		submission = *o.Submission
	}
	return (resolved == nil || o.Resolved != nil && *o.Resolved == *resolved) && (reward == nil || o.Reward != nil && *o.Reward == *reward) &&
		same("verdict", o.Verdict.String()) && same("reason", o.Reason) && same("submission", submission)
}
