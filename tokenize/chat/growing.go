package chat

import (
	"context"
	"slices"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat/internal/eval"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Growing renders the prefixes of one conversation one after the other, each the
// same as Render would. What a longer prefix writes like the one before it is
// not written again, where the run before shows that the template cannot do
// anything else: for most templates each message is then rendered about once,
// however many prefixes there are. It is for one goroutine.
type Growing struct {
	t     *Template
	c     *Conversation
	in    Input
	trace eval.Trace
	links linker
	last  int  // messages that were rendered last
	again bool // and others before them
}

// Growing returns a renderer of prefixes of c with an input. Its
// Reuse and ContinueFinalMessage have no effect.
func (t *Template) Growing(c *Conversation, in Input) *Growing {
	if in.Now.IsZero() {
		in.Now = time.Now()
	}
	in.Reuse, in.ContinueFinalMessage = nil, false
	return &Growing{t: t, c: c, in: in}
}

// over makes c the conversation, if it is one with g's: prefixes of the same.
func (g *Growing) over(c *Conversation) bool {
	a, b := g.c.messages.Items, c.messages.Items
	if !sameStart(a, b) {
		return false
	}
	if len(b) > len(a) {
		g.c = c
	}
	return true
}

// sameStart reports whether messages are prefixes of the same.
func sameStart(a, b []value.Value) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

// Render renders the first n messages. The result is valid until the next call
// only. Its first kept bytes, and their origins, are those of the result before.
func (g *Growing) Render(ctx context.Context, n int) (r *Result, kept int, err error) {
	if err := g.t.made(g.c); err != nil {
		return nil, 0, err
	}
	c := g.c.Prefix(n)
	run := g.t.input(c, c.messages, g.in)
	run.Trace, run.Messages = &g.trace, g.c.messages.Items
	if failure := g.t.prog.Run(ctx, run, nil); failure != nil {
		g.last, g.again, g.links = 0, false, linker{}
		return nil, 0, g.t.fail(failure.Fault, failure.Pos)
	}
	t := &g.trace
	r = &Result{Text: textOf(t.Text), Generation: t.Gens, Extents: t.Messages, runs: t.Runs, tracked: c.tracked()}
	kept = t.Kept
	if g.t.links {
		older, _ := t.LeftOut()
		kept = min(kept, g.links.link(c, t.Runs, t.Messages, older))
		r.runs = g.links.runs
	}
	g.again = g.last > 0
	if g.last < n { // what was left out knew nothing of the messages that are new
		r.older.runs, r.older.extents = t.LeftOut()
	}
	g.last = n
	return r, kept, nil
}

// Check renders the last prefix once more, from its first message on, and says in
// an error of kind internal if anything differs. What Render leaves out rests on
// an argument about programs; this is the proof for one conversation, at the
// price of one rendering.
func (g *Growing) Check(ctx context.Context) error {
	if !g.again {
		return nil
	}
	want, err := g.t.Render(ctx, g.c.Prefix(g.last), g.in)
	if err != nil {
		return err
	}
	t := &g.trace
	runs := t.Runs
	if g.t.links {
		runs = g.links.runs
	}
	if want.Text != textOf(t.Text) || !slices.Equal(want.runs, runs) || !slices.Equal(want.Extents, t.Messages) {
		return rollout.Errorf(rollout.KindInternal, rollout.Where{}, "the first %d messages render otherwise than they did when the conversation grew", g.last).
			WithFix("please report this, with the chat template")
	}
	return nil
}
