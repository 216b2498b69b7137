// Package adp reads trajectories of the Agent Data Protocol: a list of observations and
// actions, distinguished by class_.
//
//	{"id": "t1", "details": {}, "content": [
//	  {"class_": "text_observation", "source": "user", "content": "fix it"},
//	  {"class_": "api_action", "function": "ls", "kwargs": {"path": "."}, "description": "I look"},
//	  {"class_": "text_observation", "source": "environment", "content": "a.go"},
//	  {"class_": "message_action", "content": "done"}]}
//
// Actions are replies of the policy; observations of source agent are another agent's.
// Schema 1.3 and later link calls and results by tool_call_id and store reasoning
// separately. The data has no system prompts, parallel calls or outcomes.
package adp
