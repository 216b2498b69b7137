package clients

import (
	"slices"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// maxSteps bounds how often the records above a branch are gone through, and the parts of
// all contexts: sessions of people have a few branches.
const maxSteps = 1 << 22

// A chain is a session whose records say what they go on from: a reply saw the messages of
// the records above it.
type chain struct {
	t     *thread.Thread
	links map[string]*link
	leaf  string // the record that shown is of
	shown []rollout.ContextPart
	lost  string
	steps int
	parts map[int][]rollout.ContextPart // contexts by message
}

// A link is a record in the chain.
type link struct {
	parent   string
	from, to int    // its messages
	resets   bool   // what was above it is not shown any more
	hidden   bool   // its messages are not shown
	lost     string // why what is shown from here on is not known
}

func newChain(in *format.File) *chain {
	return &chain{t: thread.New(in), links: map[string]*link{}, parts: map[int][]rollout.ContextPart{}}
}

// goOn makes the records down to parent what is shown.
func (c *chain) goOn(parent string) error {
	if parent == c.leaf {
		return nil
	}
	var path []*link
	lost := ""
	for id := parent; id != ""; {
		l := c.links[id]
		if l == nil {
			lost = "a record that others go on from is missing"
			break
		}
		if c.steps++; c.steps > maxSteps {
			return c.t.In.Fail(c.t.At(), "/parentId", "the branches of the session are too many to follow")
		}
		path = append(path, l)
		if l.resets {
			break
		}
		id = l.parent
	}
	slices.Reverse(path)
	c.shown, c.lost, c.leaf = nil, lost, parent
	for _, l := range path {
		c.show(l)
	}
	return nil
}

// show adds a link to what is shown.
func (c *chain) show(l *link) {
	if l.resets {
		c.shown, c.lost = nil, ""
	}
	if c.lost == "" {
		c.lost = l.lost
	}
	if l.to > l.from && !l.hidden {
		if n := len(c.shown); n > 0 && c.shown[n-1].To == l.from {
			c.shown[n-1].To = l.to
		} else {
			c.shown = append(c.shown, rollout.ContextPart{From: l.from, To: l.to})
		}
	}
}

// add takes a record: it goes on from parent, and say adds its messages.
func (c *chain) add(id, parent string, l *link, say func() error) error {
	if err := c.goOn(parent); err != nil {
		return err
	}
	l.parent, l.from = parent, len(c.t.Rollout.Messages)
	err := say()
	if err != nil {
		l.lost = "a message is not understood and was left out"
		c.t.Rollout.Messages = c.t.Rollout.Messages[:l.from]
	}
	l.to = len(c.t.Rollout.Messages)
	for k := l.from; k < l.to; k++ {
		if m := &c.t.Rollout.Messages[k]; m.Role == rollout.RoleAssistant && m.Sampled == rollout.SampledByPolicy {
			c.saw(k, l.from)
			break // the messages after it in the record are results of its calls
		}
	}
	c.show(l)
	if id != "" {
		c.links[id], c.leaf = l, id
	}
	return err
}

// saw keeps what reply k saw, whose record begins at message from.
func (c *chain) saw(k, from int) {
	if c.lost != "" {
		c.t.Unseen[k] = true
		if c.t.Lost == "" {
			c.t.Lost = c.lost
			c.t.In.Note("context_lost", rollout.At(k), "%s: what the model saw from here on is not known", c.lost)
		}
		return
	}
	plain := k == 0 && len(c.shown) == 0 || len(c.shown) == 1 && c.shown[0].From == 0 && c.shown[0].To == k
	if c.steps += len(c.shown); !plain && c.steps < maxSteps {
		c.parts[k] = append([]rollout.ContextPart{}, c.shown...)
	} else if !plain {
		c.t.Unseen[k] = true
	}
}

// finish completes the rollout.
func (c *chain) finish() error {
	c.t.Lost = ""
	return c.t.EmitWith(true, c.parts)
}
