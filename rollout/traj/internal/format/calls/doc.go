// Package calls reads recorded exchanges of one model call: the request is context, only
// the response is sampled.
//
//	{"request": {"messages": […], "tools": […]}, "response": {"choices": […]}}      chat completions
//	{"request": {"input": …, "instructions": "…"}, "response": {"output": […]}}     Responses API
//	{"request": {"system": "…", "messages": […]}, "response": {"content": […]}}     Messages API
//	{"messages": […], "kwargs": {…}, "response": {"choices": […]}}                  completion log
//
// A call is a rollout of one turn whose context is exactly its request; the choices of one
// call form a group. traj.Options.JoinCalls joins the calls of a run. A response that is an
// error holds no reply: its record is an error.
package calls
