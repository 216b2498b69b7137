package tokenize

import (
	"sort"

	"github.com/turnpack/turnpack/tokenize/chat"
)

// part is the kind of message text that a byte belongs to.
type part uint8

const (
	partScaffold  part = iota // the template's own text
	partContent               // a message's content
	partReasoning             // a message's thinking text
	partToolCall              // name, id or arguments of a tool call
	partOther                 // any other recorded text: tool schemas, names, documents
	partRole                  // a message's role: recorded, but of the frame around a message
	partName                  // a message's name, which is of that frame, too
)

// text reports whether p is what a message says.
func (p part) text() bool { return p == partContent || p == partReasoning || p == partToolCall }

// parts is a set of them.
type parts uint8

func (s parts) has(p part) bool { return s&(1<<p) != 0 }

func (s *parts) add(p part) { *s |= 1 << p }

// field is a run of bytes of a rendering that came from the recorded data.
type field struct {
	start, end int
	message    int32 // index into Rollout.Messages, −1 = none (schemas, notes)
	part       part
	call       uint16 // of a tool call, its index in the message
}

// rendering is a text and the origin of its bytes: ascending fields without
// overlap, everything between them scaffold.
type rendering struct {
	text   string
	fields []field
	// after is what the model saw before the text, nil for nothing.
	behind *rendering
	// turns are the replies found in the text where that was asked for, by index
	// into Rollout.Messages.
	turns []chat.Turn
}

// tail is the scaffold at the end of r.
func (r *rendering) tail() string {
	if n := len(r.fields); n > 0 {
		return r.text[r.fields[n-1].end:]
	}
	return r.text
}

// after returns the index of the first field that ends after byte at.
func (r *rendering) after(at int) int {
	return sort.Search(len(r.fields), func(i int) bool { return r.fields[i].end > at })
}

// afterNear is after(at), looked for from field i on.
func (r *rendering) afterNear(i, at int) int {
	if i > 0 && r.fields[i-1].end > at {
		return r.after(at)
	}
	for i < len(r.fields) && r.fields[i].end <= at {
		i++
	}
	return i
}

// with adds fields that count from byte at.
func (r rendering) with(fields []field, at int) rendering {
	for _, f := range fields {
		f.start, f.end = f.start+at, f.end+at
		r.fields = append(r.fields, f)
	}
	return r
}

// take appends the bytes [from, to) of src with their origin.
func (r *rendering) take(src *rendering, from, to int) {
	*r = r.with(src.cut(from, to).fields, len(r.text))
	r.text += src.text[from:to]
}

// cut returns the bytes [from, to) with their origin.
func (r *rendering) cut(from, to int) rendering {
	out := rendering{text: r.text[from:to]}
	for k := r.after(from); from < to && k < len(r.fields) && r.fields[k].start < to; k++ {
		out.fields = append(out.fields, r.fields[k].within(from, to))
	}
	return out
}

// extent returns, of the text from byte from on, the range from the first to the
// last byte of a field of message m that holds its text (content, reasoning, tool
// calls; with only set, that part alone), and whether there is one.
func (r *rendering) extent(m int32, only part, from int) (start, end int, ok bool) {
	for _, f := range r.fields[r.after(from):] {
		if f.message == m && f.part.text() && (only == partScaffold || f.part == only) {
			if !ok {
				start, ok = max(f.start, from), true
			}
			end = f.end
		}
	}
	return start, end, ok
}

// foreign returns where the first recorded text after byte at begins that is
// neither of message m nor a role, or the end of the text.
func (r *rendering) foreign(m int32, at int) int {
	for _, f := range r.fields[r.after(at):] {
		if f.message != m && f.part != partRole {
			return max(f.start, at)
		}
	}
	return len(r.text)
}

// opens reports whether field i is the first that holds text of its message.
func (r *rendering) opens(i int) bool {
	if !r.fields[i].part.text() {
		return false
	}
	for k := i - 1; k >= 0 && r.fields[k].message == r.fields[i].message; k-- {
		if r.fields[k].part.text() {
			return false
		}
	}
	return true
}

// commonPrefix is the number of leading bytes in which a and b agree, text and
// origin alike.
func commonPrefix(a, b *rendering) int {
	n := commonText(a.text, b.text)
	for i := 0; i < len(a.fields) || i < len(b.fields); i++ {
		switch {
		case i >= len(a.fields):
			return min(n, b.fields[i].start)
		case i >= len(b.fields):
			return min(n, a.fields[i].start)
		}
		x, y := a.fields[i], b.fields[i]
		if x.start >= n && y.start >= n {
			return n
		}
		if x.start != y.start || x.message != y.message || x.part != y.part {
			return min(n, x.start, y.start)
		}
		if x.end != y.end {
			return min(n, x.end, y.end)
		}
	}
	return n
}

func commonText(a, b string) int {
	n := min(len(a), len(b))
	if a[:n] == b[:n] { // at once where they share memory
		return n
	}
	const step = 256
	i := 0
	for i+step <= n && a[i:i+step] == b[i:i+step] {
		i += step
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
