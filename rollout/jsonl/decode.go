package jsonl

import (
	"encoding/json"
	"fmt"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// decoder converts one parsed line to a rollout. err holds the first fault, which ends the
// decoding.
type decoder struct {
	where   rollout.Where
	prefix  string // JSON pointer of the current object, relative to where
	lim     Limits
	err     error
	notes   []rollout.Note
	marked  []bool // messages that have a sampled key
	tokens  int
	prompts rollout.PromptIndex
}

func (d *decoder) fail(kind rollout.Kind, v jsonscan.Value, at, format string, args ...any) {
	if d.err == nil {
		w := d.where
		w.Byte, w.Field = rollout.At(v.Offset()), d.prefix+at
		d.err = rollout.Errorf(kind, w, format, args...)
	}
}

func (d *decoder) want(v jsonscan.Value, at, what string) {
	d.fail(rollout.KindFormat, v, at, "found %s, expected %s", v.Kind(), what)
}

func (d *decoder) note(code string, message rollout.Index, format string, args ...any) {
	d.notes = append(d.notes, rollout.Note{Code: code, Message: message, Text: fmt.Sprintf(format, args...)})
}

func (d *decoder) text(v jsonscan.Value, at string) string {
	s, ok := v.Text()
	if !ok {
		d.want(v, at, "a string")
		return ""
	}
	if v.LoneSurrogate() {
		d.note("lone_surrogate", d.where.Message, "%s%s: an escape that is half of a surrogate pair was read as U+FFFD", d.prefix, at)
	}
	return s
}

// identifier returns a JSON string or number as text.
func (d *decoder) identifier(v jsonscan.Value, at string) string {
	if v.Kind() == jsonscan.Number {
		return string(v.Raw())
	}
	return d.text(v, at)
}

func (d *decoder) integer(v jsonscan.Value, at string) int {
	i, ok := v.Int()
	if !ok {
		d.want(v, at, "an integer")
	}
	return i
}

func (d *decoder) int32(v jsonscan.Value, at string) int32 {
	n := d.integer(v, at)
	if int(int32(n)) != n {
		d.fail(rollout.KindInput, v, at, "%d does not fit 32 bits", n)
	}
	return int32(n)
}

func (d *decoder) float(v jsonscan.Value, at string) float64 {
	f, ok := v.Float()
	if !ok {
		d.want(v, at, "a finite number")
	}
	return f
}

func (d *decoder) boolean(v jsonscan.Value, at string) bool {
	b, ok := v.Bool()
	if !ok {
		d.want(v, at, "a boolean")
	}
	return b
}

func (d *decoder) list(v jsonscan.Value, at string, max int, each func(i int, m jsonscan.Value)) {
	if v.Kind() != jsonscan.Array {
		d.want(v, at, "a list")
		return
	}
	for i, m := range v.Items() {
		if d.err != nil {
			return
		}
		if max > 0 && i >= max {
			d.fail(rollout.KindLimit, m, at, "more than %d entries", max)
			return
		}
		each(i, m)
	}
}

// values reads a JSON object with arbitrary keys.
func (d *decoder) values(v jsonscan.Value, at string) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	anyObject.read(d, v, at, &m)
	return m
}

// raw returns m as a JSON object.
func (d *decoder) raw(v jsonscan.Value, m map[string]json.RawMessage) json.RawMessage {
	e := &encoder{}
	e.object(m, "")
	if e.err != nil {
		d.fail(rollout.KindInternal, v, "", "unknown keys cannot be kept: %w", e.err)
	}
	return e.b
}

// recorded reports whether v is a non-empty list of ids or log probabilities; it counts the
// entries and notes an empty list.
func (d *decoder) recorded(v jsonscan.Value, at string) bool {
	if v.Kind() != jsonscan.Array {
		d.want(v, at, "a list")
		return false
	}
	n := v.Len()
	if n == 0 {
		turn, _ := d.where.Turn.Get()
		d.note("empty_tokens", 0, "turn %d: %s%s is present and empty; taken as absent", turn, d.prefix, at)
	}
	if d.tokens += n; d.tokens > d.lim.Tokens {
		d.fail(rollout.KindLimit, v, at, "more than %d recorded ids in one rollout", d.lim.Tokens)
		return false
	}
	return n > 0
}

func (d *decoder) ids(v jsonscan.Value, at string) []rollout.TokenID {
	if !d.recorded(v, at) {
		return nil
	}
	out, bad, ok := v.AppendInt32(nil)
	if !ok {
		d.fail(rollout.KindInput, bad, at, "token id %.40s is not an integer of 32 bits", bad.Raw())
	}
	for i, id := range out {
		if id < 0 {
			d.fail(rollout.KindInput, v, at, "token id %d at position %d is negative", id, i)
		}
	}
	return out
}

func (d *decoder) logprobs(v jsonscan.Value, at string) []float32 {
	if !d.recorded(v, at) {
		return nil
	}
	out, bad, ok := v.AppendFloat32(nil)
	if !ok {
		d.fail(rollout.KindInput, bad, at, "logprob %.40s is not a finite number", bad.Raw())
	}
	return out
}
