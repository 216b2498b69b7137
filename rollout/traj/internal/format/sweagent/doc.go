// Package sweagent reads the files of SWE-agent and mini-swe-agent, and the published sets
// of SWE-agent runs.
//
//	{"history": [{"role": "user", "content": "t", "agent": "main"}, …],            .traj
//	 "trajectory": [{"response": "a1", "query": […]}], "info": {"exit_status": "submitted"}}
//	{"trajectory_format": "mini-swe-agent-1.1", "info": {…}, "messages": […]}      .traj.json
//	{"instance_id": "i", "target": true, "trajectory": [{"role": "ai", "text": "a1", "mask": true}, …]}
//
// In a .traj file "history" is the chat and "trajectory" the steps; they are joined by the
// texts of the replies. From 1.0 on a step also holds the context of its call, which
// history processors may have shortened. Messages of the main agent are sampled; those of
// demonstrations and other agents are not.
//
// mini-swe-agent has three generations: v0 is a bare list of messages, v1 an object whose
// messages are text, v2 has native tool calls or Responses objects and ends with a message
// of role exit.
//
// Rows exported by nebius have text, system_prompt and mask; mask is true on the turns to
// train, the opposite of its usual meaning.
package sweagent
