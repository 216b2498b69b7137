package completion

import (
	"context"
	"sort"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
	"github.com/turnpack/turnpack/tokenize/internal/origin"
)

// Span locates the reply of one message in a rendered conversation: the bytes [Start, End) are what
// a model samples for this message. Start is right after the generation prompt, which includes a
// prefilled opener of reasoning; End is after the stop marker, before the separator that follows
// it.
type Span struct {
	Message    int // position in the conversation, in a selection too
	Start, End int
	// Stop is where the stop marker starts; End if none was found.
	Stop int
	// Guessed says that the template opens the reply otherwise than its generation prompt, so that
	// Start may be within a header.
	Guessed bool
}

// The algorithm of turnFinder uses the origin of the bytes and needs no {% generation %} marks.
//
// The text of a message begins with its first byte of content, reasoning or tool call. Between the
// last byte of earlier messages and that byte there are the end of the previous message, the role
// header, and text the template writes before the data (an empty <think> block, <tool_call>). The
// sampled part of this begins at the end of the generation prompt: the conversation up to the first
// assistant message (once for each kind of message before it) is rendered with the prompt, and the
// text that then follows the last data is searched here. If it is not found, the conversation up to
// this message is rendered in the same way, and if the text begins like that, the turn begins after
// it. If the prompt ends in a reasoning opener or a line of text that this turn lacks, the part
// before that counts. If the prompt is not found (a message without a header of its own, an earlier
// message without text), the turn begins after the last occurrence of the generation prompt alone,
// or else where the loop over messages began to write this message.
//
// The turn ends with the first stop marker after the last byte of the message, or with an earlier
// one that the template writes, before any recorded text of others: text of a tool, a user or a
// variable never ends a turn. Without stops the turn ends with what the template writes at the end
// of a conversation that ends with such a message, or else with this one, as far as it is found
// here too, less trailing white space. For messages without tool calls that have the same template
// text after them, only one is rendered. Messages whose text the template left out have no turn
// unless the loop over messages wrote them and the header is found. The cost is a few renderings of
// short prefixes or, if the generation prompt is not found, one or two more for each turn.

// Find returns the reply of every assistant message in r, the rendering of c with input in. stops
// are the texts of the stop tokens; without any, a turn ends where the template ends the message.
func Find(ctx context.Context, t *chat.Template, c *chat.Conversation, in chat.Input, r *chat.Result, stops []string) ([]Span, error) {
	f := newTurnFinder(ctx, t, c, in, r, stops, 0, &turnMemory{history: true})
	var turns []Span
	at := 0
	for i := range c.Len() {
		if c.Role(i) != "assistant" {
			continue
		}
		turn, ok := f.turn(i, at)
		if err := f.stopped(); err != nil {
			return nil, err
		}
		if ok {
			turns = append(turns, turn)
			at = turn.End
		}
	}
	return turns, nil
}

// FindLast finds the reply of the last message only, whatever its role. prompt, if not nil, is the
// conversation before it rendered with a generation prompt; memory, if not nil, keeps what is
// learnt for the next conversation.
func FindLast(ctx context.Context, t *chat.Template, c *chat.Conversation, in chat.Input, r *chat.Result, stops []string, prompt *chat.Result, memory *turnMemory) (Span, bool, error) {
	if c.Len() == 0 {
		return Span{}, false, nil
	}
	last := c.Len() - 1
	if memory == nil {
		memory = &turnMemory{history: true}
	}
	f := newTurnFinder(ctx, t, c, in, r, stops, last, memory)
	f.prompt = prompt
	turn, ok := f.turn(last, f.emptyBefore(last))
	return turn, ok, f.stopped()
}

// turnMemory holds what is learnt of a template's generation prompts and message ends. The zero
// value is empty. It is not safe for concurrent use.
type turnMemory struct {
	// history says that all conversations are prefixes of one.
	history  bool
	openings map[bool]opened // by whether the message before is a tool result
	closings map[[2]bool]string
	before   map[closed]string
	scratch  *chat.Result // a result free for reuse
}

