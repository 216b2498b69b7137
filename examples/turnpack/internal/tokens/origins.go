package tokens

import (
	"context"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Tracer tells where the tokens of one sequence are recorded. It renders the
// contexts of the rollout again and trusts them where the sequence holds the
// same text.
type Tracer struct {
	enc   *tokenize.Encoder
	whole bool
	spell *Speller
	r     *rollout.Rollout
	seq   *rollout.Sequence
	texts map[int][2]tokenize.Text // prompt and reply by turn
}

// NewTracer returns a tracer of seq, which enc made of r.
func NewTracer(enc *tokenize.Encoder, mode tokenize.Mode, spell *Speller, r *rollout.Rollout, seq *rollout.Sequence) *Tracer {
	return &Tracer{enc: enc, whole: mode == tokenize.Whole, spell: spell, r: r, seq: seq, texts: map[int][2]tokenize.Text{}}
}

// At returns the recorded fields that token t is text of, none for text of the
// chat template. known is false where the sequence holds other text than the
// template gives for the record, as captured ids may.
func (x *Tracer) At(ctx context.Context, t int) (origins []tokenize.Origin, known bool, err error) {
	text, from, err := x.around(ctx, t)
	if err != nil {
		return nil, false, err
	}
	before, token := x.bytes(from, t), x.bytes(t, t+1)
	if strings.HasPrefix(text.Text, before+token) {
		return text.At(len(before), len(before)+len(token)), true, nil
	}
	// Something before differs: the message alone may not.
	m := x.seq.Source[t]
	if m < 0 {
		return nil, false, nil
	}
	first, last := t, t+1
	for first > from && x.seq.Source[first-1] == m {
		first--
	}
	for last < x.seq.Len() && x.seq.Source[last] == m {
		last++
	}
	run, within := x.bytes(first, last), len(x.bytes(first, t))
	i := strings.Index(text.Text, run)
	if i < 0 || strings.Contains(text.Text[i+1:], run) {
		return nil, false, nil
	}
	origins = text.At(i+within, i+within+len(token))
	ours := slices.ContainsFunc(origins, func(o tokenize.Origin) bool { return o.Message == int(m) })
	return origins, ours, nil
}

// around returns the text that token t stands in and the token that the text
// begins with.
func (x *Tracer) around(ctx context.Context, t int) (tokenize.Text, int, error) {
	turn, from, reply := int(x.seq.Turn[t]), 0, 0
	if turn >= 0 && !x.whole {
		reply = 1
		for from = t; from > 0 && int(x.seq.Turn[from-1]) == turn; from-- {
		}
	}
	for k := t; turn < 0 && k < x.seq.Len(); k++ {
		turn = int(x.seq.Turn[k])
	}
	for k := t; turn < 0 && k >= 0; k-- { // whole rows go on behind the last reply
		turn = int(x.seq.Turn[k])
	}
	both, ok := x.texts[turn]
	if !ok {
		var err error
		if both[0], both[1], err = x.enc.Texts(ctx, x.r, turn); err != nil {
			return tokenize.Text{}, 0, err
		}
		x.texts[turn] = both
	}
	return both[reply], from, nil
}

func (x *Tracer) bytes(from, to int) string {
	var b []byte
	for _, id := range x.seq.IDs[from:to] {
		text, _ := x.spell.Bytes(id)
		b = append(b, text...)
	}
	return string(b)
}
