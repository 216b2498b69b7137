package tokenize

import (
	"context"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// GenerationPrompt is the token sequence with which the chat template opens an
// assistant turn, nil when the model has no template or it writes none.
func (m *Model) GenerationPrompt(ctx context.Context) ([]rollout.TokenID, error) {
	x, err := m.probe(ctx, user("x"))
	if x == nil {
		return nil, err
	}
	bare, err := x.document()
	if err != nil {
		return nil, err
	}
	with, err := x.run(x.all, x.index, true)
	if err != nil {
		return nil, err
	}
	text, ok := strings.CutPrefix(with.text, bare.text)
	if !ok || text == "" {
		return nil, nil
	}
	added, err := newAddedTokens(m.Tokenizer)
	if err != nil {
		return nil, err
	}
	var e Encoding
	p := &pieceEncoder{addedTokens: added, specials: SpecialsParity}
	err = m.Tokenizer.Encode(&e, text, EncodeOptions{After: p.after(&with, len(bare.text))})
	return e.IDs, err
}
