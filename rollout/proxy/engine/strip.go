package engine

import "github.com/turnpack/turnpack/internal/jsonscan"

// cut is a part of an engine's text that the client did not ask for, and its replacement.
type cut struct {
	from, to int
	by       string
}

// cuts are the cuts of one reply or event, in order.
type cuts struct {
	list  []cut
	chars int // bytes removed minus bytes inserted
}

func (c *cuts) reset() { c.list, c.chars = c.list[:0], 0 }

func (c *cuts) add(from, to int, by string) {
	c.list = append(c.list, cut{from, to, by})
	c.chars += to - from - len(by)
}

// neighbours tracks the members of an object while some are cut. A cut member takes the comma before it; those
// before the first kept member take the comma after them.
type neighbours struct {
	kept bool // an earlier member is kept
	end  int  // of the previous member
	open int  // 1 + index of the cut that ends where the next member begins, 0 = none
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

// replace replaces the value of a kept member.
func (c *cuts) replace(value jsonscan.Value, by string) {
	c.add(value.Offset(), value.Offset()+value.Size(), by)
}

// apply appends text with the cuts applied.
func (c *cuts) apply(dst, text []byte) []byte {
	from := 0
	for _, x := range c.list {
		dst = append(append(dst, text[from:x.from]...), x.by...)
		from = x.to
	}
	return append(dst, text[from:]...)
}

// rawRoom is the size of the buffers that the stripped events of a reply share.
const rawRoom = 8 << 10

// strip returns the engine's text without the parts that the client did not ask for, as marked in d.cuts; empty
// if nothing is left.
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
