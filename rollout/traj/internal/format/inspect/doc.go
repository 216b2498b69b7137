// Package inspect reads the logs of inspect_ai: one JSON object for an evaluation, or the
// same as a zip archive (.eval) with one member per sample.
//
//	{"version": 2, "status": "success", "eval": {"eval_id": "e", "task": "t", "model": "m"},
//	 "samples": [{"id": 1, "epoch": 1, "input": "q", "target": "a",
//	   "messages": [{"id": "m1", "role": "user", "content": "q"}, {"id": "m2", "role": "assistant", "content": "a"}],
//	   "scores": {"match": {"value": "C"}}, "events": [{"event": "model", "input": […], "output": {…}}]}]}
//
// Epochs of a sample form a group; the first score is the reward. Model events, joined to
// the messages by message id, record exactly what a call saw, its tools and settings.
// References to texts that the log stores separately (attachment://, tc://) are resolved.
package inspect