// turnTo prepares m for conversation c.
func (m *turnMemory) turnTo(c *chat.Conversation) {
	if m.openings == nil {
		m.openings, m.closings, m.before = map[bool]opened{}, map[[2]bool]string{}, map[closed]string{}
	}
	if !m.history {
		clear(m.closings)
		clear(m.before)
	}
}

type turnFinder struct {
	*turnMemory
	t       *chat.Template
	ctx     context.Context
	c       *chat.Conversation
	in      chat.Input
	r       *chat.Result
	runs    chat.FieldSpans // of r
	stops   []string
	prompt  *chat.Result  // the conversation before the last message, with the generation prompt; nil = not rendered
	first   int           // index of the first message in extents and ranges
	extents []chat.Extent // Message < 0: not written
	ranges  []dataRange   // of these
}

// newTurnFinder returns a finder for the messages from first on.
func newTurnFinder(ctx context.Context, t *chat.Template, c *chat.Conversation, in chat.Input, r *chat.Result, stops []string, first int, memory *turnMemory) *turnFinder {
	in.Reuse = nil // Reuse serves one rendering, and the finder makes several
	f := &turnFinder{turnMemory: memory, t: t, ctx: ctx, c: c, in: in, r: r, runs: r.FieldsFrom(0), stops: stops}
	f.turnTo(c)
	f.index(first)
	return f
}

// stopped returns an error if the context ended.
func (f *turnFinder) stopped() error {
	if err := f.ctx.Err(); err != nil {
		return rollout.Errorf(rollout.KindLimit, rollout.Where{}, "rendering was stopped: %w", err)
	}
	return nil
}

// dataRange is the range of a message's text; first < 0 if it is not written.
type dataRange struct{ first, last int }

// ofHeader reports whether a field is part of the header of a message.
func ofHeader(f *chat.Field) bool { return f.Part == origin.PartRole }

// index finds the text of the messages from first on.
func (f *turnFinder) index(first int) {
	n := f.c.Len() - first
	f.first, f.ranges, f.extents = first, make([]dataRange, n), make([]chat.Extent, n)
	for i := range n {
		f.ranges[i].first, f.extents[i].Message = -1, -1
	}
	for _, e := range f.r.Extents {
		m := f.c.Place(e.Message)
		if m < first || m >= f.c.Len() {
			continue // an earlier message, or r has more messages
		}
		if old := &f.extents[m-first]; old.Message >= 0 {
			e.Start = min(e.Start, old.Start)
		}
		f.extents[m-first] = e
	}
	newest := -1
	quoted := map[*chat.Field]bool{}
	for k := range f.runs.Len() {
		from, start, end := f.runs.At(k)
		m := f.c.Place(int(from.Message))
		if m < first || m >= f.c.Len() || ofHeader(from) {
			continue
		}
		d := &f.ranges[m-first]
		begin := f.extents[m-first].Start
		ahead := start < begin
		if ahead && d.first >= 0 || m < newest && d.first >= begin {
			continue // quoted in an earlier message, or repeated in a later one
		}
		if !ahead && (from.Key == "name" || from.Key == "id") {
			if quoted[from] {
				continue // a call's, repeated with its result
			}
			quoted[from] = true
		}
		if !ahead {
			newest = max(newest, m)
		}
		if d.first < begin || d.first < 0 {
			d.first = start
		}
		d.last = end
	}
}

// data returns the range of the text of message i.
func (f *turnFinder) data(i int) dataRange {
	if i < f.first {
		f.index(0)
	}
	return f.ranges[i-f.first]
}

// runAfter returns the index of the first run that ends after byte at.
func (f *turnFinder) runAfter(at int) int {
	return sort.Search(f.runs.Len(), func(k int) bool { _, _, end := f.runs.At(k); return end > at })
}

