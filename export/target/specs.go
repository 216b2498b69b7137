package target

import (
	"math"
	"slices"

	"github.com/turnpack/turnpack/export/megatron"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/internal/rowsteps"
	"github.com/turnpack/turnpack/rollout"
)

// means says how a trainer can take the mean over rollouts.
type means uint8

const (
	meanNever     means = iota // it cannot
	meanNative                 // it always does
	meanWeights                // through the weights column
	meanAdvantage              // by scaling the advantages
)

// A spec describes what one trainer reads.
type spec struct {
	name string
	// logprobs, advantage, advantages and versions are columns that the trainer's loader reads
	// in every row. Missing advantages are filled with the scalar.
	logprobs, advantage, advantages, versions bool
	// scalar is true if only the row's scalar advantage is read.
	scalar bool
	// weights is true if per-token weights are read.
	weights bool
	// keepAborted is false if aborted rollouts must not reach the trainer.
	keepAborted bool
	// oneRow is true if a rollout must be one row, equal if all groups must have the same
	// number of rollouts, at least 2.
	oneRow, equal bool
	// temperatures is true if rows may be sampled at different temperatures. Other trainers
	// divide all logits by one temperature of their own.
	temperatures bool
	mean         means
	// row adapts and checks one row. group checks the rows of a GRPO group, without reading
	// their per-token columns. nil does nothing.
	row   func(t *Target, s *rollout.Sample, lens []int32) error
	group func(t *Target, rows []rollout.Sample) error
}

// specs returns the table of targets. Trainers that do not require log probabilities compute
// those of the policy before the step if they are missing.
func specs() []spec {
	return []spec{
		// slime 624b824a. Its reward hook reads one advantage per sample, and its loss is the
		// mean over rollouts.
		{name: "slime", advantage: true, scalar: true, keepAborted: true, mean: meanNative, row: cutOnLastRow},
		// The slime of OpenClaw-RL 0d034dd5e. It computes advantages itself: with
		// --advantage-estimator step_wise from the step scores and spans in a sample's
		// metadata, so that a row may hold many steps; otherwise from the rewards of rollouts,
		// which it identifies by the index of their samples. Its loss is the mean over samples,
		// hence over rows, and it reads neither weights nor advantages, which could carry the
		// weights.
		{name: "openclaw", advantage: true, keepAborted: true, mean: meanNever, row: stepAdvantages},
		// Megatron-Bridge 067f987d, packed Parquet for supervised training. The mask becomes
		// integers, so weights are lost; it reads no other column. MaxTokens is the pack size
		// and counts L - 1.
		{name: "megatron", temperatures: true, keepAborted: true, mean: meanNever, row: packable},
		// verl 1dda039b. The replaying agent loop passes one score per row, which the estimator
		// "turnpack" takes as the advantage. Aborted rollouts would enter group statistics.
		// With bypass_mode it needs log probabilities.
		{name: "verl", advantage: true, scalar: true, mean: meanAdvantage, group: oneScorePerRollout},
		// SkyRL a9564572. It would compute advantages from the rewards; the trainer of
		// turnpack_trainers gives each token the file's advantage.
		{name: "skyrl", advantages: true, keepAborted: true, mean: meanAdvantage, row: stopReason, group: ownIndices},
		// prime-rl 559b4477. It divides the logits by the temperature and reads advantages and
		// weights per token. It would silently cut a row over the sequence length (set
		// MaxTokens to it).
		{name: "prime-rl", temperatures: true, logprobs: true, advantages: true, weights: true, keepAborted: true, mean: meanWeights},
		// TRL 1.16.0, GRPOTrainer with rollout_func: one row per rollout, and groups of exactly
		// num_generations, at least 2.
		{name: "trl", advantages: true, keepAborted: true, oneRow: true, equal: true, mean: meanAdvantage},
		// TRL 1.16.0, AsyncGRPOTrainer with a replaying worker: any number of rows per rollout,
		// one advantage per row.
		{name: "trl-async", logprobs: true, advantage: true, scalar: true, keepAborted: true, mean: meanAdvantage},
		// AReaL 4aef98d8. The reward is placed on the label of the last token, so a row must
		// end with a trained token (rollout.FinishRows ensures it), and versions are padded as
		// numbers. Aborted rollouts have no place in a replayed batch. Its actor computes
		// missing log probabilities with recompute_logprob.
		{name: "areal", advantage: true, versions: true, scalar: true, mean: meanAdvantage},
		// NeMo-RL 7ea279ab. Messages are runs of equal mask and carry their log probabilities,
		// which only its importance sampling correction reads. The loader gives each token its
		// own advantage.
		{name: "nemo-rl", advantages: true, keepAborted: true, mean: meanAdvantage},
		{name: "none", temperatures: true, weights: true, keepAborted: true, mean: meanWeights},
	}
}

