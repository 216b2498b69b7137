// Package atif reads ATIF, the agent trajectory interchange format of harbor, versions 1.0
// to 1.8: an agent, a list of steps, token ids and log probabilities in the metrics of a
// step, sub-agents by reference or (from 1.7) embedded.
//
//	{"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "n"}, "steps": [
//	  {"step_id": 1, "source": "user", "message": "fix it"},
//	  {"step_id": 2, "source": "agent", "message": "I look",
//	   "tool_calls": [{"tool_call_id": "c", "function_name": "ls", "arguments": {}}],
//	   "observation": {"results": [{"source_call_id": "c", "content": "a.go"}]},
//	   "metrics": {"prompt_token_ids": [1], "completion_token_ids": [2], "logprobs": [-0.1]}}]}
//
// Steps of source agent are sampled, except copied context and steps without a model call.
// Each embedded sub-agent is a rollout of its own. The outcome is not in the file: harbor
// keeps a trial as a folder, with the verifier's results beside agent/trajectory.json.
package atif
