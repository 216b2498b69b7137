package chat

import (
	"context"
	"sort"
	"strings"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
	"github.com/turnpack/turnpack/tokenize/chat/origin"
)

// Turn is the completion of one assistant message in a rendered conversation:
// the bytes [Start, End) are what a model samples when it is asked for this
// message. Start is right after the generation prompt, which includes a
// prefilled reasoning opener; End is after the stop marker, before the
// separator that follows it.
type Turn struct {
	Message    int
	Start, End int
	// Stop is where the stop marker starts; End when none was found.
	Stop int
}

// TurnOptions tells Turns what only the model knows. The zero value works from
// the template alone.
type TurnOptions struct {
	// Stops are the texts of the stop tokens (<|im_end|>; for GLM the next role
	// marker, <|user|>, …). The first one after the last byte of the message ends
	// the turn. Without any, the turn ends where the template ends the message,
	// less trailing white space.
	Stops []string
	// Cache may be given to calls whose inputs are the same; it saves them rendering
	// again what their conversations begin with alike.
	Cache *TurnCache
}

// TurnCache holds what Turns learnt of a template's generation prompts and
// message ends. The zero value is empty. It belongs to one goroutine.
type TurnCache struct {
	openings map[bool]opening // by: does the message before come from a tool
	// Of prefixes of one conversation, whose messages of has:
	of       []value.Value
	closings map[[2]bool]string
	before   map[closed]string
}

// Turns finds the completion of every assistant message of a rendering r of c
// with input in. It needs no generation marks: it works from the origin of the
// bytes, in this way.
//
// The text of a message begins with its first byte of content, reasoning or tool
// call. Between the last byte of earlier messages and there stand the end of
// what came before, the role header, and text the template writes before
// the data (an empty <think> block, <tool_call>). Where the sampled part of that
// begins is what the template says itself when it is asked for a generation
// prompt: the conversation up to the first assistant message (once for each kind
// of message before it) is rendered with the prompt, and the text that then
// follows the last data is looked for here. If it does not stand here, the
// conversation up to this very message is rendered so, and where the text begins
// like that, the turn begins after it. If the prompt ends in a reasoning opener or a
// line of text that this turn lacks, the part before that counts. If the prompt is not
// found (a message without a header of its own, an earlier message without text),
// the last place where the generation prompt alone stands is taken, and failing
// that the place where the loop over messages began to write this message.
//
// The turn ends with the first stop marker after the last byte of the message, or
// with one that the template writes before that, before any recorded text
// of others: what a tool, a user or a variable says never ends a turn. Without Stops
// it ends with what the template writes there when the conversation ends with such
// a message, or else with this one, as far as it stands here, too, less trailing
// white space. Of messages without tool calls that have the same text of the
// template after them, one is asked.
// Messages whose text the template left out have no turn unless the loop over messages
// wrote them and the header is found. The cost is a few renderings of short prefixes, or,
// where the generation prompt is not found, one or two more for each turn.
func (t *Template) Turns(ctx context.Context, c *Conversation, in Input, r *Result, opts TurnOptions) ([]Turn, error) {
	if err := t.made(c); err != nil {
		return nil, err
	}
	f := newTurnFinder(ctx, t, c, in, r, opts, 0)
	var turns []Turn
	at := 0
	for i := range c.Len() {
		if c.Role(i) != "assistant" {
			continue
		}
		turn, ok := f.turn(i, at)
		if err := ctx.Err(); err != nil {
			return nil, t.failf(value.Limit, "rendering was stopped: %v", err)
		}
		if ok {
			turns = append(turns, turn)
			at = turn.End
		}
	}
	return turns, nil
}

// LastTurn is Turns for the last message alone, whatever its role.
func (t *Template) LastTurn(ctx context.Context, c *Conversation, in Input, r *Result, opts TurnOptions) (Turn, bool, error) {
	if err := t.made(c); err != nil || c.Len() == 0 {
		return Turn{}, false, err
	}
	last := c.Len() - 1
	f := newTurnFinder(ctx, t, c, in, r, opts, last)
	turn, ok := f.turn(last, f.emptyBefore(last))
	if err := ctx.Err(); err != nil {
		return Turn{}, false, t.failf(value.Limit, "rendering was stopped: %v", err)
	}
	return turn, ok, nil
}

// Sampled returns the byte ranges of the turns.
func Sampled(turns []Turn) [][2]int {
	out := make([][2]int, len(turns))
	for i, t := range turns {
		out[i] = [2]int{t.Start, t.End}
	}
	return out
}

type turnFinder struct {
	*TurnCache
	t       *Template
	ctx     context.Context
	c       *Conversation
	in      Input
	r       *Result
	opts    TurnOptions
	first   int         // the messages from here on are indexed
	extents []Extent    // of these; Message < 0: nowhere
	ranges  []dataRange // of these
}

// newTurnFinder returns a finder for the messages from first on.
func newTurnFinder(ctx context.Context, t *Template, c *Conversation, in Input, r *Result, opts TurnOptions, first int) *turnFinder {
	in.Reuse = nil // for one rendering, and this renders several
	f := &turnFinder{TurnCache: opts.Cache, t: t, ctx: ctx, c: c, in: in, r: r, opts: opts}
	if f.TurnCache == nil {
		f.TurnCache = &TurnCache{}
	}
	if f.openings == nil {
		f.openings, f.closings, f.before = map[bool]opening{}, map[[2]bool]string{}, map[closed]string{}
	}
	if !sameStart(f.of, c.messages.Items) {
		f.of = c.messages.Items
		clear(f.closings)
		clear(f.before)
	}
	f.index(first)
	return f
}

