package traj

import "github.com/turnpack/turnpack/rollout/traj/internal/outcomes"

// Rewards are outcomes recorded separately from the trajectories. Reading does not change
// them; readers may share them.
type Rewards struct{ table outcomes.Table }

// LoadRewards reads outcomes from files and folders:
//
//   - JSONL, or a JSON list, of rows with instance_id or id (also rollout_id,
//     traj_id, run_dir) and resolved, reward, verdict or reason
//   - CSV with a header of those names
//   - a SWE-bench report: bare, in which case the instance is the name of the
//     file (<instance>.report.json) or of its folder (<instance>/report.json),
//     or wrapped as {instance: report}
//   - a SWE-bench summary with resolved_ids, unresolved_ids, empty_patch_ids and
//     error_ids, or with a list under resolved
//
// Two rows with the same rollout id are an error.
func LoadRewards(paths []string) (*Rewards, error) {
	table, err := outcomes.Load(paths)
	if err != nil {
		return nil, err
	}
	return &Rewards{*table}, nil
}
