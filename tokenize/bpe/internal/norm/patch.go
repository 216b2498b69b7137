package norm

import (
	"sort"

	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// patch is a replaced stretch of a text, with the origin of the text after it. With patches, a long text in which few
// characters change needs no two numbers per byte for its origins. The first patch of a text is empty and at its
// start.
type patch struct {
	from, to int
	al       []int32 // like Text.Al, for the stretch
	shift    int     // origin minus position of the text after it, up to the next patch
}

// patchBefore returns the index of the last patch that begins at or before byte p of the patched text.
func (t *Text) patchBefore(p int) int {
	return sort.Search(len(t.patches), func(i int) bool { return t.patches[i].from > p }) - 1
}

// patched returns the origin of the character that contains byte i of t.
func (t *Text) patched(i int) (int, int) {
	p := t.at + i
	x := &t.patches[t.patchBefore(p)]
	if p < x.to {
		k := 2 * (p - x.from)
		return int(x.al[k]), int(x.al[k+1])
	}
	a, b := i, i+1
	for t.Buf[a]&0xC0 == 0x80 {
		a--
	}
	for b < len(t.Buf) && t.Buf[b]&0xC0 == 0x80 {
		b++
	}
	return t.at + a + x.shift, t.at + b + x.shift
}

// unchangedPatched is Unchanged for a text with patches.
func (t *Text) unchangedPatched(a, b int) (int, bool) {
	k := t.patchBefore(t.at + a)
	if t.at+a < t.patches[k].to || k+1 < len(t.patches) && t.at+b > t.patches[k+1].from {
		return 0, false
	}
	return t.at + a + t.patches[k].shift, true
}

// alignPatched fills Al from the patches and drops them.
func (t *Text) alignPatched() {
	for i := 0; i < len(t.Buf); {
		_, size := uni.DecodeRune(t.Buf[i:])
		for k := i; k < i+size; k++ {
			a, b := t.patched(k)
			t.Al[2*k], t.Al[2*k+1] = int32(a), int32(b)
		}
		i += size
	}
	t.patches = nil
}

// patcher replaces stretches of a text from left to right.
type patcher struct {
	t       *Text
	buf     []byte
	done    int // number of bytes of t.Buf that are in buf
	patches []patch
}

// replace replaces the bytes [from, to) of the text by chars.
func (p *patcher) replace(from, to int, chars []uni.Char) error {
	if p.patches == nil {
		p.buf = make([]byte, 0, len(p.t.Buf)+utf8Slack)
		p.patches = []patch{{shift: p.t.Base}}
	}
	p.buf = append(p.buf, p.t.Buf[p.done:from]...)
	part := p.t.Slice(from, to)
	if err := part.transform(chars, 0); err != nil {
		return err
	}
	x := patch{from: len(p.buf), al: part.Al}
	p.buf = append(p.buf, part.Buf...)
	x.to, p.done = len(p.buf), to
	x.shift = p.t.Base + to - x.to
	p.patches = append(p.patches, x)
	return p.t.fits(len(p.buf))
}

// utf8Slack is the number of bytes that normal forms add to most texts at most.
const utf8Slack = 64

// finish sets the new bytes and patches of the text if anything was replaced.
func (p *patcher) finish() {
	if p.patches != nil {
		p.t.Buf, p.t.patches, p.t.at = append(p.buf, p.t.Buf[p.done:]...), p.patches, 0
	}
}
