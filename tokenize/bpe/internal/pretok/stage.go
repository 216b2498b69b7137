package pretok

import (
	"bytes"
	"strings"

	"github.com/turnpack/turnpack/tokenize/bpe/internal/norm"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/rx"
	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// Stage cuts a text, which it may change, and appends the pieces of t to out. Empty pieces are ignored.
type Stage func(u *uni.Tables, out []norm.Text, t *norm.Text) ([]norm.Text, error)

// Behavior is what happens to the delimiters that a split finds.
type Behavior uint8

// The behaviours, named as in tokenizer.json.
const (
	Isolated Behavior = iota
	Removed
	MergedWithPrevious
	MergedWithNext
	Contiguous
)

// BehaviorOf returns the behaviour with the given name.
func BehaviorOf(name string) (Behavior, bool) {
	for i, n := range []string{"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"} {
		if strings.EqualFold(n, strings.ReplaceAll(name, "_", "")) {
			return Behavior(i), true
		}
	}
	return 0, false
}

// span is a part of a text, with hit set if the pattern matched it.
type span struct {
	a, b int
	hit  bool
}

// cut appends the pieces of t that behaviour b forms from spans.
func cut(out []norm.Text, t *norm.Text, spans []span, b Behavior) []norm.Text {
	joined := func(i int) bool { // whether span i belongs to the piece of the span before it
		before, hit := spans[i-1].hit, spans[i].hit
		switch b {
		case Contiguous:
			return before == hit
		case MergedWithPrevious:
			return hit && !before
		case MergedWithNext:
			return before && !hit
		}
		return false
	}
	for i := 0; i < len(spans); {
		j := i + 1
		for j < len(spans) && joined(j) {
			j++
		}
		if from, to := spans[i].a, spans[j-1].b; from < to && !(b == Removed && spans[i].hit) {
			out = append(out, t.Slice(from, to))
		}
		i = j
	}
	return out
}

// gaps returns spans that cover the whole text of n bytes: the matches and the gaps between them.
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

// Split returns the Split pre-tokenizer for a regular expression.
func Split(re *rx.Regexp, b Behavior, invert bool) Stage {
	return func(_ *uni.Tables, out []norm.Text, t *norm.Text) ([]norm.Text, error) {
		matches, err := re.All(t.Buf, t.Until)
		if err != nil {
			return nil, err
		}
		return cut(out, t, gaps(matches, len(t.Buf), invert), b), nil
	}
}

// Literal returns the Split pre-tokenizer for a string.
func Literal(text string, b Behavior, invert bool) Stage {
	return func(_ *uni.Tables, out []norm.Text, t *norm.Text) ([]norm.Text, error) {
		return cutAt(out, t, text, b, invert), nil
	}
}

func cutAt(out []norm.Text, t *norm.Text, text string, b Behavior, invert bool) []norm.Text {
	var matches [][2]int
	for from, to := range norm.Occurrences(t.Buf, []byte(text)) {
		matches = append(matches, [2]int{from, to})
	}
	return cut(out, t, gaps(matches, len(t.Buf), invert), b)
}

// Pieces returns the stage that applies a scanner and isolates every piece.
func Pieces(s Splitter) Stage {
	return func(_ *uni.Tables, out []norm.Text, t *norm.Text) ([]norm.Text, error) {
		for i := 0; i < len(t.Buf); {
			j := s.Next(t.Buf, i)
			out = append(out, t.Slice(i, j))
			i = j
		}
		return out, nil
	}
}

// Chars returns the stage that splits at characters with one of the flags.
func Chars(flags uint16, b Behavior) Stage {
	return func(u *uni.Tables, out []norm.Text, t *norm.Text) ([]norm.Text, error) {
		var matches [][2]int
		for i := 0; i < len(t.Buf); {
			r, size := uni.DecodeRune(t.Buf[i:])
			if u.Flags(r)&flags != 0 {
				matches = append(matches, [2]int{i, i + size})
			}
			i += size
		}
		return cut(out, t, gaps(matches, len(t.Buf), false), b), nil
	}
}

// Whitespace keeps \w+ and [^\w\s]+ and drops the rest.
func Whitespace(u *uni.Tables, out []norm.Text, t *norm.Text) ([]norm.Text, error) {
	at := func(i int) (class uint16, size int) {
		r, size := uni.DecodeRune(t.Buf[i:])
		switch f := u.Flags(r); {
		case f&uni.Word != 0:
			return uni.Word, size
		case f&uni.Space != 0:
			return uni.Space, size
		}
		return 0, size
	}
	for i := 0; i < len(t.Buf); {
		first, size := at(i)
		j := i + size
		for j < len(t.Buf) {
			class, size := at(j)
			if class != first {
				break
			}
			j += size
		}
		if first != uni.Space {
			out = append(out, t.Slice(i, j))
		}
		i = j
	}
	return out, nil
}

// PrefixSpace puts a space before a piece that does not begin with one.
func PrefixSpace(_ *uni.Tables, out []norm.Text, t *norm.Text) ([]norm.Text, error) {
	if len(t.Buf) > 0 && t.Buf[0] != ' ' {
		if err := t.Prepend(" "); err != nil {
			return nil, err
		}
	}
	return append(out, *t), nil
}

// Spell replaces each byte by the character that stands for it.
func Spell(_ *uni.Tables, out []norm.Text, t *norm.Text) ([]norm.Text, error) {
	err := t.Spell()
	return append(out, *t), err
}

// Prefix is the prepend scheme of Metaspace: where it inserts its mark.
type Prefix uint8

// The prepend schemes.
const (
	Always Prefix = iota
	Never
	First
)

// Metaspace replaces spaces by a mark and, with split set, cuts before each mark.
func Metaspace(mark string, p Prefix, split bool) Stage {
	return func(_ *uni.Tables, out []norm.Text, t *norm.Text) ([]norm.Text, error) {
		if len(t.Buf) == 0 {
			return out, nil
		}
		first := t.First()
		if err := t.ReplaceString(" ", mark); err != nil {
			return nil, err
		}
		if !bytes.HasPrefix(t.Buf, []byte(mark)) && (p == Always || p == First && first) {
			if err := t.Prepend(mark); err != nil {
				return nil, err
			}
		}
		if !split {
			return append(out, *t), nil
		}
		return cutAt(out, t, mark, MergedWithNext, false), nil
	}
}

// FixedLength cuts after every n characters.
func FixedLength(n int) Stage {
	return func(_ *uni.Tables, out []norm.Text, t *norm.Text) ([]norm.Text, error) {
		from, count := 0, 0
		for i := 0; i < len(t.Buf); {
			_, size := uni.DecodeRune(t.Buf[i:])
			i += size
			if count++; count == n || i == len(t.Buf) {
				out = append(out, t.Slice(from, i))
				from, count = i, 0
			}
		}
		return out, nil
	}
}
