// Package nemogym reads the rollouts of NeMo-Gym: one JSON object each, with the task, the
// items of all model calls and of the environment, and a reward.
//
//	{"responses_create_params": {"input": [{"role": "user", "content": "q"}], "tools": […]},
//	 "response": {"output": [
//	   {"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{}",
//	    "prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-0.1]},
//	   {"type": "function_call_output", "call_id": "c", "output": "a.go"}]},
//	 "reward": 1, "_ng_task_index": 0, "_ng_rollout_index": 3}
//
// The model's items in the output are sampled; the whole input is prefilled. A turn is a
// run of model items ([format.Items]). Environments with several models (nemo_user_sim)
// write an episode: "invocations", the request and response of one model each, in order.
// The policy is the assistant; users, judges and simulated tools are other agents.
package nemogym
