package clients

import (
	"slices"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// maxSteps bounds the work for a session: the ancestors visited and the context parts
// stored. Real sessions have a few branches.
const maxSteps = 1 << 22

const tooMany = "the branches of the session are too many to follow"

// chain is a session whose records name their parents: a reply saw the messages of its
// ancestors.
type chain struct {
	t     *thread.Thread
	links map[string]*link
	leaf  string // the record at which shown ends
	shown []rollout.ContextPart
	lost  string
	steps int
	parts map[int][]rollout.ContextPart // contexts by message index
}

// link is a record in the chain.
type link struct {
	parent   string
	from, to int    // its messages
	resets   bool   // earlier messages are not shown after it
	hidden   bool   // its messages are not shown
	lost     string // why the context from here on is unknown
}

func newChain(in *format.File) *chain {
	return &chain{t: thread.New(in), links: map[string]*link{}, parts: map[int][]rollout.ContextPart{}}
}

// showUpTo sets shown to the messages of the records up to parent.
func (c *chain) showUpTo(parent string) error {
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
			return c.t.In.Fail(c.t.At(), "/parentId", tooMany)
		}
		path = append(path, l)
		id = l.parent
	}
	slices.Reverse(path)
	c.shown, c.lost, c.leaf = nil, lost, parent
	for _, l := range path {
		c.show(l)
	}
	return nil
}

// show appends the messages of a link to shown.
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

// add adds a record with the given parent; say adds its messages.
func (c *chain) add(id, parent string, l *link, say func()) error {
	if err := c.showUpTo(parent); err != nil {
		return err
	}
	l.parent, l.from = parent, len(c.t.Rollout.Messages)
	say()
	err := c.t.TakeBack(l.from)
	if err != nil {
		l.lost = "a message is not understood and was left out"
	}
	l.to = len(c.t.Rollout.Messages)
	for k := l.from; k < l.to; k++ {
		if m := &c.t.Rollout.Messages[k]; m.Role == rollout.RoleAssistant && m.Sampled == rollout.SampledByPolicy {
			c.saw(k, l.from)
			break // later messages of the record are results of this reply's calls
		}
	}
	c.show(l)
	if id != "" {
		c.links[id], c.leaf = l, id
	}
	return err
}

// saw stores the context of reply k.
func (c *chain) saw(k, from int) {
	why := c.lost
	if why == "" {
		plain := k == 0 || len(c.shown) == 1 && c.shown[0].From == 0 && c.shown[0].To == k
		if c.steps += len(c.shown); plain {
			return
		}
		if c.steps < maxSteps {
			c.parts[k] = append([]rollout.ContextPart{}, c.shown...)
			return
		}
		why = tooMany
	}
	c.t.Unseen[k] = true
	if c.t.Lost == "" {
		c.t.Lost = why
		c.t.In.Note("context_lost", rollout.At(k), "%s: what the model saw from here on is not known", why)
	}
}

// finish emits the rollout.
func (c *chain) finish() error {
	c.t.Lost = ""
	return c.t.EmitWith(true, c.parts)
}
