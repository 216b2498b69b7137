// Package claudecode reads the sessions of Claude Code: the files in ~/.claude/projects,
// and the output of claude -p --output-format stream-json (or json --verbose).
//
//	{"type": "user", "uuid": "u1", "parentUuid": null, "sessionId": "s", "message": {"role": "user", "content": "q"}}
//	{"type": "assistant", "uuid": "a1", "parentUuid": "u1", "sessionId": "s", "message": {"id": "msg_1", "content": [{"type": "text", "text": "a"}]}}
//	{"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null, "sessionId": "s"}
//
// One model response is one reply, however many records hold its blocks: they share
// message.id. A record continues from its parentUuid, so a reply saw the chain of its
// ancestors: after a compaction the summary and the kept messages, after a rewind not the
// messages taken back. The parent of a parallel call's result may be any record of the
// reply with the call. Sub-agents (isSidechain, agentId, or parent_tool_use_id) are
// rollouts of their own. Sessions hold neither the system prompt nor the tool definitions.
package claudecode
