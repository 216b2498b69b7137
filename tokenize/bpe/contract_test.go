package bpe_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// promises are the guarantees of a tokenizer beyond the contract of [engine.Tokenizer].
type promises struct {
	// roundTrip promises that decoding restores any text that the normalizer leaves unchanged: byte-level models
	// without a normalizer, or with NFC.
	roundTrip bool
	// exactOffsets promises that ranges are not widened to whole characters.
	exactOffsets bool
}

// keepsContract checks tok against the contract of [engine.Tokenizer].
func keepsContract(t *testing.T, tok engine.Tokenizer, p promises) {
	s := &suite{tok: tok, promises: p}
	s.texts = append(s.fixed(), s.random(200)...)
	t.Run("vocabulary", s.vocabulary)
	t.Run("offsets", s.offsets)
	t.Run("widths", s.widths)
	t.Run("append", s.appends)
	t.Run("added", s.added)
	t.Run("literal", s.literal)
	t.Run("parts", s.parts)
	t.Run("invalid", s.invalid)
	t.Run("nul", s.nul)
	t.Run("decode", s.decode)
	t.Run("concurrent", s.concurrent)
}

type suite struct {
	promises
	tok   engine.Tokenizer
	texts []string
}

// fixed returns texts that have each exposed a fault in some tokenizer.
func (s *suite) fixed() []string {
	texts := []string{
		"", " ", "\n", "a", "\u00e9", "e\u0301", "\U0001F468\u200D\U0001F469", "\u4f60\u597d", "\uFFFD", "\uFEFFx",
		"Hello, world! It's 12345.", "  leading", "trailing  ", "\t\tx := y\n\n\n", "a\r\nb\r\n", "\u3000\u00a0 x",
		strings.Repeat("a", 3000), strings.Repeat(" ", 3000), strings.Repeat("\u0301", 300), "\u1100\u1161\u11a8", "don't DON'T '\u017f",
	}
	for _, a := range s.tok.Vocab().Added() {
		if len(texts) > 60 {
			break
		}
		texts = append(texts, a.Content, "x"+a.Content+"y", " "+a.Content+" \n"+a.Content, a.Content[:len(a.Content)/2])
	}
	return slices.DeleteFunc(texts, func(x string) bool { return !utf8.ValidString(x) })
}

func (s *suite) random(n int) []string {
	r := rand.New(rand.NewPCG(0, 1))
	added := s.tok.Vocab().Added()
	texts := make([]string, n)
	for i := range texts {
		var b strings.Builder
		for range r.IntN(12) {
			switch k := r.IntN(8); {
			case k < 4:
				b.WriteString([]string{" ", "\n", "word", "The", "'s", "42", "++", "\t", "\u00fc", "\u6f22"}[r.IntN(10)])
			case k < 5 && len(added) > 0:
				b.WriteString(added[r.IntN(len(added))].Content)
			default:
				c := rune(r.IntN(0x3000))
				if k == 7 {
					c = rune(r.IntN(utf8.MaxRune))
				}
				b.WriteRune(c) // a surrogate becomes U+FFFD
			}
		}
		texts[i] = b.String()
	}
	return texts
}

func (s *suite) encode(t *testing.T, text string, opts engine.EncodeOptions) engine.Encoding {
	t.Helper()
	var e engine.Encoding
	if err := s.tok.Encode(&e, text, opts); err != nil {
		t.Fatalf("Encode(%.100q): %v", text, err)
	}
	return e
}

// vocabulary checks that ID and Token are inverses, ids are below Size, and Added is sorted.
func (s *suite) vocabulary(t *testing.T) {
	v := s.tok.Vocab()
	last := rollout.TokenID(-1)
	for _, a := range v.Added() {
		if a.ID < last {
			t.Errorf("added token %d comes after %d", a.ID, last)
		}
		last = a.ID
		if id, ok := v.ID(a.Content); !ok || id != a.ID {
			t.Errorf("ID(%q) is %d, %v; the added token has id %d", a.Content, id, ok, a.ID)
		}
		if int(a.ID) >= v.Size() {
			t.Errorf("added token %d is not below Size %d", a.ID, v.Size())
		}
	}
	step := max(1, v.Size()/2000)
	for id := rollout.TokenID(0); int(id) < v.Size(); id += rollout.TokenID(step) {
		if token, ok := v.Token(id); ok {
			if back, ok := v.ID(token); !ok || back != id {
				t.Errorf("Token(%d) is %q, whose ID is %d, %v", id, token, back, ok)
			}
		}
	}
	for _, id := range []rollout.TokenID{-1, rollout.TokenID(v.Size()), 1 << 30} {
		if token, ok := v.Token(id); ok {
			t.Errorf("Token(%d) is %q, outside the vocabulary", id, token)
		}
	}
	if d := s.tok.Digest(); !strings.HasPrefix(d, "sha256:") || len(d) != len("sha256:")+64 {
		t.Errorf("Digest is %q, want sha256: and 64 digits", d)
	}
}

