package rollout

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

// AppendJSON appends r as one line of native JSONL, without the newline. Keys
// come in a fixed order and those of Extra sorted, so equal rollouts give equal
// bytes. It refuses what JSON cannot hold (text that is not UTF-8, numbers that
// are not finite) with a located KindInput error.
func AppendJSON(dst []byte, r *Rollout) ([]byte, error) {
	if r == nil {
		return dst, nilRollout()
	}
	e := &encoder{b: dst, where: Where{Rollout: r.ID}}
	e.rollout(r)
	return e.b, e.err
}

type encoder struct {
	b     []byte
	where Where
	err   error
}

func (e *encoder) fail(field, format string, args ...any) {
	if e.err == nil {
		w := e.where
		w.Field = field
		e.err = Errorf(KindInput, w, format, args...)
	}
}

// key writes the separator and the key, unless it is the first in its object.
func (e *encoder) key(k string) {
	if c := e.b[len(e.b)-1]; c != '{' {
		e.b = append(e.b, ',')
	}
	e.text(k, k)
	e.b = append(e.b, ':')
}

const hexDigits = "0123456789abcdef"

func (e *encoder) text(s, field string) {
	if !utf8.ValidString(s) {
		e.fail(field, "the text is not valid UTF-8")
	}
	e.b = appendString(e.b, s)
}

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			b = append(b, `\u00`...)
			b = append(b, hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(b, s[start:]...), '"')
}

func (e *encoder) str(k, s string) {
	if s != "" {
		e.key(k)
		e.text(s, k)
	}
}

func (e *encoder) int(k string, i int) {
	e.key(k)
	e.b = strconv.AppendInt(e.b, int64(i), 10)
}

func (e *encoder) float(f float64, bits int, field string) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.fail(field, "%g is not finite", f)
	}
	e.b = strconv.AppendFloat(e.b, f, 'g', -1, bits)
}

func (e *encoder) raw(v json.RawMessage, field string) {
	var d jsonscan.Doc
	if _, err := d.Parse(v, jsonscan.Options{}); err != nil {
		e.fail(field, "the value kept verbatim is not JSON: %w", err)
		return
	}
	e.b = appendLine(e.b, v)
}

// appendLine appends JSON text with line breaks replaced by spaces, which is
// only possible outside strings, where none can occur.
func appendLine(b []byte, v []byte) []byte {
	start := len(b)
	b = append(b, v...)
	for i := start; i < len(b); i++ {
		if b[i] == '\n' || b[i] == '\r' {
			b[i] = ' '
		}
	}
	return b
}

func (e *encoder) extra(m map[string]json.RawMessage, known []string) {
	for _, k := range sortedKeys(m) {
		if slices.Contains(known, k) {
			e.fail("/"+k, "Extra holds %q, which is a field of its own", k)
			return
		}
		e.key(k)
		e.raw(m[k], "/"+k)
	}
}

func sortedKeys(m map[string]json.RawMessage) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// appendExtra appends the members of m to an open object.
func appendExtra(b []byte, m map[string]json.RawMessage, known []string) ([]byte, error) {
	e := &encoder{b: b}
	e.extra(m, known)
	return e.b, e.err
}

