package prompt

import (
	"slices"
	"strings"
	"unicode"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/completion"
	"github.com/turnpack/turnpack/tokenize/internal/render"
	"github.com/turnpack/turnpack/tokenize/internal/tokens"
)

// cut is a place in a prompt after a control token that the template wrote: the text after it is
// encoded separately.
type cut struct{ at, ids int }

// continuation is a rendered request to be continued from a point of a tree.
type continuation struct {
	w        *writer
	rule     *completion.Rule
	text     render.Rendering
	messages []rollout.Message
}

func (c *continuation) sampled(m int32) bool {
	return c.messages[m].Sampled == rollout.SampledByPolicy
}

// ownReply reports whether the bytes [from, to) consist of the template's text and of fields of
// message m that end there.
func (c *continuation) ownReply(from, to int, m int32) bool {
	for _, f := range c.text.Fields[c.text.FieldAfter(from):] {
		if f.Start >= to {
			break
		}
		if f.Message != m && f.Part != render.PartRole || f.End > to {
			return false
		}
	}
	return true
}

// encoded holds the ids of the text from a byte on.
type encoded struct {
	from    int
	ids     []rollout.TokenID
	offsets []int32
}

func (e *encoded) start(i int) int { return e.from + int(e.offsets[2*i]) }
func (e *encoded) end(i int) int   { return e.from + int(e.offsets[2*i+1]) }

// encode encodes the text from byte from on under the guard.
func (c *continuation) encode(from int) (encoded, error) {
	p := tokens.NewEncoder(c.w.model.Tokenizer, c.w.added, c.w.opts.Encode.Specials == "parity")
	p.Whole, p.Sampled = true, c.sampled
	var runs tokens.Compact
	if err := p.Encode(&runs, &c.text, from, len(c.text.Text), p.PrecedingContext(&c.text, from)); err != nil {
		return encoded{}, err
	}
	return encoded{from, runs.IDs, p.Buf.Offsets}, nil
}

// continueFrom sets p to the prompt that continues from a point, or returns the reason why it cannot.
func (c *continuation) continueFrom(p *Prompt, from point) (string, error) {
	since := from.at
	if from.reply { // the reply is to be proved
		since = from.node.prompt
	}
	e, err := c.encode(since)
	if err != nil {
		return "", err
	}
	first := 0
	if from.reply {
		var why string
		if first, why, err = c.replyEnd(from, &e); why != "" || err != nil {
			return why, err
		}
	}
	p.set(from, c, &e, first, from.at, since, 0)
	return "", nil
}

// set sets p to the ids up to from, followed by the ids of e from first on, which spell the text
// from byte at on. In from's path that text is moved bytes further on; fields are stored from byte
// since of the path on.
func (p *Prompt) set(from point, c *continuation, e *encoded, first, at, since, moved int) {
	p.from, p.ids = from, slices.Clip(e.ids[first:])
	p.IDs = append(from.node.path(from.ids), p.ids...)
	p.Shared, p.text, p.since = from.ids, strings.Clone(c.text.Text[at:]), since
	p.fields, p.cuts = render.Rendering{}.WithFields(c.text.Fields[c.text.FieldAfter(since-moved):], moved).Fields, nil
	for i := first; i < len(e.ids); i++ {
		if c.w.added.Cuts(e.ids[i]) {
			p.cuts = append(p.cuts, cut{e.end(i) + moved, from.ids + i - first + 1})
		}
	}
}

// replyEnd returns the index in e of the first id after the reply at from. e begins with that
// reply.
func (c *continuation) replyEnd(from point, e *encoded) (first int, why string, err error) {
	n := from.node
	for first < len(e.ids) && e.end(first) <= from.at {
		first++
	}
	if first < len(e.ids) && e.start(first) < from.at {
		// A control token that includes the white space after it may end there.
		a, added := c.w.added.Find(e.ids[first])
		if !added || !a.RStrip || !strings.HasSuffix(c.text.Text[:from.at], a.Content) || strings.TrimLeftFunc(c.text.Text[from.at:e.end(first)], unicode.IsSpace) != "" {
			return 0, reasonJoined, nil
		}
		first++
	}
	same, err := c.sameControls(n, e, first)
	if err == nil && !same {
		why = reasonControl
	}
	return first, why, err
}

// sameControls reports whether the reply of n has exactly the control tokens that the template
// wrote there, among the first ids of e.
func (c *continuation) sameControls(n *node, e *encoded, first int) (bool, error) {
	own := n.promptIDs - n.kept
	tail, output := n.tail(n.kept, n.ids[:own]), n.ids[own:]
	i := 0
	next := func() int { // the template's
		for i < first {
			if a, added := c.w.added.Find(e.ids[i]); added && a.Special {
				return i
			}
			i++
		}
		return -1
	}
	for k, id := range output {
		if a, added := c.w.added.Find(id); !added || !a.Special {
			continue
		}
		j := next()
		if j < 0 || e.ids[j] != id {
			return false, nil
		}
		before, err := c.w.spell(tail, output[:k])
		if err != nil {
			return false, err
		}
		if at := n.prompt + len(before); at < e.start(j) || at >= e.end(j) {
			return false, nil
		}
		i++
	}
	return next() < 0, nil
}

// keep sets p to what continues from the reply of n, the last among the messages, although the
// template writes the reply or the text before it differently. It returns false if the text does
// not show where the reply ends.
func (c *continuation) keep(p *Prompt, n *node, last int) (bool, error) {
	_, end, ok := c.text.Extent(int32(last), render.PartScaffold, 0)
	if !ok {
		return false, nil
	}
	after := c.text.Text[end:c.text.Foreign(int32(last), end)]
	stop := c.w.stopOf(n)
	written := stop.Content
	if !strings.Contains(after, written) { // another token replaces it
		written = c.w.shownStop(stop.ID)
	}
	if stop.Content == "" || written == "" {
		written = c.rule.StopIn(after, &c.messages[last])
	}
	k := strings.Index(after, written)
	if written == "" || k < 0 {
		return false, nil
	}
	at := end + k
	if stop.Content != "" {
		at += len(written)
	}
	if stop.RStrip {
		at = len(c.text.Text) - len(strings.TrimLeftFunc(c.text.Text[at:], unicode.IsSpace))
	}
	e, err := c.encode(at)
	if err != nil {
		return false, err
	}
	p.set(point{n, n.end(), n.kept + len(n.ids), true, true}, c, &e, 0, at, n.end(), n.end()-at)
	return true, nil
}

// stopOf returns the control token at the end of n's reply, the zero value if there is none.
func (w *writer) stopOf(n *node) engine.AddedToken {
	if len(n.ids) > n.promptIDs-n.kept {
		if a, added := w.added.Find(n.ids[len(n.ids)-1]); added && a.Special {
			return a
		}
	}
	return engine.AddedToken{}
}

// shownStop returns the token that the template shows in history in place of the stop token id, ""
// if there is none.
func (w *writer) shownStop(id rollout.TokenID) string {
	if shown, ok := w.rewrites()[id]; ok {
		a, _ := w.added.Find(shown)
		return a.Content
	}
	return ""
}
