package engine

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// AddedMatcher finds added tokens in a text with the rules of Hugging Face
// tokenizers: leftmost first, the longest of those that begin at one place,
// white space at the sides taken along where a token says so. Engines that hand
// the text between added tokens to a model share it. It is read-only.
type AddedMatcher struct {
	u      *uni.Tables
	tokens []AddedToken
	root   [256]int32 // node after each first byte, 0 for none
	nodes  []addedNode
	firsts []byte // the first bytes, where there are few enough to search each
}

type addedNode struct {
	more  string // what all tokens below go on with
	token int32  // index of the token that ends after it, −1 for none
	bytes []byte // then comes one of these
	next  []int32
}

// maxFirsts is the number of different first bytes up to which a vectorised
// search per byte beats a table look-up at every position.
const maxFirsts = 2

// AddedSpan is an occurrence found by an [AddedMatcher].
type AddedSpan struct {
	Token      int // index into the list the matcher was made from
	Start, End int // byte range in the text, white space taken along included
}

// NewAddedMatcher makes a matcher for tokens; contents, where not nil, holds the
// spelling to look for instead of each token's own (its normalised form). Of
// two tokens with the same spelling the last counts; empty ones never match.
func NewAddedMatcher(tokens []AddedToken, contents []string) *AddedMatcher {
	m := &AddedMatcher{u: uni.Load(), tokens: slices.Clone(tokens), nodes: make([]addedNode, 1)}
	for i, t := range tokens {
		s := t.Content
		if contents != nil {
			s = contents[i]
		}
		if s == "" {
			continue
		}
		at := m.root[s[0]]
		if at == 0 {
			at = m.node()
			m.root[s[0]] = at
			m.firsts = append(m.firsts, s[0])
		}
		for k := 1; k < len(s); k++ {
			n := &m.nodes[at]
			j := bytes.IndexByte(n.bytes, s[k])
			if j < 0 {
				fresh := m.node()
				n = &m.nodes[at]
				n.bytes, n.next = append(n.bytes, s[k]), append(n.next, fresh)
				at = fresh
				continue
			}
			at = n.next[j]
		}
		m.nodes[at].token = int32(i)
	}
	for i := range m.nodes {
		m.nodes[i].join(m.nodes)
	}
	return m
}

// join takes over the nodes below while there is only one way to go.
func (n *addedNode) join(nodes []addedNode) {
	var more []byte
	for n.token < 0 && len(n.next) == 1 {
		more = append(more, n.bytes[0])
		*n = nodes[n.next[0]]
		more = append(more, n.more...)
	}
	if more != nil {
		n.more = string(more)
	}
}

func (m *AddedMatcher) node() int32 {
	m.nodes = append(m.nodes, addedNode{token: -1})
	return int32(len(m.nodes) - 1)
}

// Len returns the number of tokens.
func (m *AddedMatcher) Len() int { return len(m.tokens) }

// Append appends the occurrences in text, which must be valid UTF-8, in order.
// keep, where not nil, is asked about each (token index, byte range without
// white space); one that it refuses is passed over as if the token were not in
// the list there, so a shorter or later one may match instead.
func (m *AddedMatcher) Append(dst []AddedSpan, text []byte, keep func(token, start, end int) bool) []AddedSpan {
	if len(m.firsts) == 0 {
		return dst
	}
	done := 0 // end of the last span
	for at := m.candidate(text, 0); at < len(text); {
		token, end := m.longest(text, at, keep)
		if token < 0 {
			at = m.candidate(text, at+1)
			continue
		}
		t := &m.tokens[token]
		if t.SingleWord && (m.wordBefore(text, at) || m.wordAt(text, end)) {
			at = m.candidate(text, end)
			continue
		}
		span := AddedSpan{Token: token, Start: at, End: end}
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
			for span.End < len(text) {
				r, size := utf8.DecodeRune(text[span.End:])
				if m.u.Flags(r)&uni.Space == 0 {
					break
				}
				span.End += size
			}
		}
		done = span.End
		if span.Start < span.End { // empty: white space that the token before took
			dst = append(dst, span)
		}
		at = m.candidate(text, end)
	}
	return dst
}

// candidate returns the next position whose byte begins some token.
func (m *AddedMatcher) candidate(text []byte, at int) int {
	if at >= len(text) {
		return len(text)
	}
	if len(m.firsts) <= maxFirsts {
		best := len(text)
		for _, c := range m.firsts {
			if k := bytes.IndexByte(text[at:best], c); k >= 0 {
				best = at + k
			}
		}
		return best
	}
	for at < len(text) && m.root[text[at]] == 0 {
		at++
	}
	return at
}

// longest returns the longest token at a position that keep accepts, or −1.
func (m *AddedMatcher) longest(text []byte, at int, keep func(token, start, end int) bool) (token, end int) {
	type hit struct{ token, end int }
	var few [8]hit
	hits := few[:0]
	n, p := m.root[text[at]], at+1
	for n != 0 {
		node := &m.nodes[n]
		if p+len(node.more) > len(text) || string(text[p:p+len(node.more)]) != node.more {
			break
		}
		p += len(node.more)
		if node.token >= 0 {
			hits = append(hits, hit{int(node.token), p})
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
			return h.token, h.end
		}
	}
	return -1, 0
}

func (m *AddedMatcher) wordBefore(text []byte, p int) bool {
	r, size := utf8.DecodeLastRune(text[:p])
	return size > 0 && m.u.Flags(r)&uni.Word != 0
}

func (m *AddedMatcher) wordAt(text []byte, p int) bool {
	r, size := utf8.DecodeRune(text[p:])
	return size > 0 && m.u.Flags(r)&uni.Word != 0
}
