package tokens

import (
	"context"

	"github.com/turnpack/turnpack/export/audit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Facts is what the audit rules want to know of a model.
func Facts(ctx context.Context, m *tokenize.Model) (*audit.Model, error) {
	header, err := m.GenerationPrompt(ctx)
	if err != nil {
		return nil, err
	}
	f := &audit.Model{Vocab: m.Tokenizer.Vocab().Size(), Special: map[rollout.TokenID]bool{}, Stops: m.Stops(), Decode: m.Tokenizer.Decode}
	for _, a := range m.Tokenizer.Vocab().Added() {
		if a.Special {
			f.Special[a.ID] = true
		}
	}
	if len(header) > 0 {
		f.Headers = [][]rollout.TokenID{header}
	}
	return f, nil
}
