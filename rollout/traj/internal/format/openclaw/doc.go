// Package openclaw reads the runs of OpenClaw-RL's swe-rl: a folder for each, with
// traj.json, meta.json and patch.diff, and one results.jsonl per evaluation beside the
// folders.
//
//	{"trajectory_format": "slime-mini-swe-remote-1", "messages": […], "step_debug": […],
//	 "info": {"instance_id": "i", "exit_status": "Submitted", "reward": 1.0, "error": null,
//	          "patch_source": "submission", "eval_result": {"resolved": true}}}
//
// Assistant messages are sampled. The stored reward is 0 unless an evaluation answered, so
// the outcome follows from eval_result, error and patch_source together: an error belongs
// to the infrastructure and is not an outcome of the policy. With dynamic history, what the
// model was shown of the history is not stored.
package openclaw
