package tokens

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/anyrows"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// headerTokens is how many tokens a header such as
// "<|start_header_id|>assistant<|end_header_id|>" may span.
const headerTokens = 8

// Boundaries finds where messages begin in rows, which hold no message table. A message
// begins where the text comes from another message, if the row records that, and at a
// special token that neither ends the previous message nor belongs to an open header.
// Boundaries learns such tokens from the rows.
type Boundaries struct {
	model   *tokenize.Model
	spell   *Speller
	special map[rollout.TokenID]bool
	seen    map[rollout.TokenID]uses
}

// uses counts the occurrences of a special token: all, and those shortly after another
// special token that could open a message.
type uses struct{ all, inHeader int }

// NewBoundaries returns the boundaries for rows of m. Call Learn for the rows before
// Messages.
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

// Learn counts the special tokens of a row.
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

// Message is the token range [From, To) of one message in a row.
type Message struct {
	From, To int
	Index    int    // index in the rollout; −1 if the row does not record it
	Role     string // as recorded, else from the header; "" if unknown
}

// Messages splits a row into messages: where a header begins and, in a row that records
// sources, where the text of another message begins. The first message always begins at
// token 0.
func (b *Boundaries) Messages(s *rollout.Sample) []Message {
	var out []Message
	open := func(i int) {
		if n := len(out); n > 0 {
			out[n-1].To = i
		}
		out = append(out, Message{From: i, To: s.Len(), Index: -1, Role: b.role(s.IDs[i:])})
	}
	last := 0 // end of the text of the open message
	for i, id := range s.IDs {
		from := int32(-1)
		if s.Source != nil {
			from = s.Source[i]
		}
		if i == 0 || from < 0 && b.candidate(s.IDs, i) && !b.closesHeader(id) {
			open(i)
		}
		if from < 0 {
			continue
		}
		if k := out[len(out)-1].Index; k >= 0 && k != int(from) {
			open(b.marker(s.IDs, last, i))
		}
		out[len(out)-1].Index, last = int(from), i+1
	}
	roles := (&anyrows.Row{Sample: s}).Roles()
	for k := range out {
		if i := out[k].Index; i >= 0 && i < len(roles) {
			out[k].Role = string(roles[i])
		}
	}
	return out
}

// marker returns where a message begins whose text begins at token text, when it shares a
// turn with the previous message, which ended before token end: at the last added token
// between them, such as <tool_response>.
func (b *Boundaries) marker(ids []rollout.TokenID, end, text int) int {
	for i := text - 1; i >= end; i-- {
		if _, added := b.special[ids[i]]; added {
			return i
		}
	}
	return text
}

// Traced reports whether s records the sources of its tokens.
func Traced(s *rollout.Sample) bool {
	return slices.ContainsFunc(s.Source, func(m int32) bool { return m >= 0 })
}

// closesHeader reports whether id was seen only inside headers.
func (b *Boundaries) closesHeader(id rollout.TokenID) bool {
	u := b.seen[id]
	return u.all > 0 && u.inHeader == u.all
}

// role returns the lower-case name after the special tokens that open a message. The name
// ends at a line break or at a token that closes headers. Without one, role returns the
// name of the opening token.
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
		if b.special[id] && !b.closesHeader(id) {
			break
		}
		if !b.special[id] {
			name.WriteString(before)
		}
		if ends || b.closesHeader(id) {
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