// sameStart reports whether messages are prefixes of the same.
func sameStart(a, b []value.Value) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

// dataRange is where the text of a message stands. first < 0: nowhere.
type dataRange struct{ first, last int }

// header says whether a field is part of the header of a message.
func header(f *Field) bool {
	return f.Part == origin.PartRole
}

// index finds where the text of the messages from first on stands.
func (f *turnFinder) index(first int) {
	n := f.c.Len() - first
	f.first, f.ranges, f.extents = first, make([]dataRange, n), make([]Extent, n)
	for i := range n {
		f.ranges[i].first, f.extents[i].Message = -1, -1
	}
	for _, e := range f.r.Extents {
		m := f.c.at(int32(e.Message))
		if m < first || m >= f.c.Len() {
			continue // of an earlier message, or r is of more
		}
		if old := &f.extents[m-first]; old.Message >= 0 {
			e.Start = min(e.Start, old.Start)
		}
		f.extents[m-first] = e
	}
	newest := -1
	quoted := map[*Field]bool{}
	for _, run := range f.r.runs {
		from := run.F
		m := f.c.at(from.Message)
		if m < first || m >= f.c.Len() || header(from) {
			continue
		}
		d := &f.ranges[m-first]
		begin := f.extents[m-first].Start
		ahead := int(run.At) < begin
		if ahead && d.first >= 0 || m < newest && d.first >= begin {
			continue // quoted in an earlier message, or again in a later one
		}
		if !ahead && (from.Key == "name" || from.Key == "id") {
			if quoted[from] {
				continue // of a call, beside its result
			}
			quoted[from] = true
		}
		if !ahead {
			newest = max(newest, m)
		}
		if d.first < begin || d.first < 0 {
			d.first = int(run.At)
		}
		d.last = int(run.At + run.N)
	}
}

// data is where the text of message i stands.
func (f *turnFinder) data(i int) dataRange {
	if i < f.first {
		f.index(0)
	}
	return f.ranges[i-f.first]
}

// bounds returns the end of the last data before message i and the start
// of the first byte of a later message after it.
func (f *turnFinder) bounds(i int) (lo, hi int) {
	runs := f.r.runs
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
	k := sort.Search(len(runs), func(k int) bool { return int(runs[k].At) >= own.first })
	for b := k - 1; b >= 0 && lo == 0; b-- {
		if f.c.at(runs[b].F.Message) != i {
			lo = int(runs[b].At + runs[b].N)
		}
	}
	for ; k < len(runs); k++ {
		if f.c.at(runs[k].F.Message) > i && int(runs[k].At) >= own.last {
			return lo, int(runs[k].At)
		}
	}
	return lo, hi
}

func (f *turnFinder) turn(i, at int) (Turn, bool) {
	lo, hi := f.bounds(i)
	lo = max(lo, at)
	own := f.data(i)
	limit := own.first
	e := f.extents[i-f.first]
	looped := e.Message >= 0
	if own.first < 0 {
		if !looped && len(f.r.Extents) > 0 {
			return Turn{}, false // the loop left it out
		}
		limit = hi
		if looped {
			limit = min(hi, e.End)
			lo = max(lo, min(e.Start, limit))
		}
	}
	if limit < lo {
		return Turn{}, false
	}
	tool := i > 0 && f.c.Role(i-1) == "tool"
	o := f.opening(tool, i)
	start, ok := 0, false
	if o.prompt == "" || !strings.HasPrefix(f.r.Text[lo:limit], o.tail) {
		start, ok = f.asked(i, lo, max(limit, own.last), o.prompt, looped || own.first >= 0)
		limit = max(limit, start)
	}
	if !ok {
		start, ok = f.start(lo, limit, o, own.first >= 0)
	}
	if tool && !ok {
		start, ok = f.start(lo, limit, f.opening(false, i), own.first >= 0)
	} else if tool {
		// A header after a tool result is scaffold even where the generation
		// prompt has none there.
		if o := f.opening(false, i); o.prompt != "" {
			for _, p := range cuts(o.prompt) {
				if ok && strings.HasPrefix(f.r.Text[start:limit], p) {
					start += len(p)
					break
				}
			}
		}
	}
	if ok && looped && start < e.Start && e.Start <= own.first {
		// Before its pass stands the header of another message, without text.
		start, ok = f.start(e.Start, limit, o, true)
	}
	if !ok {
		switch {
		case own.first < 0:
			return Turn{}, false
		case looped && e.Start >= lo && e.Start <= own.first:
			start = e.Start
		default:
			start = own.first
		}
	}
	last := max(own.last, start)
	if own.first < 0 {
		last = start
	}
	last = f.stopBefore(start, last)
	turn := Turn{Message: i, Start: start}
	turn.Stop, turn.End = f.end(i, last, max(min(hi, f.foreign(i, last)), last), looped, e)
	return turn, true
}
