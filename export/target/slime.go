package target

import "github.com/turnpack/turnpack/rollout"

// slimeSpec: slime 624b824a. Its reward hook reads one advantage per sample and
// its loss is the mean over rollouts. A rollout that was cut shows it on its
// last row only: earlier rows are complete steps.
func slimeSpec() spec {
	return spec{name: "slime", advantage: true, scalar: true, keepAborted: true, mean: meanNative,
		row: func(_ *Target, s *rollout.Sample, _ []int32) error {
			if s.Status == rollout.StatusTruncated && !s.IsLast {
				s.Status = rollout.StatusCompleted
			}
			return nil
		}}
}
