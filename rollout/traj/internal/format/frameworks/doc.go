// Package frameworks reads conversations in the message types of agent frameworks:
// LangChain, pydantic-ai, the Vercel AI SDK, AutoGen, Google's ADK, the contents of Gemini
// and Bedrock Converse; and model calls in the spans of traces.
//
//	[{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "…"}]}, {"kind": "response", "parts": […]}]
//	[{"type": "human", "data": {"content": "…"}}, {"type": "ai", "data": {"content": "…", "tool_calls": […]}}]
//	{"contents": [{"role": "user", "parts": [{"text": "…"}]}, {"role": "model", "parts": [{"functionCall": {…}}]}]}
//	{"system": [{"text": "…"}], "messages": [{"role": "user", "content": [{"toolResult": {…}}]}], "toolConfig": {…}}
//
// A list of messages is one rollout, by itself or as "messages" of a record. A part of
// unknown kind is refused with its name.
package frameworks

import (
	"slices"

	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// All returns the importers. The first that matches a record reads it.
func All() []format.Importer {
	return slices.Concat(adk(), autoGen(), pydantic(), langChain(), contents(), converse(), vercelUI(), vercel(), spans())
}
