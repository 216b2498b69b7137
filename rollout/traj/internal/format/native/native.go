package native

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Importer reads records that tell their version, or turns.
func Importer() format.Importer {
	return format.Importer{Name: "native", Match: match, Read: read, Stateless: true}
}

// match knows the version or, since that may be absent, recorded turns. An
// OpenAI chat with such turns would lose them elsewhere.
func match(v format.Value, _ *format.File) bool {
	if v.Get("turnpack_version").Kind() == jsonscan.Number {
		return true
	}
	t := v.Get("turns").First()
	return t.Get("output_ids").Kind() == jsonscan.Array || t.Get("message").Kind() == jsonscan.Number
}

// keys are those of a record of the native format.
var keys = []string{"id", "group", "index", "instance", "messages", "tools", "turns", "outcome", "status", "exit_status", "failure", "steps", "temperature", "template_kwargs", "metadata", "notes", "origin"}

// Unversioned reads records that tell neither, but say what only the native format does.
func Unversioned() format.Importer {
	return format.Importer{Name: "native", Match: matchUnversioned, Read: read, Stateless: true}
}

// matchUnversioned knows a native record without version and turns, which both may be
// absent, where other formats do not: by a mark that only the native format has, or by
// one of its keys beside nothing else. Read as a chat it would lose what they say: which
// replies were sampled, how the run ended, whether it solved the task.
func matchUnversioned(v format.Value, _ *format.File) bool {
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
	return hasOwnKey(v) && hasOnlyOwnKeys(v)
}

// hasOwnKey knows the keys that only the native format has, of the kinds it gives them.
func hasOwnKey(v format.Value) bool {
	_, group := v.Get("group").Text()
	_, instance := v.Get("instance").Text()
	index, numbered := v.Get("index").Int()
	_, ended := statusWord(v.Get("status"))
	if group || instance || numbered && index >= 0 || ended || v.Path("origin", "format").Kind() == jsonscan.String ||
		v.Get("template_kwargs").Kind() == jsonscan.Object {
		return true
	}
	n := v.Get("notes").First()
	return n.Get("code").Kind() == jsonscan.String
}

// hasOnlyOwnKeys reports whether a chat has nothing that the native format would not read:
// no other keys, no blocks of the Messages API, no marks of fine-tuning sets.
func hasOnlyOwnKeys(v format.Value) bool {
	for key := range v.Members() {
		if !slices.Contains(keys, key) {
			return false
		}
	}
	for _, m := range v.Get("messages").Items() {
		if m.Get("role").Kind() != jsonscan.String || !m.Get("weight").IsNull() || !m.Get("train").IsNull() {
			return false
		}
	}
	return !format.HoldsBlocks(v.Get("messages"))
}

func isSampledMark(v format.Value) bool {
	var s rollout.Sampled
	word, ok := v.Text()
	return ok && s.UnmarshalText([]byte(word)) == nil
}

// isOutcome knows an object with no other keys than those of an outcome.
func isOutcome(v format.Value) bool {
	for key := range v.Members() {
		if !slices.Contains([]string{"resolved", "reward", "verdict", "reason", "submission"}, key) {
			return false
		}
	}
	return v.Len() > 0 && v.Kind() == jsonscan.Object
}

// statusWord knows a status in any case: "Aborted" says no less.
func statusWord(v format.Value) (s rollout.Status, ok bool) {
	word, ok := v.Text()
	return s, ok && s.UnmarshalText([]byte(strings.ToLower(word))) == nil && s != rollout.StatusUnknown
}

// read hands a line to the native reader. A rollout that was imported
// before keeps the origin of that time.
func read(in *format.File, v format.Value) error {
	if !match(v, in) && !matchUnversioned(v, in) && v.Get("messages").Kind() == jsonscan.Absent && v.Get("turns").Kind() == jsonscan.Absent {
		return in.Want(v.Get("messages"), 0, "/messages", "a list")
	}
	r, err := jsonl.Parse(v.Raw(), jsonl.Options{File: in.Name, Limits: jsonl.Limits{
		Depth: in.Settings.Depth, Messages: in.Settings.Messages,
	}})
	if err != nil {
		return err
	}
	if r.Origin.Format == "native" {
		r.Origin = rollout.Origin{}
	}
	if v.Get("index").Kind() == jsonscan.Absent {
		r.Index = format.NoIndex
	}
	return in.Emit(r)
}