// cutOnLastRow marks a truncated rollout on its last row only: its earlier rows are complete
// steps.
func cutOnLastRow(_ *Target, s *rollout.Sample, _ []int32) error {
	if s.Status == rollout.StatusTruncated && !s.IsLast {
		s.Status = rollout.StatusCompleted
	}
	return nil
}

// stopReason sets the stop reason that a generator would report, by which SkyRL detects
// truncation.
func stopReason(_ *Target, s *rollout.Sample, _ []int32) error {
	if s.Status == rollout.StatusTruncated && s.IsLast {
		s.FinishReason = "length"
	} else if s.FinishReason == "" {
		s.FinishReason = "stop"
	}
	return nil
}

// ownIndices refuses rollouts of a group with the same index, by which SkyRL identifies them.
func ownIndices(t *Target, rows []rollout.Sample) error {
	seen := map[int]string{}
	for i := range rows {
		s := &rows[i]
		if other, there := seen[s.RolloutIndex]; there && other != s.Rollout {
			return t.refuse(s, col.RolloutIndex, "number the rollouts of a group from 0", "it finds rollouts by group and index; %q has the same", other)
		}
		seen[s.RolloutIndex] = s.Rollout
	}
	return nil
}

// oneScorePerRollout refuses a rollout whose rows have different advantages: verl's worker gives
// every row of a session the score of the last one (AgentLoopWorkerTQ).
func oneScorePerRollout(t *Target, rows []rollout.Sample) error {
	for i := 1; i < len(rows); i++ {
		s, before := &rows[i], &rows[i-1]
		if s.Rollout == before.Rollout && s.Advantage != nil && before.Advantage != nil && float32(*s.Advantage) != float32(*before.Advantage) {
			return t.refuse(s, col.Advantage, "use an estimator by rollout, or a target that reads advantages per row, such as slime or prime-rl",
				"it gives all rows of a rollout the score of the last; this row has %g and the one before it %g", *s.Advantage, *before.Advantage)
		}
	}
	return nil
}

// packable refuses rows that no pack can hold. It accepts every run-length encoded row: pack
// files are not written from such rows.
func packable(t *Target, s *rollout.Sample, lens []int32) error {
	if lens != nil {
		return nil
	}
	o := megatron.Options{PackSize: math.MaxInt, PadMultiple: t.opts.PadMultiple, EOS: t.opts.EOS}
	return o.Check(s)
}

// stepAdvantages refuses rows whose advantages differ from those that OpenClaw-RL would
// compute.
func stepAdvantages(t *Target, s *rollout.Sample, lens []int32) error {
	steps, err := rowsteps.Read(s.Metadata)
	switch {
	case err != nil:
		return t.refuse(s, col.Metadata, "write rows of turnpack", "its steps cannot be read: %v", err)
	case len(steps) > 0:
		err = t.checkSteps(s, lens, steps)
	default:
		err = t.oneAdvantage(s)
	}
	if err != nil {
		return err
	}
	return cutOnLastRow(t, s, lens)
}

// checkSteps refuses a row with a trained token whose advantage is not that of its step, which the
// trainer would give it.
func (t *Target) checkSteps(s *rollout.Sample, lens []int32, steps []rowsteps.Step) error {
	own, begin := make([]*rowsteps.Step, s.Len()), begins(s.Len(), lens)
	for i := range steps {
		at, _ := slices.BinarySearch(begin, steps[i].From)
		for ; at < s.Len() && begin[at+1] <= steps[i].To; at++ {
			if s.Weight[at] > 0 && own[at] != nil {
				return t.refuse(s, col.Metadata, "encode one row per step", "token %d is in the spans of two steps, %d and %d", begin[at], own[at].Step, steps[i].Step)
			}
			own[at] = &steps[i]
		}
	}
	for i, w := range s.Weight {
		switch {
		case w <= 0:
		case own[i] == nil:
			return t.refuse(s, col.Metadata, "compare steps with the estimator openclaw_step_wise", "token %d is trained and in no step", begin[i])
		case s.Credit[i] != float32(own[i].Advantage):
			return t.refuse(s, col.Advantages, "leave advantages of single tokens out", "token %d has the advantage %g and its step %g", begin[i], s.Credit[i], own[i].Advantage)
		}
	}
	return nil
}

// begins returns the position of the first token of each entry, followed by the row's number of
// tokens.
func begins(entries int, lens []int32) []int {
	out := make([]int, entries+1)
	for i := range entries {
		n := 1
		if lens != nil {
			n = int(lens[i])
		}
		out[i+1] = out[i] + n
	}
	return out
}