// rest writes the unknown keys of a nested object that has no Extra of its own
// and reports whether there are any.
func (e *encoder) rest(extra map[string]json.RawMessage, key string, known ...string) {
	raw, ok := extra[key]
	if !ok {
		return
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil || m == nil {
		e.fail("/"+key, "Extra[%q] holds the unknown keys of that object and must be one", key)
		return
	}
	e.extra(m, known)
}

func without(m map[string]json.RawMessage, keys ...string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for k, v := range m {
		if !slices.Contains(keys, k) {
			out[k] = v
		}
	}
	return out
}

func (e *encoder) rollout(r *Rollout) {
	e.b = append(e.b, '{')
	e.int("turnpack_version", FormatVersion)
	e.str("id", r.ID)
	e.str("group", r.Group)
	if r.Index != 0 {
		e.int("index", r.Index)
	}
	e.str("instance", r.Instance)
	e.key("messages")
	e.b = append(e.b, '[')
	for i := range r.Messages {
		e.comma(i)
		e.where.Message = At(i)
		e.message(&r.Messages[i])
	}
	e.where.Message = 0
	e.b = append(e.b, ']')
	if r.Tools != nil {
		e.key("tools")
		e.b = append(e.b, '[')
		for i, t := range r.Tools {
			e.comma(i)
			e.raw(t, "/tools/"+strconv.Itoa(i))
		}
		e.b = append(e.b, ']')
	}
	if r.Turns != nil {
		e.key("turns")
		e.b = append(e.b, '[')
		for i := range r.Turns {
			e.comma(i)
			e.where.Turn = At(i)
			e.turn(&r.Turns[i])
		}
		e.where.Turn = 0
		e.b = append(e.b, ']')
	}
	e.outcome(r)
	if r.Status != StatusUnknown {
		e.enum("status", r.Status)
	}
	e.str("exit_status", r.ExitStatus)
	if f := r.Failure; f != nil {
		e.key("failure")
		e.b = append(e.b, '{')
		e.str("reason", f.Reason)
		e.str("detail", f.Detail)
		e.rest(r.Extra, "failure", "reason", "detail")
		e.b = append(e.b, '}')
	}
	if r.Steps != nil {
		e.key("steps")
		e.b = append(e.b, '[')
		for i := range r.Steps {
			e.comma(i)
			e.step(&r.Steps[i])
		}
		e.b = append(e.b, ']')
	}
	if r.Temperature != nil {
		e.key("temperature")
		e.float(float64(*r.Temperature), 32, "/temperature")
	}
	e.object("template_kwargs", r.TemplateKwargs)
	e.object("metadata", r.Metadata)
	e.noteList(r.Notes)
	if o := r.Origin; o != (Origin{}) {
		e.key("origin")
		e.b = append(e.b, '{')
		e.str("file", o.File)
		if o.Line != 0 {
			e.int("line", o.Line)
		}
		if o.Index != 0 {
			e.int("index", o.Index)
		}
		e.str("format", o.Format)
		e.rest(r.Extra, "origin", "file", "line", "index", "format")
		e.b = append(e.b, '}')
	}
	var written []string
	for _, k := range []string{"outcome", "failure", "origin"} {
		if _, ok := r.Extra[k]; ok && (k != "failure" || r.Failure != nil) && (k != "origin" || r.Origin != (Origin{})) {
			written = append(written, k)
		}
	}
	rest := r.Extra
	if written != nil {
		rest = without(r.Extra, written...)
	}
	e.extra(rest, []string{"turnpack_version", "id", "group", "index", "instance", "messages", "turns", "status", "steps", "notes"})
	e.b = append(e.b, '}')
}

func (e *encoder) comma(i int) {
	if i > 0 {
		e.b = append(e.b, ',')
	}
}

func (e *encoder) enum(k string, v interface{ MarshalText() ([]byte, error) }) {
	b, err := v.MarshalText()
	if err != nil {
		e.fail("/"+k, "%s", err)
	}
	e.key(k)
	e.text(string(b), k)
}

func (e *encoder) object(k string, m map[string]json.RawMessage) {
	if m == nil {
		return
	}
	e.key(k)
	e.b = append(e.b, '{')
	e.extra(m, nil)
	e.b = append(e.b, '}')
}

func (e *encoder) outcome(r *Rollout) {
	o := &r.Outcome
	_, more := r.Extra["outcome"]
	if *o == (Outcome{}) && !more {
		return
	}
	e.key("outcome")
	e.b = append(e.b, '{')
	if o.Resolved != nil {
		e.key("resolved")
		e.b = strconv.AppendBool(e.b, *o.Resolved)
	}
	if o.Reward != nil {
		e.key("reward")
		e.float(*o.Reward, 64, "/outcome/reward")
	}
	if o.Verdict != VerdictUnknown {
		e.enum("verdict", o.Verdict)
	}
	e.str("reason", o.Reason)
	if o.Submission != nil {
		e.key("submission")
		e.text(*o.Submission, "/outcome/submission")
	}
	e.rest(r.Extra, "outcome", "verdict", "reason")
	e.b = append(e.b, '}')
}

func (e *encoder) step(s *StepScore) {
	e.b = append(e.b, '{')
	e.int("step", s.Step)
	if s.Score != nil {
		e.key("score")
		e.float(*s.Score, 64, "/steps/score")
	}
	if s.Votes != nil {
		e.key("votes")
		e.b = append(e.b, '[')
		for i := range s.Votes {
			e.comma(i)
			e.vote(&s.Votes[i])
		}
		e.b = append(e.b, ']')
	}
	e.str("reason", s.Reason)
	e.extra(s.Extra, []string{"step", "score", "votes", "reason"})
	e.b = append(e.b, '}')
}

func (e *encoder) vote(v *Vote) {
	e.b = append(e.b, '{')
	e.str("text", v.Text)
	if v.Score != nil {
		e.key("score")
		e.float(*v.Score, 64, "/steps/votes/score")
	}
	e.str("error", v.Error)
	if v.Millis != 0 {
		e.int("latency_ms", int(v.Millis))
	}
	if v.Tokens != 0 {
		e.int("tokens", v.Tokens)
	}
	e.b = append(e.b, '}')
}

func (e *encoder) noteList(notes []Note) {
	if notes == nil {
		return
	}
	e.key("notes")
	e.b = append(e.b, '[')
	for i, n := range notes {
		e.comma(i)
		e.b = append(e.b, '{')
		e.str("code", n.Code)
		if m, ok := n.Message.Get(); ok {
			e.int("message", m)
		}
		e.str("text", n.Text)
		e.b = append(e.b, '}')
	}
	e.b = append(e.b, ']')
}
