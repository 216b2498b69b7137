package export

import (
	"github.com/turnpack/turnpack/export/internal/pq"
	"github.com/turnpack/turnpack/internal/col"
)

// SchemaVersion is the version of the row schema that this package writes.
const SchemaVersion = "1"

// Keys of the file metadata.
const (
	metaSchemaVersion = "turnpack.schema_version"
	metaTokenizer     = "turnpack.tokenizer" // "sha256:<hex>"
	metaTemplate      = "turnpack.template"  // "sha256:<hex>"
	metaEstimator     = "turnpack.estimator" // preset name or JSON record
	metaGroupSeq      = "turnpack.group_seq" // number of the batch in a stream, from 1
)

// A column is one line of the schema table.
type column struct {
	pq.Column
	unit string // what one value counts, or its range
	doc  string
}

// columns returns schema version 1, with the columns of Options.Trace last. Each column has the
// encoding that measured smallest: plain for token ids (a dictionary hides repeated prefixes
// from zstd), byte-stream-split for log probabilities, dictionary for columns with long runs.
func columns() []column {
	text := func(name string, nullable bool, enc pq.Encoding, unit, doc string) column {
		return column{pq.Column{Name: name, Kind: pq.Text, Nullable: nullable, Encoding: enc, Stats: name != col.Metadata}, unit, doc}
	}
	scalar := func(name string, k pq.Kind, nullable bool, unit, doc string) column {
		return column{pq.Column{Name: name, Kind: k, Nullable: nullable, Stats: true}, unit, doc}
	}
	list := func(name string, k pq.Kind, nullable bool, enc pq.Encoding, unit, doc string) column {
		level := 0
		if enc == pq.Split || name == col.InputIDs {
			level = 1 // mantissas do not compress; ids shrink by 10% more at level 3 but take 50% longer
		}
		return column{pq.Column{Name: name, Kind: k, List: true, Nullable: nullable, Encoding: enc, Level: level}, unit, doc}
	}
	const perToken = "one per token"
	return []column{
		text(col.SampleID, false, pq.Plain, "identifier", "unique, <rollout_id>#<sample_index>"),
		text(col.GroupID, false, pq.Dictionary, "identifier", "GRPO group: the prompt or task instance"),
		text(col.RolloutID, false, pq.Dictionary, "identifier", "one attempt; its rows share it"),
		scalar(col.RolloutIndex, pq.Int32, false, "index from 0", "rollout inside its group"),
		scalar(col.SampleIndex, pq.Int32, false, "index from 0", "row inside its rollout"),
		scalar(col.IsLast, pq.Bool, false, "flag", "last row of its rollout"),
		scalar(col.StepFirst, pq.Int32, false, "agent step from 0", "first step whose sampled tokens the row trains, -1 = none"),
		scalar(col.StepLast, pq.Int32, false, "agent step from 0", "last step whose sampled tokens the row trains, -1 = none"),
		scalar(col.PromptLen, pq.Int32, false, "tokens", "leading tokens before the first trained or sampled one, at least 1"),
		list(col.InputIDs, pq.Int32, false, pq.Plain, perToken+", vocabulary id", "all tokens"),
		list(col.LossMask, pq.Int8, false, pq.Dictionary, perToken+", 0 or 1", "1 = trained"),
		list(col.Logprobs, pq.Float32, true, pq.Split, perToken+", natural logarithm, at most 0", "behaviour-policy log probability; 0 where loss_mask is 0"),
		list(col.Weights, pq.Float32, true, pq.Dictionary, perToken+", at least 0", "loss weight; null = loss_mask"),
		list(col.Advantages, pq.Float32, true, pq.Dictionary, perToken, "advantage of the token; 0 where loss_mask is 0"),
		list(col.Versions, pq.Int32, true, pq.Dictionary, perToken+", policy version", "policy that sampled the token; -1 where not sampled"),
		scalar(col.Reward, pq.Float32, false, "reward", "rollout reward: outcome + coefficient x mean step score"),
		scalar(col.OutcomeReward, pq.Float32, false, "reward", "outcome part of the reward"),
		scalar(col.StepReward, pq.Float32, true, "reward", "mean process score of the row's steps, null = not scored"),
		scalar(col.Advantage, pq.Float32, true, "advantage", "scalar advantage of the row's rollout, or of the row for estimators by step"),
		text(col.Status, false, pq.Dictionary, "completed, truncated, aborted or failed", "how the rollout ended"),
		text(col.FinishReason, false, pq.Dictionary, "stop, length, tool_calls, limit, ...; empty = unknown", "why the last completion ended"),
		text(col.MaskReason, true, pq.Dictionary, "short word", "why the whole mask was zeroed, null = it was not"),
		scalar(col.RolloutMaskSum, pq.Int64, false, "tokens", "trained tokens over all rows of the rollout"),
		scalar(col.Temperature, pq.Float32, false, "sampling temperature", "holds for every token of the row"),
		text(col.Metadata, true, pq.Plain, "JSON object", "free"),
		list(col.Sources, pq.Int32, true, pq.Dictionary, perToken+", message index from 0", "message of the rollout that the token's text is from; -1 = written by the chat template"),
		list(col.Flags, pq.Int8, true, pq.Dictionary, perToken+", bit set", "1 sampled, 2 content, 4 reasoning, 8 tool call, 16 special, 32 stop, 64 repaired"),
	}
}

// Indices into columns().
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

// fileColumns returns the columns of a file with or without a trace.
func fileColumns(trace bool) []column {
	if trace {
		return columns()
	}
	return columns()[:iSources]
}
