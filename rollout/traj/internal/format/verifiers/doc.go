// Package verifiers reads the rollouts written by verifiers and prime-rl.
//
//	{"example_id": 0, "prompt": […], "completion": […], "reward": 1, "metrics": {…}, "tool_defs": […]}     results.jsonl
//	{"id": "e", "task": {…}, "group": {"id": "g"}, "traces": [{"id": "t", "nodes": […], "calls": […]}]}    traces.jsonl
//
// In results the completion holds the model's replies and the environment's messages; if
// the column trajectory was saved, each step of it is one call with its ids. A trace is a
// graph: each message is a node with the tokens that it adds, and a sampled node saw the
// path above it. Calls of [tool_calls] are JSON strings in results.
package verifiers
