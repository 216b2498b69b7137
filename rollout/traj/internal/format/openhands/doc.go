// Package openhands reads the events of OpenHands: of V0 (action and observation) and of
// the agent SDK (with a kind).
//
//	[{"id": 1, "source": "user", "action": "message", "args": {"content": "fix it"}},
//	 {"id": 2, "source": "agent", "action": "run", "args": {"command": "ls"}, "tool_call_metadata": {"model_response": {…}}},
//	 {"id": 3, "observation": "run", "content": "a.go", "tool_call_metadata": {"tool_call_id": "c"}}]
//
//	{"kind": "ActionEvent", "id": "e2", "source": "agent", "llm_response_id": "r1", "tool_call": {…}}
//
// The interface exports V0 as one list; the evaluation harness puts events of either kind
// under "history" of a line per instance; the SDK writes one event per line or file.
// Actions of one model response are one turn; its text and calls come from the response if
// it is recorded. Events record what happened, so what a model saw is reconstructed
// (view.go): calls without a result are not shown, a condensation replaces forgotten events
// by a summary. If neither the record nor the versions of OpenHands determine it, it is
// unknown.
package openhands
