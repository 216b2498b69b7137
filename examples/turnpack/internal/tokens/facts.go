package tokens

import (
	"context"

	"github.com/turnpack/turnpack/export/audit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Facts is what the audit rules want to know of a model.
func Facts(ctx context.Context, m *tokenize.Model) (*audit.Facts, error) {
	header, err := m.GenerationPrompt(ctx)
	if err != nil {
		return nil, err
	}
	f := &audit.Facts{Vocab: m.Tokenizer.Vocab().Size(), SpecialIDs: map[rollout.TokenID]bool{}, StopIDs: m.Stops(), DecodeToken: m.Tokenizer.Decode}
	for _, a := range m.Tokenizer.Vocab().Added() {
		if a.Special {
			f.SpecialIDs[a.ID] = true
		}
	}
	if len(header) > 0 {
		f.HeaderIDs = [][]rollout.TokenID{header}
	}
	return f, nil
}