// offsets checks that there are 2 offsets per id, in the text, in order, on character boundaries, and that requesting
// them does not change ids.
func (s *suite) offsets(t *testing.T) {
	for _, text := range s.texts {
		plain := s.encode(t, text, engine.EncodeOptions{})
		e := s.encode(t, text, engine.EncodeOptions{Offsets: true})
		if !slices.Equal(plain.IDs, e.IDs) {
			t.Errorf("%.100q: ids with offsets differ from ids without", text)
		}
		if len(plain.Offsets) != 0 || len(e.Offsets) != 2*len(e.IDs) {
			t.Fatalf("%.100q: %d offsets unasked, %d for %d ids", text, len(plain.Offsets), len(e.Offsets), len(e.IDs))
		}
		begin := int32(0)
		for i := range e.IDs {
			a, b := e.Offsets[2*i], e.Offsets[2*i+1]
			if a < begin || b < a || int(b) > len(text) {
				t.Fatalf("%.100q: token %d has range [%d, %d) after one that begins at %d, text of %d bytes", text, i, a, b, begin, len(text))
			}
			if !s.exactOffsets && (!boundary(text, a) || !boundary(text, b)) {
				t.Fatalf("%.100q: token %d has range [%d, %d), inside a character", text, i, a, b)
			}
			begin = a
		}
	}
}

// widths checks that a tokenizer that omits offsets cuts the text at the same places with its widths, except inside
// characters.
func (s *suite) widths(t *testing.T) {
	for _, text := range s.texts {
		e, short := s.encode(t, text, engine.EncodeOptions{Offsets: true}), s.encode(t, text, engine.EncodeOptions{Offsets: true, Widths: true})
		if !slices.Equal(e.IDs, short.IDs) {
			t.Errorf("%.100q: ids with widths differ from ids with offsets", text)
		}
		if len(short.Offsets) > 0 {
			if !slices.Equal(e.Offsets, short.Offsets) {
				t.Errorf("%.100q: offsets where widths will do differ from others", text)
			}
			continue
		}
		var widths []uint16
		if m, ok := s.tok.(engine.Measured); ok {
			widths = m.Widths()
		}
		if widths == nil && len(e.IDs) > 0 {
			t.Fatalf("%.100q: no offsets, and no widths of tokens", text)
		}
		at := int32(0)
		for i, id := range e.IDs {
			end := at + int32(widths[id])
			a, b := e.Offsets[2*i], e.Offsets[2*i+1]
			if at != a && (a > at || boundary(text, at)) || end != b && (b < end || boundary(text, end)) {
				t.Fatalf("%.100q: token %d has range [%d, %d) by widths, [%d, %d) by offsets", text, i, at, end, a, b)
			}
			at = end
		}
		if int(at) != len(text) {
			t.Errorf("%.100q: the widths of its tokens add up to %d of %d bytes", text, at, len(text))
		}
	}
}

func boundary(s string, i int32) bool { return int(i) == len(s) || utf8.RuneStart(s[i]) }

// appends checks that Encode appends, and that a reused Encoding gives the same result.
func (s *suite) appends(t *testing.T) {
	var reused engine.Encoding
	for _, text := range s.texts {
		want := s.encode(t, text, engine.EncodeOptions{Offsets: true})
		reused.Reset()
		reused.IDs, reused.Offsets = append(reused.IDs, 7), append(reused.Offsets, 8, 9)
		if err := s.tok.Encode(&reused, text, engine.EncodeOptions{Offsets: true}); err != nil {
			t.Fatal(err)
		}
		if reused.IDs[0] != 7 || !slices.Equal(reused.Offsets[:2], []int32{8, 9}) {
			t.Fatalf("%.100q: Encode changed what was in the encoding", text)
		}
		if !slices.Equal(reused.IDs[1:], want.IDs) || !slices.Equal(reused.Offsets[2:], want.Offsets) {
			t.Fatalf("%.100q: appending gives another encoding than starting afresh", text)
		}
	}
}

