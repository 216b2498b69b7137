// Package uni holds the character properties of the reference tokenizer: general categories, the predicates that its
// stages use, canonical and compatibility mappings. They differ from those of package unicode, which has another
// Unicode version; internal/oracle/unicode_tables.py queries the reference for each of them.
package uni

import (
	_ "embed"
	"encoding/binary"
	"slices"
	"sort"
	"sync"
	"unicode/utf8"
)

//go:generate python3 ../../../internal/oracle/unicode_tables.py tables.bin

//go:embed tables.bin
var packed []byte

// Flags of a code point, as the scanners use them.
const (
	L      uint16 = 1 << iota // letter
	N                         // number
	M                         // mark
	P                         // punctuation
	S                         // symbol
	Space                     // \s of the regex engine, White_Space
	Upper                     // Lu, Lt, Lm, Lo, M
	Lower                     // Ll, Lm, Lo, M
	Han                       // script Han
	Word                      // \w of added tokens and of the Whitespace pre-tokenizer
	Number                    // the Digits pre-tokenizer
	Punct                     // the Punctuation pre-tokenizer
	Kana                      // U+4E00..9FA5, U+3040..30FF: the second split of DeepSeek
	NFCNo                     // may change, or take part in a change, under NFC
	NFKCNo                    // the same for NFKC
	Accent                    // removed by StripAccents
)

const (
	blockBits = 7
	blockSize = 1 << blockBits
	maxRune   = 0x10FFFF

	classShift = 16
)

// Tables holds the unpacked tables; it is read-only.
type Tables struct {
	index [(maxRune + 1) >> blockBits]uint16
	flags []uint32         // flags, and from classShift on the combining class
	fixed [2][1 << 10]bool // see Fixed
	cats  []catRun
	sets  map[string]Set
	nfd   map[rune][]rune
	nfkd  map[rune][]rune
	lower map[rune][]rune
	pairs map[[2]rune]rune
}

type catRun struct {
	first rune
	cat   uint8
}

// Range is an inclusive range of code points.
type Range struct{ Lo, Hi rune }

// Set is a sorted list of disjoint ranges.
type Set []Range

// contains reports whether r is in the set.
func (s Set) contains(r rune) bool {
	i := sort.Search(len(s), func(i int) bool { return s[i].Hi >= r })
	return i < len(s) && s[i].Lo <= r
}

// Load unpacks the tables at the first call and returns the same value at every call.
var Load = sync.OnceValue(unpack)

// categories lists the two-letter general categories in table order.
var categories = []string{
	"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe",
	"Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cn", "Cs",
}

// Flags returns the flags of r; r must be a valid code point.
func (t *Tables) Flags(r rune) uint16 { return uint16(t.facts(r)) }

// Fixed returns, for each 64 characters of the basic plane (by r>>6), whether none of them may change or take part in
// a change under NFC (compat: NFKC).
func (t *Tables) Fixed(compat bool) *[1 << 10]bool {
	if compat {
		return &t.fixed[1]
	}
	return &t.fixed[0]
}

// class returns the canonical combining class of r.
func (t *Tables) class(r rune) uint8 { return uint8(t.facts(r) >> classShift) }

func (t *Tables) facts(r rune) uint32 {
	return t.flags[uint32(t.index[uint32(r)>>blockBits])<<blockBits|uint32(r)&(blockSize-1)]
}

// Set returns a named predicate set (a script, "Alphabetic", "word", …).
func (t *Tables) Set(name string) (Set, bool) {
	s, ok := t.sets[name]
	return s, ok
}

// Category returns the code points of a general category ("Lu") or of a group ("L"), and whether the name exists.
func (t *Tables) Category(name string) (Set, bool) {
	if len(name) == 0 || len(name) > 2 {
		return nil, false
	}
	var out Set
	known := false
	for i, run := range t.cats {
		cat := categories[run.cat]
		if cat[:len(name)] != name {
			continue
		}
		known = true
		hi := rune(maxRune)
		if i+1 < len(t.cats) {
			hi = t.cats[i+1].first - 1
		}
		if k := len(out); k > 0 && out[k-1].Hi+1 == run.first {
			out[k-1].Hi = hi
		} else {
			out = append(out, Range{run.first, hi})
		}
	}
	return out, known
}

// ToLower returns the lower-case form of r, nil if it is r itself.
func (t *Tables) ToLower(r rune) []rune { return t.lower[r] }

type reader struct{ s []byte }

func (r *reader) num() int {
	n, size := binary.Uvarint(r.s)
	r.s = r.s[size:]
	return int(n)
}

func (r *reader) part() []byte {
	n := r.num()
	s := r.s[:n]
	r.s = r.s[n:]
	return s
}

