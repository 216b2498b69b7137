package tokenize

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// Counter counts contexts of one rollout as Encoder.Count does and remembers the
// stretches of text between control tokens, so that a window that moves over a
// conversation encodes each message about once. It is for one goroutine.
type Counter struct {
	e      *Encoder
	r      *rollout.Rollout
	pieces *pieceEncoder
	shown  []rollout.Message // of the call under way
	cuts   []string          // control tokens that the template was seen to write
	safe   map[rollout.TokenID]bool
	counts map[string]int // tokens of a stretch, by its text and the origin of its bytes
	key    []byte
}

// Counter returns a counter for contexts of r, shown with its tools and template
// variables.
func (e *Encoder) Counter(r *rollout.Rollout) *Counter {
	c := &Counter{e: e, r: r, safe: map[rollout.TokenID]bool{}, counts: map[string]int{}}
	added := e.model.Tokenizer.Vocab().Added()
	for _, a := range added {
		c.safe[a.ID] = a.Special && !a.RStrip && !a.SingleWord && !a.Normalized && standsAlone(a, added)
	}
	c.pieces = newPieceEncoder(e.model.Tokenizer, e.opts.Specials, func(m int32) bool {
		return c.shown[m].Sampled == rollout.SampledByPolicy
	})
	return c
}

// standsAlone says that a is found wherever its text stands, so that the text
// behind it encodes by itself: no added token holds or overlaps it.
func standsAlone(a AddedToken, added []AddedToken) bool {
	for _, b := range added {
		if b.ID != a.ID && strings.Contains(b.Content, a.Content) {
			return false
		}
		for k := 1; k < len(a.Content); k++ {
			if strings.HasSuffix(b.Content, a.Content[:k]) {
				return false
			}
		}
	}
	return len(a.Content) > 0
}

// Count is the number of tokens of the prompt that shows messages, generation
// prompt included.
func (c *Counter) Count(ctx context.Context, messages []rollout.Message) (int, error) {
	text, err := c.e.render(ctx, c.r, messages)
	if err != nil {
		return 0, err
	}
	c.shown = messages
	total, from, field := 0, 0, 0
	for at := 0; at < len(text.text); {
		// The next run of scaffold: control tokens inside it were written by the
		// template, whatever messages say.
		for field < len(text.fields) && text.fields[field].start <= at {
			at = max(at, text.fields[field].end)
			field++
		}
		end := len(text.text)
		if field < len(text.fields) {
			end = text.fields[field].start
		}
		for {
			cut := c.nextCut(text.text[at:end])
			if cut == 0 {
				break
			}
			at += cut
			n, err := c.stretch(&text, from, at)
			if err != nil {
				return 0, err
			}
			total += n
			from = at
		}
		at = end
	}
	n, err := c.stretch(&text, from, len(text.text))
	return total + n, err
}

// nextCut returns the end of the first known control token in s, 0 for none.
func (c *Counter) nextCut(s string) int {
	first, end := len(s), 0
	for _, cut := range c.cuts {
		if i := strings.Index(s[:min(len(s), first+len(cut))], cut); i >= 0 && i < first {
			first, end = i, i+len(cut)
		}
	}
	return end
}

// stretch counts text[from:to].
func (c *Counter) stretch(r *rendering, from, to int) (int, error) {
	if from == to {
		return 0, nil
	}
	c.key = append(c.key[:0], r.text[from:to]...)
	for i := r.after(from); i < len(r.fields) && r.fields[i].start < to; i++ {
		f := r.fields[i]
		c.key = binary.AppendVarint(c.key, int64(max(f.start, from)-from))
		c.key = binary.AppendVarint(c.key, int64(min(f.end, to)-from))
		sampled := f.message >= 0 && c.pieces.sampled(f.message)
		c.key = append(c.key, byte(f.part)<<1|boolByte(sampled))
	}
	c.key = binary.LittleEndian.AppendUint32(c.key, uint32(to-from))
	if n, ok := c.counts[string(c.key)]; ok {
		return n, nil
	}
	var cols columns
	err := c.pieces.encode(&cols, r, from, to, func(at, n int) { c.learn(r, at, cols.ids[n-1]) })
	if err != nil {
		return 0, err
	}
	c.counts[string(c.key)] = cols.len()
	return cols.len(), nil
}

// learn remembers a control token that ends at byte at of the scaffold.
func (c *Counter) learn(r *rendering, at int, id rollout.TokenID) {
	content := c.pieces.added[id].Content
	start := at - len(content)
	if !c.safe[id] || start < 0 || r.text[start:at] != content || slices.Contains(c.cuts, content) {
		return
	}
	if i := r.after(start); i < len(r.fields) && r.fields[i].start < at {
		return
	}
	c.cuts = append(c.cuts, content)
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}
