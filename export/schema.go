package export

import "github.com/turnpack/turnpack/export/internal/pq"

// SchemaVersion is the version of the row schema that this package writes.
const SchemaVersion = "1"

// Keys of the file metadata.
const (
	metaSchemaVersion = "turnpack.schema_version"
	metaTokenizer     = "turnpack.tokenizer" // "sha256:<hex>"
	metaTemplate      = "turnpack.template"  // "sha256:<hex>"
	metaEstimator     = "turnpack.estimator" // preset name or JSON record
	MetaColumns       = "turnpack.columns"   // optional columns in use, comma separated
	metaGroupSeq      = "turnpack.group_seq" // number of the batch in a stream, from 1
)

// Names of the columns, in file order.
const (
	colSampleID       = "sample_id"
	ColGroupID        = "group_id"
	ColRolloutID      = "rollout_id"
	ColRolloutIndex   = "rollout_index"
	ColSampleIndex    = "sample_index"
	colIsLast         = "is_last"
	colStepFirst      = "step_first"
	colStepLast       = "step_last"
	colPromptLen      = "prompt_len"
	ColInputIDs       = "input_ids"
	ColLossMask       = "loss_mask"
	ColLogprobs       = "logprobs"
	ColWeights        = "weights"
	ColAdvantages     = "advantages"
	ColVersions       = "versions"
	colReward         = "reward"
	colOutcomeReward  = "outcome_reward"
	colStepReward     = "step_reward"
	ColAdvantage      = "advantage"
	ColStatus         = "status"
	colFinishReason   = "finish_reason"
	colMaskReason     = "mask_reason"
	ColRolloutMaskSum = "rollout_mask_sum"
	ColTemperature    = "temperature"
	ColMetadata       = "metadata"
	ColSources        = "sources" // with Options.Trace
	ColFlags          = "flags"   // with Options.Trace
)

// A column is one line of the schema table.
type column struct {
	pq.Column
	unit string // what one value counts or ranges over
	doc  string
}

// columns is schema version 1, the columns of Options.Trace last. Encodings are those measured smallest: token ids
// plain (a dictionary hides repeated prefixes from zstd), log probabilities
// byte-stream-split, everything that comes in runs as a dictionary.
func columns() []column {
	text := func(name string, nullable bool, enc pq.Encoding, unit, doc string) column {
		return column{pq.Column{Name: name, Kind: pq.Text, Nullable: nullable, Encoding: enc, Stats: name != ColMetadata}, unit, doc}
	}
	scalar := func(name string, k pq.Kind, nullable bool, unit, doc string) column {
		return column{pq.Column{Name: name, Kind: k, Nullable: nullable, Stats: true}, unit, doc}
	}
	list := func(name string, k pq.Kind, nullable bool, enc pq.Encoding, unit, doc string) column {
		level := 0
		if enc == pq.Split || name == ColInputIDs {
			level = 1 // mantissas do not compress, and ids a tenth better at 3 for half as much time again
		}
		return column{pq.Column{Name: name, Kind: k, List: true, Nullable: nullable, Encoding: enc, Level: level}, unit, doc}
	}
	const perToken = "one per token"
	return []column{
		text(colSampleID, false, pq.Plain, "identifier", "unique, <rollout_id>#<sample_index>"),
		text(ColGroupID, false, pq.Dictionary, "identifier", "GRPO group: the prompt or task instance"),
		text(ColRolloutID, false, pq.Dictionary, "identifier", "one attempt; its rows share it"),
		scalar(ColRolloutIndex, pq.Int32, false, "index from 0", "rollout inside its group"),
		scalar(ColSampleIndex, pq.Int32, false, "index from 0", "row inside its rollout"),
		scalar(colIsLast, pq.Bool, false, "flag", "last row of its rollout"),
		scalar(colStepFirst, pq.Int32, false, "agent step from 0", "first step whose sampled tokens the row trains, -1 = none"),
		scalar(colStepLast, pq.Int32, false, "agent step from 0", "last step whose sampled tokens the row trains, -1 = none"),
		scalar(colPromptLen, pq.Int32, false, "tokens", "leading tokens before the first trained or sampled one, at least 1"),
		list(ColInputIDs, pq.Int32, false, pq.Plain, perToken+", vocabulary id", "all tokens"),
		list(ColLossMask, pq.Int8, false, pq.Dictionary, perToken+", 0 or 1", "1 = trained"),
		list(ColLogprobs, pq.Float32, true, pq.Split, perToken+", natural logarithm, at most 0", "behaviour-policy log probability; 0 where loss_mask is 0"),
		list(ColWeights, pq.Float32, true, pq.Dictionary, perToken+", at least 0", "loss weight; null = loss_mask"),
		list(ColAdvantages, pq.Float32, true, pq.Dictionary, perToken, "advantage of the token; 0 where loss_mask is 0"),
		list(ColVersions, pq.Int32, true, pq.Dictionary, perToken+", policy version", "policy that sampled the token; -1 where not sampled"),
		scalar(colReward, pq.Float32, false, "reward", "rollout reward: outcome + coefficient x mean step score"),
		scalar(colOutcomeReward, pq.Float32, false, "reward", "outcome part of the reward"),
		scalar(colStepReward, pq.Float32, true, "reward", "mean process score of the row's steps, null = not scored"),
		scalar(ColAdvantage, pq.Float32, true, "advantage", "scalar advantage of the row's rollout, or of the row for estimators by step"),
		text(ColStatus, false, pq.Dictionary, "completed, truncated, aborted or failed", "how the rollout ended"),
		text(colFinishReason, false, pq.Dictionary, "stop, length, tool_calls, limit, ...; empty = unknown", "why the last completion ended"),
		text(colMaskReason, true, pq.Dictionary, "short word", "why the whole mask was zeroed, null = it was not"),
		scalar(ColRolloutMaskSum, pq.Int64, false, "tokens", "trained tokens over all rows of the rollout"),
		scalar(ColTemperature, pq.Float32, false, "sampling temperature", "holds for every token of the row"),
		text(ColMetadata, true, pq.Plain, "JSON object", "free"),
		list(ColSources, pq.Int32, true, pq.Dictionary, perToken+", message index from 0", "message of the rollout that the token's text is from; -1 = written by the chat template"),
		list(ColFlags, pq.Int8, true, pq.Dictionary, perToken+", bit set", "1 sampled, 2 content, 4 reasoning, 8 tool call, 16 special, 32 stop, 64 repaired"),
	}
}

// Positions in columns(), used where rows are taken apart and put together.
const (
	iSampleID = iota
	iGroupID
	iRolloutID
	iRolloutIndex
	iSampleIndex
	iIsLast
	iStepFirst
	iStepLast
	iPromptLen
	iInputIDs
	iLossMask
	iLogprobs
	iWeights
	iAdvantages
	iVersions
	iReward
	iOutcomeReward
	iStepReward
	iAdvantage
	iStatus
	iFinishReason
	iMaskReason
	iRolloutMaskSum
	iTemperature
	iMetadata
	iSources
	iFlags
	numColumns
)

// written are the columns of a file with and without a trace.
func written(trace bool) []column {
	if trace {
		return columns()
	}
	return columns()[:iSources]
}