func unpack() *Tables {
	t := &Tables{sets: map[string]Set{}, pairs: map[[2]rune]rune{}}
	classes := map[rune]uint8{}
	top := reader{packed[len("TPU1"):]}
	for len(top.s) > 0 {
		name := string(top.part())
		body := reader{top.part()}
		switch {
		case name == "gc":
			for at := 0; len(body.s) > 0; {
				n := body.num()
				t.cats = append(t.cats, catRun{rune(at), uint8(body.num())})
				at += n
			}
		case name == "map:nfd":
			t.nfd = mapping(body)
		case name == "map:nfkd":
			t.nfkd = mapping(body)
		case name == "map:lower":
			t.lower = mapping(body)
		case name == "ccc":
			for at := 0; len(body.s) > 0; {
				n, class := body.num(), body.num()
				for r := at; class != 0 && r < at+n; r++ {
					classes[rune(r)] = uint8(class)
				}
				at += n
			}
		case name == "compose":
			for len(body.s) > 0 {
				a, b, c := body.num(), body.num(), body.num()
				t.pairs[[2]rune{rune(a), rune(b)}] = rune(c)
			}
		default:
			t.sets[name[len("set:"):]] = ranges(body)
		}
	}
	t.buildFlags(classes)
	return t
}

func ranges(body reader) Set {
	var s Set
	end := 0
	for len(body.s) > 0 {
		lo := end + body.num()
		end = lo + body.num()
		s = append(s, Range{rune(lo), rune(end - 1)})
	}
	return s
}

func mapping(body reader) map[rune][]rune {
	m := map[rune][]rune{}
	c := 0
	for len(body.s) > 0 {
		c += body.num()
		to := make([]rune, body.num())
		for i := range to {
			to[i] = rune(body.num())
		}
		m[rune(c)] = to
	}
	return m
}

func (t *Tables) buildFlags(classes map[rune]uint8) {
	byCat := make([]uint16, len(categories))
	for i, c := range categories {
		switch c[0] {
		case 'L':
			byCat[i] = L
		case 'N':
			byCat[i] = N
		case 'M':
			byCat[i] = M | Upper | Lower
		case 'P':
			byCat[i] = P
		case 'S':
			byCat[i] = S
		}
		switch c {
		case "Lu", "Lt":
			byCat[i] |= Upper
		case "Ll":
			byCat[i] |= Lower
		case "Lm", "Lo":
			byCat[i] |= Upper | Lower
		}
	}
	all := make([]uint32, maxRune+1)
	for i, run := range t.cats {
		end := maxRune + 1
		if i+1 < len(t.cats) {
			end = int(t.cats[i+1].first)
		}
		for r := int(run.first); r < end; r++ {
			all[r] = uint32(byCat[run.cat])
		}
	}
	mark := func(s Set, bit uint16) {
		for _, x := range s {
			for r := x.Lo; r <= x.Hi; r++ {
				all[r] |= uint32(bit)
			}
		}
	}
	mark(t.sets["White_Space"], Space)
	mark(t.sets["Han"], Han)
	mark(t.sets["added_word"], Word)
	mark(t.sets["numeric"], Number)
	mark(t.sets["punctuation"], Punct)
	mark(t.sets["mark"], Accent)
	mark(Set{{0x4E00, 0x9FA5}, {0x3040, 0x30FF}}, Kana)
	for r, class := range classes {
		all[r] |= uint32(NFCNo|NFKCNo) | uint32(class)<<classShift
	}
	for p := range t.pairs {
		all[p[1]] |= uint32(NFCNo | NFKCNo)
	}
	for r, d := range t.nfd {
		if t.compose(d) != r {
			all[r] |= uint32(NFCNo | NFKCNo)
		}
	}
	for r := range t.nfkd {
		all[r] |= uint32(NFKCNo)
	}
	mark(Set{{0x1161, 0x1175}, {0x11A8, 0x11C2}}, NFCNo|NFKCNo)
	for k, flag := range []uint16{NFCNo, NFKCNo} {
		for i := range t.fixed[k] {
			t.fixed[k][i] = !slices.ContainsFunc(all[i<<6:(i+1)<<6], func(f uint32) bool { return f&uint32(flag) != 0 })
		}
	}
	seen := map[[blockSize]uint32]uint16{}
	for b := range t.index {
		block := [blockSize]uint32(all[b<<blockBits:])
		k, ok := seen[block]
		if !ok {
			k = uint16(len(seen))
			seen[block] = k
			t.flags = append(t.flags, block[:]...)
		}
		t.index[b] = k
	}
}

// compose composes a full canonical decomposition as NFC does. It returns the resulting single character, or -1.
func (t *Tables) compose(d []rune) rune {
	r := d[0]
	for _, c := range d[1:] {
		next, ok := t.pair(r, c)
		if !ok {
			return -1
		}
		r = next
	}
	return r
}

// DecodeRune is utf8.DecodeRune for valid, non-empty text.
func DecodeRune(b []byte) (rune, int) {
	if c := b[0]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRune(b)
}

// InvalidLen returns the length of the maximal subpart of an ill-formed sequence at the start of s (Unicode 15,
// section 3.9), which one U+FFFD replaces.
func InvalidLen(s []byte) int {
	n := 1
	for n < len(s) && !utf8.FullRune(s[:n+1]) {
		n++
	}
	return n
}
