// Package same compares messages and JSON values.
package same

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// Digest is the digest of a message.
type Digest [16]byte

// DigestOf returns a digest of what a template would render of a message, so that a reply and its repetition in
// a later request have the same digest.
func DigestOf(m *rollout.Message) Digest {
	b := make([]byte, 0, 64+len(m.Content))
	put := func(s string) { b = append(strconv.AppendInt(b, int64(len(s)), 10), s...) }
	put(string(m.Role))
	put(m.Content)
	put(m.ToolCallID)
	for _, p := range m.Parts {
		if !p.IsText() {
			put(string(p.Raw))
		}
	}
	for _, c := range m.ToolCalls {
		put(c.Name)
		put(normalized(c.Arguments))
	}
	sum := sha256.Sum256(b)
	return Digest(sum[:16])
}

// normalized returns a JSON text with normalized white space and strings, since clients that parse the arguments
// of a call send them back reformatted.
func normalized(text string) string {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	out := make([]byte, 0, len(text))
	for {
		t, err := d.Token()
		if err == io.EOF {
			return string(out)
		}
		if err != nil {
			return text
		}
		if delim, ok := t.(json.Delim); ok {
			out = append(out, byte(delim))
			continue
		}
		b, _ := json.Marshal(t) // what was decoded encodes
		out = append(append(out, b...), ',')
	}
}

// JSON reports whether two values are equal apart from white space.
func JSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// Exact returns s, copied if more than an eighth of its length is spare capacity.
func Exact[T any](s []T) []T {
	if s == nil || cap(s)-len(s) <= len(s)/8 {
		return s
	}
	return append(make([]T, 0, len(s)), s...)
}
