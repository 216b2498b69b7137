package tokens

import (
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// headerTokens is how many tokens a header such as
// "<|start_header_id|>assistant<|end_header_id|>" may span.
const headerTokens = 8

// Boundaries finds where messages begin in rows, which keep no message table:
// at special tokens that neither end the message before nor belong to a header
// that is already open. Which do, it learns from the rows.
type Boundaries struct {
	model   *tokenize.Model
	spell   *Speller
	special map[rollout.TokenID]bool
	seen    map[rollout.TokenID]uses
}

// uses counts where a special token stood: at all, and close behind another
// special token that could open a message.
type uses struct{ all, inHeader int }

// NewBoundaries returns the boundaries of m's rows; Learn comes before Messages.
func NewBoundaries(m *tokenize.Model) *Boundaries {
	b := &Boundaries{model: m, spell: NewSpeller(m.Tokenizer), special: map[rollout.TokenID]bool{}, seen: map[rollout.TokenID]uses{}}
	for _, a := range m.Tokenizer.Vocab().Added() {
		b.special[a.ID] = a.Special
	}
	return b
}

// Special reports whether id is a special token.
func (b *Boundaries) Special(id rollout.TokenID) bool { return b.special[id] }

// candidate reports whether a message could begin at token i.
func (b *Boundaries) candidate(ids []rollout.TokenID, i int) bool {
	return b.special[ids[i]] && !b.model.IsStop(ids[i]) && (i == 0 || !b.special[ids[i-1]] || b.model.IsStop(ids[i-1]))
}

// Learn notes the special tokens of a row.
func (b *Boundaries) Learn(ids []rollout.TokenID) {
	last := -1 - headerTokens
	for i, id := range ids {
		if b.model.IsStop(id) {
			last = -1 - headerTokens
		}
		if !b.candidate(ids, i) {
			continue
		}
		u := b.seen[id]
		u.all++
		if i-last <= headerTokens && ids[last] != id {
			u.inHeader++
		} else {
			last = i
		}
		b.seen[id] = u
	}
}

// Message is the tokens [From, To) of a row that hold one message.
type Message struct {
	From, To int
	Role     string // as the header names it, "" where it names none
}

// Messages cuts a row into messages. The first begins at token 0, whatever
// stands there.
func (b *Boundaries) Messages(ids []rollout.TokenID) []Message {
	var out []Message
	for i, id := range ids {
		if i > 0 && (!b.candidate(ids, i) || b.closes(id)) {
			continue
		}
		if n := len(out); n > 0 {
			out[n-1].To = i
		}
		out = append(out, Message{From: i, To: len(ids), Role: b.role(ids[i:])})
	}
	return out
}

// closes reports whether id was only ever seen inside a header.
func (b *Boundaries) closes(id rollout.TokenID) bool {
	u := b.seen[id]
	return u.all > 0 && u.inHeader == u.all
}

// role reads the lower-case name behind the special tokens that open a message,
// which ends at a line break or at a token that closes headers, or else the
// opening token's own name.
func (b *Boundaries) role(ids []rollout.TokenID) string {
	i := 0
	for i < len(ids) && b.special[ids[i]] {
		i++
	}
	if i == 0 {
		return ""
	}
	var name strings.Builder
	for _, id := range ids[i:min(len(ids), i+headerTokens)] {
		text, _ := b.spell.Bytes(id)
		before, _, ends := strings.Cut(string(text), "\n")
		if b.special[id] && !b.closes(id) {
			break
		}
		if !b.special[id] {
			name.WriteString(before)
		}
		if ends || b.closes(id) {
			if role := strings.TrimSpace(name.String()); isName(role) {
				return role
			}
			break
		}
	}
	own, _ := b.spell.Bytes(ids[i-1])
	return strings.ToLower(strings.Trim(string(own), "<|>[]｜ "))
}

func isName(s string) bool {
	return s != "" && len(s) <= 32 && s[0] >= 'a' && s[0] <= 'z' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:= ") == ""
}