// added checks that the filter gets every occurrence with its text, and that all are accepted by default.
func (s *suite) added(t *testing.T) {
	for _, text := range s.texts {
		want := s.encode(t, text, engine.EncodeOptions{})
		seen := 0
		got := s.encode(t, text, engine.EncodeOptions{Added: func(m engine.AddedMatch) bool {
			seen++
			if m.Start < 0 || m.End > len(text) || m.Start >= m.End {
				t.Fatalf("%.100q: match of %q at [%d, %d)", text, m.Token.Content, m.Start, m.End)
			}
			if !m.Token.Normalized && text[m.Start:m.End] != m.Token.Content {
				t.Fatalf("%.100q: match of %q at %q", text, m.Token.Content, text[m.Start:m.End])
			}
			return true
		}})
		if !slices.Equal(got.IDs, want.IDs) {
			t.Errorf("%.100q: a filter that accepts all changes the ids", text)
		}
	}
	for _, a := range s.tok.Vocab().Added() {
		if a.Normalized || a.SingleWord {
			continue
		}
		if e := s.encode(t, a.Content, engine.EncodeOptions{}); !slices.Contains(e.IDs, a.ID) && len(e.IDs) > 1 {
			t.Errorf("%q does not become its id %d but %v", a.Content, a.ID, e.IDs)
		}
	}
}

// parts checks that a text encoded in two parts, with After set for the second, equals the text encoded at once.
func (s *suite) parts(t *testing.T) {
	const text = " Two words,  then more: it goes on."
	for _, a := range s.tok.Vocab().Added() {
		if !a.Special || a.Normalized || a.LStrip || a.RStrip || a.SingleWord {
			continue
		}
		for cut := range len(text) {
			first := text[:cut] + a.Content
			got := append(s.encode(t, first, engine.EncodeOptions{}).IDs, s.encode(t, text[cut:], engine.EncodeOptions{After: engine.AfterToken}).IDs...)
			if want := s.encode(t, first+text[cut:], engine.EncodeOptions{}).IDs; !slices.Equal(got, want) {
				t.Fatalf("%q, then %q: %v, want %v", first, text[cut:], got, want)
			}
		}
		break
	}
	want, err := s.tok.Decode(s.encode(t, text, engine.EncodeOptions{}).IDs)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut < len(text); cut++ {
		ids := append(s.encode(t, text[:cut], engine.EncodeOptions{}).IDs, s.encode(t, text[cut:], engine.EncodeOptions{After: engine.AfterText}).IDs...)
		if got, err := s.tok.Decode(ids); err != nil || got != want {
			t.Fatalf("%q, then %q, decodes to %q (%v), want %q", text[:cut], text[cut:], got, err, want)
		}
	}
}

// literal checks that with every added token refused none appears, and that refusing one keeps the others.
func (s *suite) literal(t *testing.T) {
	ids := map[rollout.TokenID]bool{}
	for _, a := range s.tok.Vocab().Added() {
		ids[a.ID] = a.Special
	}
	for _, text := range s.texts {
		e := s.encode(t, text, engine.EncodeOptions{Added: engine.NoAdded})
		for _, id := range e.IDs {
			// An added token that is also an entry of the model may come from merges.
			if name, _ := s.tok.Vocab().Token(id); ids[id] && strings.Contains(text, name) && len(name) > 8 {
				t.Errorf("%.100q: the special token %q appears although all are refused", text, name)
			}
		}
		one := s.encode(t, text, engine.EncodeOptions{Added: func(m engine.AddedMatch) bool { return m.Start > 0 }})
		if _, err := s.tok.Decode(one.IDs); err != nil {
			t.Errorf("%.100q: %v", text, err)
		}
	}
}

