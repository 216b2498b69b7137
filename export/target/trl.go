package target

import (
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
)

// trlSpec: TRL 1.16.0, GRPOTrainer with rollout_func: one row per rollout and
// groups of exactly num_generations, at least 2.
func trlSpec() spec {
	return spec{name: "trl", logprobs: true, advantages: true, keepAborted: true, mean: meanAdvantage,
		row: func(t *Target, s *rollout.Sample) error {
			if s.SampleIndex > 0 || !s.IsLast {
				return t.refuse(s, export.ColSampleIndex, "encode whole rollouts into one row, or use target trl-async", "it takes one row per rollout and this one has more")
			}
			return nil
		},
		group: func(t *Target, rows []rollout.Sample) error {
			if t.size == 0 {
				t.size = len(rows)
			}
			if len(rows) < 2 {
				return t.refuse(&rows[0], export.ColGroupID, "sample each prompt at least twice, or use target trl-async",
					"group %q has one rollout to train, the trainer takes groups of 2 or more", rows[0].Group)
			}
			if len(rows) != t.size {
				return t.refuse(&rows[0], export.ColGroupID, "keep groups of one size (num_generations), or use target trl-async",
					"group %q has %d rollouts to train, the others %d", rows[0].Group, len(rows), t.size)
			}
			return nil
		}}
}
