package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// CallJoin makes one rollout of recorded calls: each distinct message occurs once, and a
// turn saw exactly its request.
type CallJoin struct {
	out *rollout.Rollout
	at  map[[16]byte][]int // digest of a message → indices where it occurs
	// shown holds messages that requests repeat with another reasoning than the reply had;
	// usually empty.
	shown map[reasoned]*rollout.Message
}

type reasoned struct {
	at        int
	reasoning string
}

// NewCallJoin returns a CallJoin that adds calls to out.
func NewCallJoin(out *rollout.Rollout) *CallJoin {
	return &CallJoin{out: out, at: map[[16]byte][]int{}, shown: map[reasoned]*rollout.Message{}}
}

// OtherSettings reports whether call c had other tools or template variables than run, and
// returns the note that says so.
func OtherSettings(call string, c, run *rollout.Rollout) (n rollout.Note, is bool) {
	same := func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }
	switch {
	case !slices.EqualFunc(c.Tools, run.Tools, same):
		n.Code, n.Text = "tools_differ", fmt.Sprintf("call %q was given %d tools that are not those of the first call", call, len(c.Tools))
	case !maps.EqualFunc(c.TemplateKwargs, run.TemplateKwargs, same):
		n.Code, n.Text = "template_kwargs_differ", fmt.Sprintf("call %q was made with other chat-template variables than the first call", call)
	default:
		return n, false
	}
	n.Text += ": what it saw cannot be rendered"
	return n, true
}

// Add adds messages before the first turn, the request, if they are new, and all later
// messages.
func (c *CallJoin) Add(messages []rollout.Message, turns []rollout.Turn) {
	var parts []rollout.ContextPart
	used := map[int]bool{}
	next := 0 // the index expected if the history simply continues
	request := turns[0].Message
	for i := range messages {
		k := len(c.out.Messages)
		if i < request {
			k = c.find(&messages[i], next, used)
		} else {
			c.append(&messages[i])
		}
		if len(turns) > 0 && turns[0].Message == i {
			c.turn(turns[0], k, parts)
			turns = turns[1:]
		}
		used[k] = true
		next = k + 1
		if messages[i].Reasoning == c.out.Messages[k].Reasoning {
			parts = AppendRange(parts, k)
		} else {
			parts = append(parts, rollout.ContextPart{From: k, To: k + 1, Message: c.show(&messages[i], k)})
		}
	}
}

// show returns message k in the form in which a request repeats it.
func (c *CallJoin) show(m *rollout.Message, k int) *rollout.Message {
	key := reasoned{k, m.Reasoning}
	if c.shown[key] == nil {
		shown := *m // a copy: a pointer into the request would keep the request in memory
		c.shown[key] = &shown
	}
	return c.shown[key]
}

// turn adds the turn of message k with the parts as its context, unless the context is
// unknown.
func (c *CallJoin) turn(t rollout.Turn, k int, parts []rollout.ContextPart) {
	t.Message = k
	t.Context = rollout.Context{Unknown: t.Context.Unknown}
	if history := len(parts) == 1 && parts[0].From == 0 && parts[0].To == k && parts[0].Message == nil; !history && !t.Context.Unknown {
		t.Context.Parts = slices.Clone(parts)
	}
	c.out.Turns = append(c.out.Turns, t)
}

// find returns the index of a request's message in the list, adding a new one. Of equal
// messages it takes index next, else the first not used by this request.
func (c *CallJoin) find(m *rollout.Message, next int, used map[int]bool) int {
	places := c.at[RenderedDigest(m)]
	if slices.Contains(places, next) && !used[next] {
		return next
	}
	for _, k := range places {
		if !used[k] {
			return k
		}
	}
	return c.append(m)
}

func (c *CallJoin) append(m *rollout.Message) int {
	d := RenderedDigest(m)
	k := len(c.out.Messages)
	c.at[d] = append(c.at[d], k)
	c.out.Messages = append(c.out.Messages, *m)
	return k
}
