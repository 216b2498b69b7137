package render

import "sort"

// Part is the kind of message text that a byte belongs to.
type Part uint8

const (
	PartScaffold  Part = iota // the template's own text
	PartContent               // a message's content
	PartReasoning             // a message's reasoning
	PartToolCall              // name, id or arguments of a tool call
	partOther                 // other recorded text: tool schemas, names, documents
	PartRole                  // a message's role: recorded, but part of the header
	PartName                  // a message's name, part of the header too
)

// Text reports whether p is text of a message: content, reasoning or a tool call.
func (p Part) Text() bool { return p == PartContent || p == PartReasoning || p == PartToolCall }

// Parts is a set of parts.
type Parts uint8

// Has reports whether p is in s.
func (s Parts) Has(p Part) bool { return s&(1<<p) != 0 }

// Add adds p to s.
func (s *Parts) Add(p Part) { *s |= 1 << p }

// Field is a range of bytes of a rendering that came from recorded data.
type Field struct {
	Start, End int
	Message    int32 // index into Rollout.Messages, −1 = none (schemas, notes)
	Part       Part
	Call       uint16 // for a tool call, its index in the message
}

// Rendering is a text with the origin of its bytes: ascending fields without overlap, everything
// between them scaffold.
type Rendering struct {
	Text   string
	Fields []Field
	// Before is the text that precedes this one, nil if none does.
	Before *Rendering
}

// Tail returns the scaffold at the end of r.
func (r *Rendering) Tail() string {
	if n := len(r.Fields); n > 0 {
		return r.Text[r.Fields[n-1].End:]
	}
	return r.Text
}

// FieldAfter returns the index of the first field that ends after byte at.
func (r *Rendering) FieldAfter(at int) int { return fieldAfter(r.Fields, at) }

func fieldAfter(fields []Field, at int) int {
	return sort.Search(len(fields), func(i int) bool { return fields[i].End > at })
}

// FieldAfterNear is FieldAfter(at) with a linear search from field i on.
func (r *Rendering) FieldAfterNear(i, at int) int {
	if i > 0 && r.Fields[i-1].End > at {
		return r.FieldAfter(at)
	}
	for i < len(r.Fields) && r.Fields[i].End <= at {
		i++
	}
	return i
}

// WithFields returns r with fields appended, moved by at bytes.
func (r Rendering) WithFields(fields []Field, at int) Rendering {
	for _, f := range fields {
		f.Start, f.End = f.Start+at, f.End+at
		r.Fields = append(r.Fields, f)
	}
	return r
}

// Take appends the bytes [from, to) of src with their origin.
func (r *Rendering) Take(src *Rendering, from, to int) {
	*r = r.WithFields(src.Cut(from, to).Fields, len(r.Text))
	r.Text += src.Text[from:to]
}

// Cut returns the bytes [from, to) with their origin.
func (r *Rendering) Cut(from, to int) Rendering {
	out := Rendering{Text: r.Text[from:to]}
	for k := r.FieldAfter(from); from < to && k < len(r.Fields) && r.Fields[k].Start < to; k++ {
		out.Fields = append(out.Fields, r.Fields[k].Within(from, to))
	}
	return out
}

// Extent returns the range, in the text from byte from on, from the first to the last byte of
// message m's text (content, reasoning, tool calls; only that part if only is not PartScaffold),
// and whether there is any.
func (r *Rendering) Extent(m int32, only Part, from int) (start, end int, ok bool) {
	for _, f := range r.Fields[r.FieldAfter(from):] {
		if f.Message == m && f.Part.Text() && (only == PartScaffold || f.Part == only) {
			if !ok {
				start, ok = max(f.Start, from), true
			}
			end = f.End
		}
	}
	return start, end, ok
}

// Foreign returns the beginning of the first recorded text after byte at that is neither of message
// m nor a role, or the end of the text.
func (r *Rendering) Foreign(m int32, at int) int {
	for _, f := range r.Fields[r.FieldAfter(at):] {
		if f.Message != m && f.Part != PartRole {
			return max(f.Start, at)
		}
	}
	return len(r.Text)
}

// Opens reports whether field i is the first with text of its message.
func (r *Rendering) Opens(i int) bool {
	if !r.Fields[i].Part.Text() {
		return false
	}
	for k := i - 1; k >= 0 && r.Fields[k].Message == r.Fields[i].Message; k-- {
		if r.Fields[k].Part.Text() {
			return false
		}
	}
	return true
}

// CommonPrefix returns the number of leading bytes in which a and b agree, in text and origin.
func CommonPrefix(a, b *Rendering) int {
	return CommonOrigin(a.Fields, b.Fields, 0, CommonText(a.Text, b.Text))
}

// CommonOrigin returns the offset up to which the fields a and b of two texts agree from byte since
// on; the texts agree up to byte n.
func CommonOrigin(a, b []Field, since, n int) int {
	i, j := fieldAfter(a, since), fieldAfter(b, since)
	for ; i < len(a) || j < len(b); i, j = i+1, j+1 {
		switch {
		case i >= len(a):
			return min(n, max(since, b[j].Start))
		case j >= len(b):
			return min(n, max(since, a[i].Start))
		}
		x, y := a[i], b[j]
		x.Start, y.Start = max(x.Start, since), max(y.Start, since)
		if x.Start >= n && y.Start >= n {
			return n
		}
		if x.Start != y.Start || x.Message != y.Message || x.Part != y.Part {
			return min(n, x.Start, y.Start)
		}
		if x.End != y.End {
			return min(n, x.End, y.End)
		}
	}
	return n
}

// CommonText returns the length in bytes of the common prefix of a and b.
func CommonText(a, b string) int {
	n := min(len(a), len(b))
	if a[:n] == b[:n] { // immediate if they share memory
		return n
	}
	const step = 256
	i := 0
	for i+step <= n && a[i:i+step] == b[i:i+step] {
		i += step
	}
	for a[i] == b[i] { // they differ before n
		i++
	}
	return i
}

// Quoted returns recorded text in the bytes [from, to) that is neither of message i nor a role, ""
// if there is none.
func (r *Rendering) Quoted(i int32, from, to int) string {
	for k := r.FieldAfter(from); k < len(r.Fields) && r.Fields[k].Start < to; k++ {
		if x := r.Fields[k]; x.Message != i && x.Part != PartRole {
			return r.Text[max(from, x.Start):min(to, x.End)]
		}
	}
	return ""
}

// Within returns the part of f inside [from, to), with offsets from from on.
func (f Field) Within(from, to int) Field {
	f.Start, f.End = max(f.Start, from)-from, min(f.End, to)-from
	return f
}
