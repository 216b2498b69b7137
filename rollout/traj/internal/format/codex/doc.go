// Package codex reads the sessions of the Codex CLI: the rollout files that it keeps in
// ~/.codex/sessions, and what codex exec --json prints.
//
//	{"timestamp": "…", "type": "session_meta", "payload": {"id": "s", "base_instructions": {"text": "…"}}}
//	{"timestamp": "…", "type": "response_item", "payload": {"type": "message", "role": "user", "content": […]}}
//	{"timestamp": "…", "type": "response_item", "payload": {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"}}
//	{"timestamp": "…", "type": "event_msg", "payload": {"type": "token_count", …}}
//	{"timestamp": "…", "type": "compacted", "payload": {"message": "…", "replacement_history": […]}}
//
// Items of the model up to a token count, a result or a message are one reply. What a
// reply saw is the history that Codex holds: items in order, until a compaction replaces
// it or the user takes turns back. Files of before September 2025 hold the items bare.
package codex
