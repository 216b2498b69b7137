// Package codex reads the sessions of the Codex CLI: the rollout files in
// ~/.codex/sessions, and the output of codex exec --json.
//
//	{"timestamp": "…", "type": "session_meta", "payload": {"id": "s", "base_instructions": {"text": "…"}}}
//	{"timestamp": "…", "type": "response_item", "payload": {"type": "message", "role": "user", "content": […]}}
//	{"timestamp": "…", "type": "response_item", "payload": {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"}}
//	{"timestamp": "…", "type": "event_msg", "payload": {"type": "token_count", …}}
//	{"timestamp": "…", "type": "compacted", "payload": {"message": "…", "replacement_history": […]}}
//
// Model items up to a token count, a result or a message form one reply. A reply saw the
// history that Codex holds: the items in order, until a compaction replaces it or the user
// takes turns back. Files from before September 2025 hold bare items.
package codex
