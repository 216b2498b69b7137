// Package tau reads the results of tau-bench and tau2-bench, whose user is simulated.
//
//	{"task_id": 3, "trial": 0, "reward": 1.0, "traj": [{"role": "system", "content": "…"}, …]}
//	{"info": {"environment_info": {…}, "agent_info": {…}},
//	 "simulations": [{"id": "s", "task_id": "3", "trial": 0, "messages": […], "reward_info": {"reward": 1.0}}]}
//
// Assistant messages are sampled; task and trial make the groups. tau2-bench keeps the
// runs of all tasks and trials in one file, or a file each. Its user has tools of its own,
// whose calls and results are not shown to the assistant, and its system prompt is not
// among the messages: the policy of the domain, or what Options.System gives.
package tau
