// Package claudecode reads the sessions of Claude Code: what it keeps in
// ~/.claude/projects, and what claude -p --output-format stream-json (or json --verbose)
// prints.
//
//	{"type": "user", "uuid": "u1", "parentUuid": null, "sessionId": "s", "message": {"role": "user", "content": "q"}}
//	{"type": "assistant", "uuid": "a1", "parentUuid": "u1", "sessionId": "s", "message": {"id": "msg_1", "content": [{"type": "text", "text": "a"}]}}
//	{"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null, "sessionId": "s"}
//
// One model response is one reply, however many records its blocks are in: they share
// message.id. A record goes on from its parentUuid, so that a reply saw the chain of
// records above it: after a compaction the summary and what was kept, after a rewind not
// what was taken back. Results of parallel calls may hang on any record of the reply that
// called. Sub-agents (isSidechain, agentId, or parent_tool_use_id) are rollouts of their
// own. The system prompt and the definitions of tools are in no session.
package claudecode
