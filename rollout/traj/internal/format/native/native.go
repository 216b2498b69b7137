package native

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Importer reads records with a version or turns.
func Importer() format.Importer {
	return format.Importer{Name: "native", Match: match, Read: read, Stateless: true}
}

// match reports whether v has a version or recorded turns; the version may be absent.
// Another importer would drop the turns of a chat.
func match(v format.Value, _ *format.File) bool {
	if v.Get("turnpack_version").Kind() == jsonscan.Number {
		return true
	}
	t := v.Get("turns").First()
	return t.Get("output_ids").Kind() == jsonscan.Array || t.Get("message").Kind() == jsonscan.Number
}

// Journal matches no value: the journals of package rollout/live are known by the names of
// their segments and read by live.Read.
func Journal() format.Importer {
	return format.Importer{Name: "turnpack-journal",
		Match: func(format.Value, *format.File) bool { return false },
		Read: func(in *format.File, v format.Value) error {
			return in.Want(v, 0, "", "a folder of segments (*.tpj)")
		}}
}

// keys are the keys of a native record.
var keys = []string{"id", "group", "index", "instance", "messages", "tools", "turns", "outcome", "status", "exit_status", "failure", "steps", "temperature", "template_kwargs", "metadata", "notes", "origin"}

// Unversioned reads records with neither, but with keys that only the native format has.
func Unversioned() format.Importer {
	return format.Importer{Name: "native", Match: matchUnversioned, Read: read, Stateless: true}
}

// matchUnversioned reports whether v is a native record without version and turns, which
// are both optional: it has a mark that only the native format has, or one of its keys and
// no foreign ones. Read as a chat, it would lose which replies were sampled, how the run
// ended and its outcome.
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

// hasOwnKey reports whether v has a key of the native format only, with a value of its
// kind.
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

// isOutcome reports whether v is an object with no other keys than those of an outcome.
func isOutcome(v format.Value) bool {
	for key := range v.Members() {
		if !slices.Contains([]string{"resolved", "reward", "verdict", "reason", "submission"}, key) {
			return false
		}
	}
	return v.Len() > 0 && v.Kind() == jsonscan.Object
}

// statusWord returns the status that a word names, in any case.
func statusWord(v format.Value) (s rollout.Status, ok bool) {
	word, ok := v.Text()
	return s, ok && s.UnmarshalText([]byte(strings.ToLower(word))) == nil && s != rollout.StatusUnknown
}

// read passes a record to the native reader. A rollout that was imported before keeps its
// origin.
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
