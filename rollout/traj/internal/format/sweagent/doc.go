// Package sweagent reads what SWE-agent and mini-swe-agent write, and the published sets of
// SWE-agent runs.
//
//	{"history": [{"role": "user", "content": "t", "agent": "main"}, …],            .traj
//	 "trajectory": [{"response": "a1", "query": […]}], "info": {"exit_status": "submitted"}}
//	{"trajectory_format": "mini-swe-agent-1.1", "info": {…}, "messages": […]}      .traj.json
//	{"instance_id": "i", "target": true, "trajectory": [{"role": "ai", "text": "a1", "mask": true}, …]}
//
// Of a .traj file "history" is the chat and "trajectory" the steps, joined by what was
// said. From 1.0 on a step also holds the context of its call, which history processors
// may have shortened. Messages of the main agent are sampled, those of demonstrations and
// of other agents are not.
//
// mini-swe-agent has three generations: v0 is a bare list of messages, v1 an object whose
// messages are text, v2 has native tool calls or Responses objects and closes with a
// message of role exit.
//
// Rows as exported by nebius have text, system_prompt and mask; mask is true on the turns
// to train, the opposite of what the word says elsewhere.
package sweagent
