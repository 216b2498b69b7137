package engine

import "github.com/turnpack/turnpack/internal/jsonscan"

// cut is a part of an engine's words that the client did not ask for, and what stands there
// instead.
type cut struct {
	from, to int
	by       string
}

// cuts are those of one reply or event, in its order.
type cuts struct {
	list  []cut
	chars int // that are left out, less those put there
}

func (c *cuts) reset() { c.list, c.chars = c.list[:0], 0 }

func (c *cuts) add(from, to int, by string) {
	c.list = append(c.list, cut{from, to, by})
	c.chars += to - from - len(by)
}

// neighbours follows the members of an object of which some go, each with the comma before it;
// those before the first that stays, with the comma after them.
type neighbours struct {
	kept bool // one before stays
	end  int  // of the member before
	open int  // 1 + index of the cut that the next member ends, 0 = none
}

func (c *cuts) member(o *neighbours, key, value jsonscan.Value, keep bool) {
	from, to := key.Offset(), value.Offset()+value.Size()
	if o.open > 0 {
		last := &c.list[o.open-1]
		c.chars += from - last.to
		last.to, o.open = from, 0
	}
	switch {
	case keep:
		o.kept = true
	case o.kept:
		c.add(o.end, to, "")
	default:
		c.add(from, to, "")
		o.open = len(c.list)
	}
	o.end = to
}

// replace keeps the key of a member that stays, and puts another value in place of its own.
func (c *cuts) replace(value jsonscan.Value, by string) {
	c.add(value.Offset(), value.Offset()+value.Size(), by)
}

// apply appends text without what was cut.
func (c *cuts) apply(dst, text []byte) []byte {
	from := 0
	for _, x := range c.list {
		dst = append(append(dst, text[from:x.from]...), x.by...)
		from = x.to
	}
	return append(dst, text[from:]...)
}

// rawRoom is how many bytes of events of a reply share their memory.
const rawRoom = 8 << 10

// strip is the engine's own words without what the client did not ask for, which d.cuts
// tells; empty where nothing is left.
func (d *decoder) strip(r *Request, reply *members, text []byte, stream bool) []byte {
	if stream && !r.KeepUsage && len(d.choices) == 0 && !reply.usage.IsNull() {
		return []byte{}
	}
	n := len(text) - d.cuts.chars
	if cap(d.raw) < n {
		d.raw = make([]byte, 0, max(n, rawRoom))
	}
	out := d.cuts.apply(d.raw[:0], text)
	d.raw = out[len(out):]
	return out[:len(out):len(out)]
}
