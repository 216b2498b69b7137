package inspect

import (
	"bytes"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// attachments resolves the long texts that a sample stores separately: a string
// "attachment://<digest>", or "tc://<digest>" in early logs, refers to one.
type attachments struct {
	in     *format.File
	tables []format.Value
}

func attachmentsOf(in *format.File, sample format.Value) attachments {
	x := attachments{in: in}
	for _, table := range []format.Value{sample.Get("attachments"), sample.Path("transcript", "content")} {
		if table.Kind() == jsonscan.Object {
			x.tables = append(x.tables, table)
		}
	}
	return x
}

var refSchemes = []string{"attachment://", "tc://"}

// digestLen is the length of the hexadecimal digest after a scheme.
const digestLen = 32

// find returns the text that a string refers to, and whether the string is a reference.
func (x attachments) find(s string) (text format.Value, isRef bool) {
	for _, scheme := range refSchemes {
		key, ok := strings.CutPrefix(s, scheme)
		if !ok {
			continue
		}
		for _, table := range x.tables {
			if text := table.Get(key); text.Kind() == jsonscan.String {
				return text, true
			}
		}
		return format.Value{}, len(key) == digestLen
	}
	return format.Value{}, false
}

// resolve returns v with references resolved, at any depth, in arguments and images too. A
// reference to a missing text stays and is noted.
func (x attachments) resolve(v format.Value) format.Value {
	if raw := v.Raw(); !bytes.Contains(raw, []byte(refSchemes[0])) && !bytes.Contains(raw, []byte(refSchemes[1])) {
		return v
	}
	out, err := x.in.Parse(x.append(nil, v))
	if err != nil {
		return v // a text of the table would not parse in place
	}
	return out
}

func (x attachments) append(b []byte, v format.Value) []byte {
	switch v.Kind() {
	case jsonscan.String:
		text, isRef := x.find(v.String())
		switch {
		case text.Kind() == jsonscan.String:
			return append(b, text.Raw()...)
		case isRef:
			x.in.Note("attachment_missing", 0, "%s is not in the log", v.String())
		}
		return append(b, v.Raw()...)
	case jsonscan.Array:
		b = append(b, '[')
		for i, item := range v.Items() {
			if i > 0 {
				b = append(b, ',')
			}
			b = x.append(b, item)
		}
		return append(b, ']')
	case jsonscan.Object:
		b = append(b, '{')
		comma := ""
		for key, member := range v.Members() {
			b = append(append(append(b, comma...), format.Quote(key)...), ':')
			b = x.append(b, member)
			comma = ","
		}
		return append(b, '}')
	}
	return append(b, v.Raw()...)
}
