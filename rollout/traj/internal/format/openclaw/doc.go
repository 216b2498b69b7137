// Package openclaw reads the runs of OpenClaw-RL's swe-rl: a folder for each, with
// traj.json, meta.json and patch.diff, and one results.jsonl per evaluation beside the
// folders.
//
//	{"trajectory_format": "slime-mini-swe-remote-1", "messages": […], "step_debug": […],
//	 "info": {"instance_id": "i", "exit_status": "Submitted", "reward": 1.0, "error": null,
//	          "patch_source": "submission", "eval_result": {"resolved": true}}}
//
// Assistant messages are sampled. The stored reward is 0 unless an evaluation answered, so
// the outcome comes of eval_result, error and patch_source together: an error is of the
// infrastructure, and no outcome of the policy. The cut of the history that a run with
// dynamic history showed the model is not stored.
package openclaw
