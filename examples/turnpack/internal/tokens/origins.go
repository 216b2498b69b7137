package tokens

import (
	"context"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Tracer finds where the tokens of one sequence are recorded. It renders the contexts of
// the rollout again and trusts them where the sequence has the same text.
type Tracer struct {
	enc   *tokenize.Encoder
	whole bool
	r     *rollout.Rollout
	seq   *rollout.Sequence
	text  string   // of all tokens
	at    []int    // byte offset of each token's text, and the end
	turns []int    // turn of the prompt or reply that holds each token
	runs  [][2]int // range of tokens around each with the same message and turn
	seen  map[side]*rendered
}

// side is the prompt or the reply of a turn.
type side struct {
	turn  int
	reply bool
}

// rendered is the text of a side and how it agrees with the sequence.
type rendered struct {
	tokenize.Text
	common int            // number of leading bytes that agree
	moved  map[[2]int]int // token range of a message → byte offset in the text, −1 if not found
}

// NewTracer returns a tracer of seq, which enc encoded from r.
func NewTracer(enc *tokenize.Encoder, mode tokenize.Mode, spell *Speller, r *rollout.Rollout, seq *rollout.Sequence) *Tracer {
	x := &Tracer{enc: enc, whole: mode == tokenize.Whole, r: r, seq: seq, at: make([]int, 0, seq.Len()+1), seen: map[side]*rendered{}}
	var text []byte
	for _, id := range seq.IDs {
		x.at = append(x.at, len(text))
		b, _ := spell.Bytes(id)
		text = append(text, b...)
	}
	x.at, x.text = append(x.at, len(text)), string(text)
	x.findTurnsAndRuns()
	return x
}

// findTurnsAndRuns computes turns and runs.
func (x *Tracer) findTurnsAndRuns() {
	n := x.seq.Len()
	x.turns, x.runs = make([]int, n), make([][2]int, n)
	last := -1 // in whole rows, text after the last reply belongs to the last turn
	for _, turn := range x.seq.Turn {
		last = max(last, int(turn))
	}
	for t := n - 1; t >= 0; t-- { // a prompt belongs to the turn of the next reply
		if turn := int(x.seq.Turn[t]); turn >= 0 {
			last = turn
		}
		x.turns[t] = last
	}
	for from := 0; from < n; {
		to := from + 1
		for to < n && x.seq.Source[to] == x.seq.Source[from] && x.seq.Turn[to] == x.seq.Turn[from] {
			to++
		}
		for t := from; t < to; t++ {
			x.runs[t] = [2]int{from, to}
		}
		from = to
	}
}

// At returns the recorded fields that the text of token t comes from; none for text of
// the chat template. known is false if the text of the sequence differs from what the
// template renders for the record, as it may for captured ids.
func (x *Tracer) At(ctx context.Context, t int) (origins []tokenize.Origin, known bool, err error) {
	text, from, err := x.around(ctx, t)
	if err != nil {
		return nil, false, err
	}
	if end := x.at[t+1] - x.at[from]; end <= text.common {
		return text.At(x.at[t]-x.at[from], end), true, nil
	}
	// Earlier text differs, but this message may still agree.
	m := x.seq.Source[t]
	if m < 0 {
		return nil, false, nil
	}
	run := x.runs[t]
	begin := text.find(run, x.text[x.at[run[0]]:x.at[run[1]]])
	if begin < 0 {
		return nil, false, nil
	}
	begin -= x.at[run[0]]
	origins = text.At(begin+x.at[t], begin+x.at[t+1])
	ours := slices.ContainsFunc(origins, func(o tokenize.Origin) bool { return o.Message == int(m) })
	return origins, ours, nil
}

// find returns the byte offset of run in the text, or −1 if it occurs never or several
// times.
func (r *rendered) find(key [2]int, run string) int {
	if at, ok := r.moved[key]; ok {
		return at
	}
	at := strings.Index(r.Text.Text, run)
	if at >= 0 && strings.Contains(r.Text.Text[at+1:], run) {
		at = -1
	}
	r.moved[key] = at
	return at
}

// around returns the text that contains token t, and the token where that text begins.
func (x *Tracer) around(ctx context.Context, t int) (*rendered, int, error) {
	s, from := side{turn: x.turns[t]}, 0
	if x.seq.Turn[t] >= 0 && !x.whole {
		s.reply, from = true, x.runs[t][0]
	}
	if x.whole {
		s.turn = 0 // all turns are in one text
	}
	if out, ok := x.seen[s]; ok {
		return out, from, nil
	}
	prompt, reply, err := x.enc.Texts(ctx, x.r, s.turn)
	if err != nil {
		return nil, 0, err
	}
	out := &rendered{Text: prompt, moved: map[[2]int]int{}}
	if s.reply {
		out.Text = reply
	}
	ours := x.text[x.at[from]:]
	for out.common < min(len(ours), len(out.Text.Text)) && ours[out.common] == out.Text.Text[out.common] {
		out.common++
	}
	x.seen[s] = out
	return out, from, nil
}