// bounds returns the end of the last data before message i, and the first byte of a later message
// after message i.
func (f *turnFinder) bounds(i int) (lo, hi int) {
	own := f.data(i)
	hi = len(f.r.Text)
	if own.first < 0 {
		for j := i - 1; j >= 0 && lo == 0; j-- {
			if f.data(j).first >= 0 {
				lo = f.data(j).last
			}
		}
		own.first, own.last = lo, lo
	}
	k := sort.Search(f.runs.Len(), func(k int) bool { _, start, _ := f.runs.At(k); return start >= own.first })
	for b := k - 1; b >= 0 && lo == 0; b-- {
		if field, _, end := f.runs.At(b); f.c.Place(int(field.Message)) != i {
			lo = end
		}
	}
	for ; k < f.runs.Len(); k++ {
		if field, start, _ := f.runs.At(k); f.c.Place(int(field.Message)) > i && start >= own.last {
			return lo, start
		}
	}
	return lo, hi
}

// turn finds the reply of message i, which begins at byte at or later.
func (f *turnFinder) turn(i, at int) (Span, bool) {
	lo, hi := f.bounds(i)
	lo = max(lo, at)
	own := f.data(i)
	limit := own.first
	e := f.extents[i-f.first]
	looped := e.Message >= 0
	if own.first < 0 {
		if !looped && len(f.r.Extents) > 0 {
			return Span{}, false // the loop left it out
		}
		limit = hi
		if looped {
			limit = min(hi, e.End)
			lo = max(lo, min(e.Start, limit))
		}
	}
	if limit < lo {
		return Span{}, false
	}
	tool := f.c.Role(i-1) == "tool"
	o := f.opened(tool, i)
	start, ok, guessed := 0, false, false
	if o.prompt == "" || !strings.HasPrefix(f.r.Text[lo:limit], o.tail) {
		start, ok = f.afterPrompt(i, lo, max(limit, own.last), o.prompt, looped || own.first >= 0)
		limit = max(limit, start)
	}
	if !ok {
		start, ok, guessed = f.completionStart(lo, limit, o, own.first >= 0)
	}
	plain := o
	if tool {
		plain = f.opened(false, i)
	}
	switch {
	case tool && !ok:
		start, ok, guessed = f.completionStart(lo, limit, plain, own.first >= 0)
	case ok && ownText(plain.prompt) != "":
		// A header after a tool result or another reply is scaffold even if the generation prompt
		// has none there.
		for _, p := range promptBeginnings(plain.prompt) {
			if strings.HasPrefix(f.r.Text[start:limit], p) {
				start += len(p)
				break
			}
		}
	}
	if ok && looped && start < e.Start && e.Start <= own.first {
		// Text before its loop pass is the header of another message, without text.
		start, ok, guessed = f.completionStart(e.Start, limit, o, true)
	}
	if !ok {
		guessed = o.prompt != ""
		switch {
		case own.first < 0:
			return Span{}, false
		case looped && e.Start >= lo && e.Start <= own.first:
			start = e.Start
		default:
			start = own.first
		}
		if end := strings.TrimSuffix(o.tail, o.prompt); strings.HasPrefix(f.r.Text[lo:max(lo, own.first)], end) {
			start = max(start, lo+len(end)) // of the message before, for templates that write it with the next one
		}
		if guessed && strings.TrimSpace(f.r.Text[start:max(start, own.first)]) == "" {
			start = max(start, own.first) // blanks that no prompt ends with
		}
	}
	last := max(own.last, start)
	if own.first < 0 {
		last = start
	}
	last = f.stopBefore(start, last)
	turn := Span{Message: i, Start: start, Guessed: guessed}
	turn.Stop, turn.End = f.completionEnd(i, last, max(min(hi, f.foreign(i, last)), last), looped, e)
	return turn, true
}
