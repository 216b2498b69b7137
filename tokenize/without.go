package tokenize

import (
	"errors"
	"math"
	"slices"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// idsAlone is the tokenizer of an encoder without a model: every id is valid and none has a text.
type idsAlone struct{}

var errIDsAlone = errors.New("no model is given, so ids have no text")

func (idsAlone) Encode(*engine.Encoding, string, engine.EncodeOptions) error { return errIDsAlone }
func (idsAlone) Decode([]rollout.TokenID) (string, error)                    { return "", errIDsAlone }
func (idsAlone) Vocab() engine.Vocab                                         { return idsAlone{} }
func (idsAlone) Digest() string                                              { return "" }
func (idsAlone) Size() int                                                   { return math.MaxInt32 }
func (idsAlone) ID(string) (rollout.TokenID, bool)                           { return -1, false }
func (idsAlone) Token(rollout.TokenID) (string, bool)                        { return "", false }
func (idsAlone) Added() []engine.AddedToken                                  { return nil }

// hasModel reports whether m is a user's model, and not that of an encoder without one.
func hasModel(m *Model) bool { _, none := m.Tokenizer.(idsAlone); return !none }

// needsModel returns an error for options that recorded ids alone cannot satisfy.
func (o *Options) needsModel() error {
	switch {
	case o.Mode == Whole:
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "model"}, "whole rows are written by a chat template, and no model is given").WithFix("load a model folder, or make merged or per-step rows of recorded ids")
	case o.Drift.Text == nil && slices.Contains([]string{"splice", "realign", "auto"}, o.Drift.Drift):
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "model"}, "the drift policy %s compares what tokens spell, and no model is given", o.Drift.Drift).WithFix("load a model folder, or take the drift policy fork or refuse")
	}
	return nil
}
