package pretok

import (
	"bytes"
	"strings"

	"github.com/turnpack/turnpack/tokenize/bpe/internal/norm"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/rx"
	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// Stage cuts (and may change) each of the pieces; empty pieces are dropped.
type Stage interface {
	Apply(u *uni.Tables, in []norm.Text) ([]norm.Text, error)
}

// Behavior says what becomes of the delimiters that a split finds.
type Behavior uint8

// The behaviours, named as in tokenizer.json.
const (
	Isolated Behavior = iota
	Removed
	MergedWithPrevious
	MergedWithNext
	Contiguous
)

// BehaviorOf returns the behaviour of that name.
func BehaviorOf(name string) (Behavior, bool) {
	for i, n := range []string{"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"} {
		if strings.EqualFold(n, strings.ReplaceAll(name, "_", "")) {
			return Behavior(i), true
		}
	}
	return 0, false
}

// span is a part of a text that a pattern matched or passed over.
type span struct {
	a, b int
	hit  bool
}

// cut appends the pieces of t that behaviour b makes of spans.
func cut(out []norm.Text, t *norm.Text, spans []span, b Behavior) []norm.Text {
	emit := func(from, to int) {
		if from < to {
			out = append(out, t.Slice(from, to))
		}
	}
	switch b {
	case Isolated, Removed:
		for _, s := range spans {
			if b == Isolated || !s.hit {
				emit(s.a, s.b)
			}
		}
		return out
	}
	// join[i] says that span i continues the piece of span i-1
	join := make([]bool, len(spans)+1)
	switch b {
	case Contiguous:
		prev := false
		for i, s := range spans {
			join[i] = s.hit == prev && i > 0
			prev = s.hit
		}
	case MergedWithPrevious:
		prev := false
		for i, s := range spans {
			join[i] = s.hit && !prev && i > 0
			prev = s.hit
		}
	case MergedWithNext:
		prev := false
		for i := len(spans) - 1; i >= 0; i-- {
			join[i+1] = spans[i].hit && !prev && i < len(spans)-1
			prev = spans[i].hit
		}
	}
	for i := 0; i < len(spans); {
		j := i + 1
		for j < len(spans) && join[j] {
			j++
		}
		emit(spans[i].a, spans[j-1].b)
		i = j
	}
	return out
}

// gaps completes matches to spans that cover the whole text.
func gaps(matches [][2]int, n int, invert bool) []span {
	var spans []span
	last := 0
	for _, m := range matches {
		if last != m[0] {
			spans = append(spans, span{last, m[0], invert})
		}
		spans = append(spans, span{m[0], m[1], !invert})
		last = m[1]
	}
	if last != n {
		spans = append(spans, span{last, n, invert})
	}
	return spans
}

// Split is the Split pre-tokenizer with a regular expression.
type Split struct {
	Pattern  *rx.Regexp
	Behavior Behavior
	Invert   bool
}

// Apply implements [Stage].
func (s Split) Apply(_ *uni.Tables, in []norm.Text) (out []norm.Text, err error) {
	for i := range in {
		matches, err := s.Pattern.All(nil, in[i].Buf, in[i].Until)
		if err != nil {
			return nil, err
		}
		out = cut(out, &in[i], gaps(matches, len(in[i].Buf), s.Invert), s.Behavior)
	}
	return out, nil
}

// Literal is the Split pre-tokenizer with a string.
type Literal struct {
	Text     string
	Behavior Behavior
	Invert   bool
}

// Apply implements [Stage].
func (l Literal) Apply(_ *uni.Tables, in []norm.Text) (out []norm.Text, err error) {
	for i := range in {
		var matches [][2]int
		for at := 0; ; {
			k := bytes.Index(in[i].Buf[at:], []byte(l.Text))
			if k < 0 {
				break
			}
			matches = append(matches, [2]int{at + k, at + k + len(l.Text)})
			at += k + len(l.Text)
		}
		out = cut(out, &in[i], gaps(matches, len(in[i].Buf), l.Invert), l.Behavior)
	}
	return out, nil
}

// Pieces applies a scanner; every piece stands alone.
type Pieces struct{ Splitter Splitter }

// Apply implements [Stage].
func (p Pieces) Apply(_ *uni.Tables, in []norm.Text) (out []norm.Text, err error) {
	for k := range in {
		t := &in[k]
		for i := 0; i < len(t.Buf); {
			j := p.Splitter.Next(t.Buf, i)
			out = append(out, t.Slice(i, j))
			i = j
		}
	}
	return out, nil
}

// Chars splits at the characters that have one of the flags.
type Chars struct {
	Flags    uint16
	Behavior Behavior
}

// Apply implements [Stage].
func (c Chars) Apply(u *uni.Tables, in []norm.Text) (out []norm.Text, err error) {
	for k := range in {
		t := &in[k]
		var matches [][2]int
		for i := 0; i < len(t.Buf); {
			r, size := uni.DecodeRune(t.Buf[i:])
			if u.Flags(r)&c.Flags != 0 {
				matches = append(matches, [2]int{i, i + size})
			}
			i += size
		}
		out = cut(out, t, gaps(matches, len(t.Buf), false), c.Behavior)
	}
	return out, nil
}

// Whitespace keeps \w+ and [^\w\s]+ and drops the rest.
type Whitespace struct{}

// Apply implements [Stage].
func (Whitespace) Apply(u *uni.Tables, in []norm.Text) (out []norm.Text, err error) {
	class := func(r rune) uint16 {
		switch f := u.Flags(r); {
		case f&uni.Word != 0:
			return uni.Word
		case f&uni.Space != 0:
			return uni.Space
		}
		return 0
	}
	for k := range in {
		t := &in[k]
		for i := 0; i < len(t.Buf); {
			r, size := uni.DecodeRune(t.Buf[i:])
			first := class(r)
			j := i + size
			for j < len(t.Buf) {
				r, size := uni.DecodeRune(t.Buf[j:])
				if class(r) != first {
					break
				}
				j += size
			}
			if first != uni.Space {
				out = append(out, t.Slice(i, j))
			}
			i = j
		}
	}
	return out, nil
}

// PrefixSpace puts a space before a piece that does not begin with one.
type PrefixSpace struct{}

// Apply implements [Stage].
func (PrefixSpace) Apply(_ *uni.Tables, in []norm.Text) ([]norm.Text, error) {
	for i := range in {
		if len(in[i].Buf) > 0 && in[i].Buf[0] != ' ' {
			if err := in[i].Prepend(" "); err != nil {
				return nil, err
			}
		}
	}
	return in, nil
}

// Spell writes each byte as the character that stands for it.
type Spell struct{}

// Apply implements [Stage].
func (Spell) Apply(_ *uni.Tables, in []norm.Text) ([]norm.Text, error) {
	for i := range in {
		if err := in[i].Spell(); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// Prefix says where Metaspace puts its mark in front.
type Prefix uint8

// The prepend schemes.
const (
	Always Prefix = iota
	Never
	First
)

// Metaspace writes spaces as a mark and splits before it.
type Metaspace struct {
	Mark   string
	Prefix Prefix
	Split  bool
}

// Apply implements [Stage].
func (m Metaspace) Apply(u *uni.Tables, in []norm.Text) (out []norm.Text, err error) {
	for i := range in {
		t := in[i]
		if len(t.Buf) == 0 {
			continue
		}
		first := t.First()
		if err := t.ReplaceString(" ", m.Mark); err != nil {
			return nil, err
		}
		if !bytes.HasPrefix(t.Buf, []byte(m.Mark)) && (m.Prefix == Always || m.Prefix == First && first) {
			if err := t.Prepend(m.Mark); err != nil {
				return nil, err
			}
		}
		if !m.Split {
			out = append(out, t)
			continue
		}
		if out, err = appendStage(out, u, Literal{Text: m.Mark, Behavior: MergedWithNext}, t); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func appendStage(out []norm.Text, u *uni.Tables, s Stage, t norm.Text) ([]norm.Text, error) {
	parts, err := s.Apply(u, []norm.Text{t})
	return append(out, parts...), err
}

// Delimiter drops a character and splits there.
type Delimiter struct{ Char string }

// Apply implements [Stage].
func (d Delimiter) Apply(u *uni.Tables, in []norm.Text) ([]norm.Text, error) {
	return Literal{Text: d.Char, Behavior: Removed}.Apply(u, in)
}

// FixedLength cuts after every so many characters.
type FixedLength struct{ Chars int }

// Apply implements [Stage].
func (f FixedLength) Apply(_ *uni.Tables, in []norm.Text) (out []norm.Text, err error) {
	for k := range in {
		t := &in[k]
		from, n := 0, 0
		for i := 0; i < len(t.Buf); {
			_, size := uni.DecodeRune(t.Buf[i:])
			i += size
			if n++; n == f.Chars || i == len(t.Buf) {
				out = append(out, t.Slice(from, i))
				from, n = i, 0
			}
		}
	}
	return out, nil
}
