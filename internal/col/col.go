// Package col names the columns of a row, for package export and the packages around it.
package col

// Names of the columns, in file order.
const (
	SampleID       = "sample_id"
	GroupID        = "group_id"
	RolloutID      = "rollout_id"
	RolloutIndex   = "rollout_index"
	SampleIndex    = "sample_index"
	IsLast         = "is_last"
	StepFirst      = "step_first"
	StepLast       = "step_last"
	PromptLen      = "prompt_len"
	InputIDs       = "input_ids"
	LossMask       = "loss_mask"
	Logprobs       = "logprobs"
	Weights        = "weights"
	Advantages     = "advantages"
	Versions       = "versions"
	Reward         = "reward"
	OutcomeReward  = "outcome_reward"
	StepReward     = "step_reward"
	Advantage      = "advantage"
	Status         = "status"
	FinishReason   = "finish_reason"
	MaskReason     = "mask_reason"
	RolloutMaskSum = "rollout_mask_sum"
	Temperature    = "temperature"
	Metadata       = "metadata"
	Sources        = "sources" // with export.Options.Trace
	Flags          = "flags"   // with export.Options.Trace
)

// Columns is the key of the file metadata that lists the optional columns in use, separated by
// commas.
const Columns = "turnpack.columns"
