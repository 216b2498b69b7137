package tokenize

import (
	"context"
	"errors"

	"github.com/turnpack/turnpack/tokenize/chat"
)

// growing renders prefixes of the plain history, and takes over from each result
// only what the one before did not have.
type growing struct {
	chat *chat.Growing
	last rendering
}

func (g *growing) render(ctx context.Context, n int, index []int32) (*chat.Result, error) {
	res, kept, err := g.chat.Render(ctx, n)
	if err != nil {
		return nil, err
	}
	fields := g.last.fields
	k := len(fields)
	for k > 0 && fields[k-1].end >= kept { // it may go on where it ended
		k--
	}
	from := 0
	if k > 0 {
		from = fields[k-1].end
	}
	g.last = rendering{text: res.Text, fields: appendFields(fields[:k], res, from, index[:n]), count: g.last.count + 1, kept: kept}
	return res, nil
}

// twins are a growing conversation as it is shown to be answered, and as it reads
// with the answer.
type twins struct {
	asked, replied growing
	alike          int // bytes that the last two share, origin included
}

func (w *twins) ask(ctx context.Context, n int, index []int32) (rendering, error) {
	if _, err := w.asked.render(ctx, n, index); err != nil {
		return rendering{}, err
	}
	w.alike = min(w.alike, w.asked.last.kept)
	return w.asked.last, nil
}

func (w *twins) reply(ctx context.Context, n int, index []int32) (rendering, *chat.Result, error) {
	res, err := w.replied.render(ctx, n, index)
	if err != nil {
		return rendering{}, nil, err
	}
	out := w.replied.last
	if out.count == 0 {
		return out, res, nil
	}
	w.alike = commonFrom(&w.asked.last, &out, min(w.alike, out.kept))
	out.count, out.kept = w.asked.last.count, w.alike
	return out, res, nil
}

// check makes sure that growing contexts were rendered as if each were alone. x
// may be nil.
func (x *renderer) check() error {
	if x == nil {
		return nil
	}
	return errors.Join(x.plainly.asked.chat.Check(x.ctx), x.plainly.replied.chat.Check(x.ctx))
}
