// Package outcomes reads what was recorded about success apart from the trajectories
// (rows of JSONL and CSV, SWE-bench reports and summaries) and gives rollouts theirs.
//
//	{"instance_id": "django__django-1", "resolved": true}
//	{"rollout_id": "r1", "reward": 0.5, "reason": "half of the tests"}
//
// A rollout takes the row of its id, else of its run folder, else of its instance.
package outcomes
