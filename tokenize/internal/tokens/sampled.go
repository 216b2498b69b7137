package tokens

import (
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// Completion is what the policy sampled in one turn.
type Completion struct {
	Message int32 // −1 if only the token ids are known
	Turn    int32
	// Text is the sampled text without its stop marker, "" if only the ids are known.
	Text string
	// First is the offset in Text of the first byte of the message, negative if the prompt
	// already holds it.
	First int
	Stop  string // the stop marker's text, "" when none was sampled
	Cols  Columns
	Runs  Compact // replaces Cols after Pack
}

// Pack moves the tokens from Cols to Runs.
func (c *Completion) Pack() {
	c.Runs = Compact{}
	c.Runs.mark(c.Cols)
	c.Runs.IDs, c.Cols = c.Cols.IDs, Columns{}
}

// begin returns where the completion begins in r, given the first byte of its message there.
// It is not ok if r has another text there: what the template rewrote was not sampled.
func (c *Completion) begin(r *render.Rendering, first int) (start int, ok bool) {
	start = first - c.First
	return start, c.Cols.Len()+c.Runs.Len() > 0 && start >= 0 && strings.HasPrefix(r.Text[start:], c.Text)
}

// Mark flags the columns of a completion as sampled, and its stop token.
func (c *Completion) Mark(isStop func(rollout.TokenID) bool) {
	partFlags(&c.Cols)
	for k := range c.Cols.Flags {
		c.Cols.Flags[k] |= rollout.FlagSampled
		c.Cols.Source[k] = c.Message
	}
	if c.Stopped(isStop) {
		const parts = rollout.FlagContent | rollout.FlagReasoning | rollout.FlagToolCall
		k := c.Cols.Len() - 1
		c.Cols.Flags[k] = c.Cols.Flags[k]&^parts | rollout.FlagStop
	}
}

// Stopped reports whether the completion ends with a stop token.
func (c *Completion) Stopped(isStop func(rollout.TokenID) bool) bool {
	n := c.Cols.Len()
	return n > 0 && (isStop(c.Cols.IDs[n-1]) || c.Stop != "")
}

// CheckSampled refuses a completion made from text that holds a stop token before its end:
// the model would have stopped there.
func (c *Completion) CheckSampled(vocab engine.Vocab, isStop func(rollout.TokenID) bool) error {
	for k, id := range c.Cols.IDs[:max(0, c.Cols.Len()-1)] {
		if c.Cols.Flags[k]&rollout.FlagSpecial != 0 && isStop(id) {
			text, _ := vocab.Token(id)
			return rollout.Errorf(rollout.KindTemplate, rollout.Where{}, "the reply holds the stop token %q before its end, which no model samples there", text).
				WithFix("record the engine's token ids, or use the chat template that the engine served; if the reply's own text spells the token, encode with the special tokens of guard")
		}
	}
	return nil
}

// IdsOnly sets the recorded ids of a turn of which the text is unknown.
func (c *Completion) IdsOnly(ids []rollout.TokenID, isStop func(rollout.TokenID) bool) {
	for _, id := range ids {
		c.Cols.Add(id, c.Message, 0)
	}
	c.Mark(isStop)
}

// partFlags gives the markers inside a completion the flag of the part that they frame, so
// that a mask which leaves out reasoning or tool calls leaves out their markers, too.
func partFlags(c *Columns) {
	const parts = rollout.FlagContent | rollout.FlagReasoning | rollout.FlagToolCall
	for i := 0; i < len(c.Flags); {
		if c.Flags[i]&parts != 0 {
			i++
			continue
		}
		end := i
		for end < len(c.Flags) && c.Flags[end]&parts == 0 {
			end++
		}
		var before, after rollout.Flag
		if i > 0 {
			before = c.Flags[i-1] & parts
		}
		if end < len(c.Flags) {
			after = c.Flags[end] & parts
		}
		frames := before
		switch {
		case before&rollout.FlagReasoning != 0 && after&rollout.FlagToolCall != 0:
			// The markers of both lie here; the last one opens the call.
			last := end
			for k := i; k < end; k++ {
				if c.Flags[k]&rollout.FlagSpecial != 0 {
					last = k
				}
			}
			for k := last; k < end; k++ {
				c.Flags[k] |= rollout.FlagToolCall
			}
			frames, end = rollout.FlagReasoning, last
		case (before|after)&rollout.FlagReasoning != 0:
			frames = rollout.FlagReasoning
		case (before|after)&rollout.FlagToolCall != 0:
			frames = rollout.FlagToolCall
		}
		for ; i < end; i++ {
			c.Flags[i] |= frames
		}
	}
}
