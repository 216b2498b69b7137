// Package tau reads the results of tau-bench and tau2-bench, whose user is simulated.
//
//	{"task_id": 3, "trial": 0, "reward": 1.0, "traj": [{"role": "system", "content": "…"}, …]}
//	{"info": {"environment_info": {…}, "agent_info": {…}},
//	 "simulations": [{"id": "s", "task_id": "3", "trial": 0, "messages": […], "reward_info": {"reward": 1.0}}]}
//
// Assistant messages are sampled; rollouts of one task form a group. tau2-bench writes the
// runs of all tasks and trials into one file, or a file each. Its user has tools of its
// own, whose calls and results are not shown to the assistant. Its system prompt is not
// among the messages: it is the domain's policy, or what Options.System gives.
package tau
