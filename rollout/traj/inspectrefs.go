package traj

import (
	"bytes"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

// inspectRefs are the long texts that a sample keeps apart: a string that is
// "attachment://<digest>", or "tc://<digest>" in early logs, stands for one.
type inspectRefs struct {
	j      *fileReader
	tables []value
}

func (j *fileReader) inspectRefs(sample value) inspectRefs {
	x := inspectRefs{j: j}
	for _, table := range []value{sample.Get("attachments"), sample.Path("transcript", "content")} {
		if table.Kind() == jsonscan.Object {
			x.tables = append(x.tables, table)
		}
	}
	return x
}

var refSchemes = []string{"attachment://", "tc://"}

// digestLen is the length of the hexadecimal digest after a scheme.
const digestLen = 32

// find returns the text that a string stands for, and whether it is a
// reference at all.
func (x inspectRefs) find(s string) (text value, isRef bool) {
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
		return value{}, len(key) == digestLen
	}
	return value{}, false
}

// resolve puts the texts in place, at any depth of v, in arguments and images
// too. What is missing stays a reference and is noted.
func (x inspectRefs) resolve(v value) value {
	if raw := v.Raw(); !bytes.Contains(raw, []byte(refSchemes[0])) && !bytes.Contains(raw, []byte(refSchemes[1])) {
		return v
	}
	var d jsonscan.Doc
	out, err := d.Parse(x.append(nil, v), jsonscan.Options{Depth: x.j.r.opt.Limits.Depth, NonFinite: true})
	if err != nil {
		return v // the tables hold what would not parse in place
	}
	return out
}

func (x inspectRefs) append(b []byte, v value) []byte {
	switch v.Kind() {
	case jsonscan.String:
		text, isRef := x.find(v.String())
		switch {
		case text.Kind() == jsonscan.String:
			return append(b, text.Raw()...)
		case isRef:
			x.j.note("attachment_missing", 0, "%s is not in the log", v.String())
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
			b = append(append(append(b, comma...), quote(key)...), ':')
			b = x.append(b, member)
			comma = ","
		}
		return append(b, '}')
	}
	return append(b, v.Raw()...)
}
