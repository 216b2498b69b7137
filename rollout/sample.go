package rollout

import "encoding/json"

// Sample is one training row: a sequence and its bookkeeping. Exporters write it and
// readers return it. Pointers are nil when not computed, which differs from zero.
type Sample struct {
	Sequence

	ID           string // unique, "<rollout>#<sample index>"
	RolloutIndex int    // 0-based index of the rollout inside its group
	IsLast       bool   // last row of its rollout
	// PromptLen is the number of leading tokens before the first trained or sampled one, at
	// least 1. A reply that the loss mask excludes is not part of the prompt.
	PromptLen int

	Reward        float64
	OutcomeReward float64
	StepReward    *float64 // mean score of the steps of this row
	Advantage     *float64
	// RolloutMaskSum is the number of trained tokens in all rows of the rollout.
	RolloutMaskSum int64

	Status       Status
	FinishReason string
	MaskReason   string // why the whole mask was zeroed, "" if it was not
	Temperature  float32
	Metadata     json.RawMessage // a JSON object, nil = none
}
