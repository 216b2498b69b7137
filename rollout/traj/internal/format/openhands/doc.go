// Package openhands reads the events of OpenHands: of V0 (action and observation) and of
// the agent SDK (told by kind).
//
//	[{"id": 1, "source": "user", "action": "message", "args": {"content": "fix it"}},
//	 {"id": 2, "source": "agent", "action": "run", "args": {"command": "ls"}, "tool_call_metadata": {"model_response": {…}}},
//	 {"id": 3, "observation": "run", "content": "a.go", "tool_call_metadata": {"tool_call_id": "c"}}]
//
//	{"kind": "ActionEvent", "id": "e2", "source": "agent", "llm_response_id": "r1", "tool_call": {…}}
//
// The interface exports V0 as one list; the evaluation harness puts events of either kind
// under "history" of a line per instance; the SDK writes one a line or one a file. Actions
// of one model response are one turn; its text and calls come from the response where it
// is recorded. Events are what happened, so what a model saw is rebuilt (view.go): calls
// without a result are not shown, a condensation forgets events and puts a summary in
// their place. Where the record or the versions of OpenHands do not tell, it is unknown.
package openhands
