// Package frameworks reads conversations as agent frameworks and clients keep them, each
// in the types of its own messages: LangChain, pydantic-ai, the Vercel AI SDK, the
// contents of Gemini, Bedrock Converse, and the sessions of Gemini CLI, goose, opencode
// and cline; and calls of models in the spans of traces.
//
//	[{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "…"}]}, {"kind": "response", "parts": […]}]
//	[{"type": "human", "data": {"content": "…"}}, {"type": "ai", "data": {"content": "…", "tool_calls": […]}}]
//	{"contents": [{"role": "user", "parts": [{"text": "…"}]}, {"role": "model", "parts": [{"functionCall": {…}}]}]}
//	{"system": [{"text": "…"}], "messages": [{"role": "user", "content": [{"toolResult": {…}}]}], "toolConfig": {…}}
//
// A list of messages is one rollout, by itself or as "messages" of a record. A part
// whose kind is not known is refused by its name.
package frameworks
