// Package trainers reads what trainers write about the rollouts that they train on.
//
//	{"tokens": [[…], …], "masks": [[-100, 5], …], "scores": [1, 0], "inference_logprobs": […]}              atropos: a group
//	{"token_ids": [[…]], "token_loss_mask": [[…]], "generation_logprobs": [[…]], "rewards": [1], "idx": 0}  nemo-rl: train_data_step*.jsonl
//	{"schema_version": 1, "step": 3, "token_ids": […], "loss_mask": […], "inference_logprobs": […]}         prime-rl: token_exports
//	{"tokens": […], "response_length": 2, "loss_mask": […], "rollout_log_probs": […], "reward": 1}          slime: a sample of a .pt file
//	{"id": "task:0", "trajectories": [{"name": "a", "steps": [{"prompt_ids": […], "response_ids": […]}]}]}  rllm: an episode
//	{"input": "…", "output": "…", "gts": …, "score": 1, "step": 3}                                          verl: rollout_data_dir
//
//	{"skyrl_sequence": […], "loss_mask": […], "rollout_logprobs": […]}                                     skyrl: a sequence of a pickled batch
//
// The first four and the last hold a sequence of tokens and a mask of the sampled ones:
// each run of sampled tokens is a turn, whose prompt is everything before it. verl, SkyRL,
// AReaL and TRL write the text decoded from ids, without the ids: it is shown and never
// trained.
package trainers