// invalid checks that each maximal invalid subpart counts as U+FFFD, and that ranges stay in the text.
func (s *suite) invalid(t *testing.T) {
	for _, c := range []struct{ text, as, reason string }{
		{"\xff", "\uFFFD", "a byte that never occurs"},
		{"a\xc3", "a\uFFFD", "a cut-off character of two bytes"},
		{"\xe2\x82x", "\uFFFDx", "two bytes of three are one subpart"},
		{"\xf0\x9f\x98", "\uFFFD", "three bytes of four are one subpart"},
		{"\xe0\x80\x80", "\uFFFD\uFFFD\uFFFD", "overlong: no byte continues the first"},
		{"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD", "a surrogate"},
		{"\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD", "above the last code point"},
		{"\x80\x80", "\uFFFD\uFFFD", "continuation bytes alone"},
		{"\xc3\xc3\xa9", "\uFFFD\u00e9", "a lead byte before a whole character"},
	} {
		got := s.encode(t, c.text, engine.EncodeOptions{Offsets: true})
		want := s.encode(t, c.as, engine.EncodeOptions{})
		if !slices.Equal(got.IDs, want.IDs) {
			t.Errorf("%s: %q gives %v, and %q gives %v", c.reason, c.text, got.IDs, c.as, want.IDs)
		}
		for _, o := range got.Offsets {
			if o < 0 || int(o) > len(c.text) {
				t.Errorf("%s: %q has offset %d", c.reason, c.text, o)
			}
		}
		if n := len(got.Offsets); n > 0 && int(got.Offsets[n-1]) != len(c.text) && s.roundTrip {
			t.Errorf("%s: %q ends at %d", c.reason, c.text, got.Offsets[n-1])
		}
	}
}

// nul checks that NUL is an ordinary character.
func (s *suite) nul(t *testing.T) {
	cut, whole := s.encode(t, "ab", engine.EncodeOptions{}), s.encode(t, "ab\x00cd\x00", engine.EncodeOptions{})
	if len(whole.IDs) <= len(cut.IDs) {
		t.Errorf("the text after a NUL is lost: %v", whole.IDs)
	}
	if s.roundTrip {
		if got, err := s.tok.Decode(whole.IDs); err != nil || got != "ab\x00cd\x00" {
			t.Errorf("Decode gives %q, %v", got, err)
		}
	}
}

// decode checks that Decode is the inverse of Encode where promised, and that the error for unknown ids names their
// position.
func (s *suite) decode(t *testing.T) {
	for _, text := range s.texts {
		e := s.encode(t, text, engine.EncodeOptions{})
		got, err := s.tok.Decode(e.IDs)
		if err != nil {
			t.Fatalf("%.100q: %v", text, err)
		}
		again := s.encode(t, got, engine.EncodeOptions{})
		if s.roundTrip && got != text {
			// A normalizer may have changed the text; then the decoded text must be stable.
			if twice, err := s.tok.Decode(again.IDs); err != nil || twice != got || isASCII(text) {
				t.Errorf("%.100q comes back as %.100q, then %.100q (%v)", text, got, twice, err)
			}
		}
	}
	for _, ids := range [][]rollout.TokenID{{-1}, {0, rollout.TokenID(s.tok.Vocab().Size())}, {1 << 30}} {
		_, err := s.tok.Decode(ids)
		if !errors.Is(err, rollout.KindTokenizer) {
			t.Errorf("Decode(%v): error is %v, want a KindTokenizer error", ids, err)
		}
		if e, ok := errors.AsType[*rollout.Error](err); ok {
			if at, known := e.Where.Token.Get(); !known || at != len(ids)-1 {
				t.Errorf("Decode(%v): the error is at token %d, %v", ids, at, known)
			}
		}
	}
	if got, err := s.tok.Decode(nil); got != "" || err != nil {
		t.Errorf("Decode(nil) is %q, %v", got, err)
	}
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// concurrent checks that concurrent callers get the same results.
func (s *suite) concurrent(t *testing.T) {
	want := make([][]rollout.TokenID, len(s.texts))
	for i, text := range s.texts {
		want[i] = s.encode(t, text, engine.EncodeOptions{}).IDs
	}
	faults := make(chan string, 8)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			var e engine.Encoding
			for k := range s.texts {
				i := (k*7 + w*13) % len(s.texts)
				e.Reset()
				err := s.tok.Encode(&e, s.texts[i], engine.EncodeOptions{Offsets: w%2 == 0})
				if err != nil || !slices.Equal(e.IDs, want[i]) {
					select {
					case faults <- fmt.Sprintf("%.100q: %v, %v", s.texts[i], e.IDs, err):
					default:
					}
				}
			}
		})
	}
	wg.Wait()
	close(faults)
	for f := range faults {
		t.Error("another result among concurrent callers: " + f)
	}
}
