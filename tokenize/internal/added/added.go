package added

import (
	"bytes"
	"maps"
	"slices"
	"sort"
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// Matcher finds added tokens in a text with the rules of Hugging Face tokenizers: leftmost first, the longest of
// those that begin at one position, with the white space around it that a token includes. Engines that pass the text
// between added tokens to a model share it. It is read-only.
type Matcher struct {
	u      *uni.Tables
	tokens []engine.AddedToken
	root   [256]int32 // node after each first byte, 0 for none
	nodes  []addedNode
	firsts []byte // the first bytes, if there are few enough to search for each
}

type addedNode struct {
	more  string // common continuation of all tokens below
	token int32  // index of the token that ends after more, −1 for none
	bytes []byte // the bytes that can follow
	next  []int32
}

// maxFirsts is the number of different first bytes up to which a vectorised search per byte is faster than a table
// lookup at every position.
const maxFirsts = 2

// Span is an occurrence found by a [Matcher].
type Span struct {
	Token      int // index into the list given to New
	Start, End int // byte range in the text, including white space
}

// New returns a matcher for tokens. contents, if not nil, holds the spellings to match instead of each token's own
// (its normalised form). Of two tokens with the same spelling the last wins; empty ones never match.
func New(tokens []engine.AddedToken, contents []string) *Matcher {
	m := &Matcher{u: uni.Load(), tokens: slices.Clone(tokens), nodes: make([]addedNode, 1)}
	last := make(map[string]int32, len(tokens))
	for i, t := range tokens {
		s := t.Content
		if contents != nil {
			s = contents[i]
		}
		if s == "" {
			continue
		}
		if bytes.IndexByte(m.firsts, s[0]) < 0 {
			m.firsts = append(m.firsts, s[0])
		}
		last[s] = int32(i)
	}
	sorted := slices.Sorted(maps.Keys(last))
	for len(sorted) > 0 {
		n := sameByte(sorted, 0)
		m.root[sorted[0][0]] = m.node(sorted[:n], 1, last)
		sorted = sorted[n:]
	}
	return m
}

// sameByte returns how many strings at the start of a sorted list have the same byte at k.
func sameByte(sorted []string, k int) int {
	c := sorted[0][k]
	return sort.Search(len(sorted), func(i int) bool { return sorted[i][k] > c })
}

// node adds the node for a sorted list of spellings with a common prefix up to at, and the nodes below it.
func (m *Matcher) node(sorted []string, at int, token map[string]int32) int32 {
	first, end := sorted[0], sorted[len(sorted)-1]
	k := at
	for k < len(first) && first[k] == end[k] {
		k++
	}
	n := addedNode{more: first[at:k], token: -1}
	if k == len(first) {
		n.token, sorted = token[first], sorted[1:]
	}
	index := int32(len(m.nodes))
	m.nodes = append(m.nodes, addedNode{})
	for len(sorted) > 0 {
		c := sameByte(sorted, k)
		n.bytes = append(n.bytes, sorted[0][k])
		n.next = append(n.next, m.node(sorted[:c], k+1, token))
		sorted = sorted[c:]
	}
	m.nodes[index] = n
	return index
}

// Len returns the number of tokens.
func (m *Matcher) Len() int { return len(m.tokens) }

// Append appends the occurrences in text, which must be valid UTF-8, in order. keep, if not nil, is called for each
// (token index, byte range without white space). If it refuses an occurrence, the search continues as if the token
// were not in the list there, so a shorter or later one may match instead.
func (m *Matcher) Append(dst []Span, text []byte, keep func(token, start, end int) bool) []Span {
	if len(m.firsts) == 0 {
		return dst
	}
	done := 0 // end of the last span
	var few [8]addedHit
	hits := few[:0]
	var space [2]int // the last white space included on the right
	var ahead [maxFirsts]int
	for at := m.candidate(&ahead, text, 0); at < len(text); {
		var token, end int
		token, end, hits = m.longest(hits[:0], text, at, keep)
		if token < 0 {
			at = m.candidate(&ahead, text, at+1)
			continue
		}
		t := &m.tokens[token]
		if t.SingleWord && (m.wordBefore(text, at) || m.wordAt(text, end)) {
			at = m.candidate(&ahead, text, end)
			continue
		}
		span := Span{Token: token, Start: at, End: end}
		if t.LStrip {
			for span.Start > done {
				r, size := utf8.DecodeLastRune(text[:span.Start])
				if m.u.Flags(r)&uni.Space == 0 {
					break
				}
				span.Start -= size
			}
			span.Start = max(span.Start, done)
		}
		if t.RStrip {
			if space[0] <= span.End && span.End < space[1] {
				span.End = space[1] // already searched
			}
			for span.End < len(text) {
				r, size := utf8.DecodeRune(text[span.End:])
				if m.u.Flags(r)&uni.Space == 0 {
					break
				}
				span.End += size
			}
			space = [2]int{end, span.End}
		}
		done = span.End
		if span.Start < span.End { // empty: white space that the token before includes
			dst = append(dst, span)
		}
		at = m.candidate(&ahead, text, end)
	}
	return dst
}

// candidate returns the next position whose byte begins some token. ahead holds where each first byte was last found,
// so that no stretch is searched twice; initially it is zero.
func (m *Matcher) candidate(ahead *[maxFirsts]int, text []byte, at int) int {
	if at >= len(text) {
		return len(text)
	}
	if len(m.firsts) <= maxFirsts {
		best := len(text)
		for i, c := range m.firsts {
			if ahead[i] < at || at == 0 {
				ahead[i] = len(text)
				if k := bytes.IndexByte(text[at:], c); k >= 0 {
					ahead[i] = at + k
				}
			}
			best = min(best, ahead[i])
		}
		return best
	}
	for at < len(text) && m.root[text[at]] == 0 {
		at++
	}
	return at
}

// addedHit is a matched token and where it ends.
type addedHit struct{ token, end int }

// longest returns the longest token at a position that keep accepts, or −1, and its end. hits is a buffer; all is
// the buffer after use.
func (m *Matcher) longest(hits []addedHit, text []byte, at int, keep func(token, start, end int) bool) (token, end int, all []addedHit) {
	n, p := m.root[text[at]], at+1
	for n != 0 {
		node := &m.nodes[n]
		if p+len(node.more) > len(text) || string(text[p:p+len(node.more)]) != node.more {
			break
		}
		p += len(node.more)
		if node.token >= 0 {
			hits = append(hits, addedHit{int(node.token), p})
		}
		if p == len(text) {
			break
		}
		j := bytes.IndexByte(node.bytes, text[p])
		if j < 0 {
			break
		}
		n = node.next[j]
		p++
	}
	for i := len(hits) - 1; i >= 0; i-- {
		if h := hits[i]; keep == nil || keep(h.token, at, h.end) {
			return h.token, h.end, hits
		}
	}
	return -1, 0, hits
}

func (m *Matcher) wordBefore(text []byte, p int) bool {
	r, size := utf8.DecodeLastRune(text[:p])
	return size > 0 && m.u.Flags(r)&uni.Word != 0
}

func (m *Matcher) wordAt(text []byte, p int) bool {
	r, size := utf8.DecodeRune(text[p:])
	return size > 0 && m.u.Flags(r)&uni.Word != 0
}
