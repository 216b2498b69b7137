package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/turnpack/turnpack/rollout"
)

// TaskOf digests the task description of a data set, ignoring white space between tokens.
func TaskOf(name string, of ...Value) [16]byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%q", name)
	for _, v := range of {
		b.WriteByte('\n')
		_ = json.Compact(&b, v.Clone()) // an absent value adds nothing
	}
	d := sha256.Sum256(b.Bytes())
	return [16]byte(d[:16])
}

// Digest returns a digest of messages: their roles, texts, and the names and arguments of
// calls.
func Digest(messages []rollout.Message) [16]byte {
	h := sha256.New()
	var size [8]byte
	put := func(s string) {
		binary.LittleEndian.PutUint64(size[:], uint64(len(s)))
		h.Write(size[:])
		h.Write([]byte(s))
	}
	for i := range messages {
		m := &messages[i]
		put(string(m.Role))
		put(m.Content)
		put(strconv.Itoa(len(m.ToolCalls)))
		for _, c := range m.ToolCalls {
			put(c.Name)
			put(c.Arguments)
		}
	}
	var out [16]byte
	copy(out[:], h.Sum(nil))
	return out
}

// RenderedDigest returns a digest of what a template would render, so that a reply and its
// repetition in a later request are equal even if one is a string and the other a list with
// one text.
func RenderedDigest(m *rollout.Message) [16]byte {
	c := *m
	c.Content = c.Content + "\x00" + c.ToolCallID
	for _, p := range c.Parts {
		if !p.IsText() {
			c.Content += "\x00" + string(p.Raw)
		}
	}
	return Digest([]rollout.Message{c})
}
