// Package outcomes reads outcomes that were recorded separately from the trajectories (rows
// of JSONL and CSV, SWE-bench reports and summaries) and applies them to rollouts.
//
//	{"instance_id": "django__django-1", "resolved": true}
//	{"rollout_id": "r1", "reward": 0.5, "reason": "half of the tests"}
//
// A rollout gets the row of its id, else of its run folder, else of its instance.
package outcomes
