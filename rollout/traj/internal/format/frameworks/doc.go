// Package frameworks reads conversations as agent frameworks keep them, each in the types
// of its own messages: LangChain, pydantic-ai, the Vercel AI SDK, AutoGen, Google's ADK, the
// contents of Gemini and Bedrock Converse; and calls of models in the spans of traces.
//
//	[{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "…"}]}, {"kind": "response", "parts": […]}]
//	[{"type": "human", "data": {"content": "…"}}, {"type": "ai", "data": {"content": "…", "tool_calls": […]}}]
//	{"contents": [{"role": "user", "parts": [{"text": "…"}]}, {"role": "model", "parts": [{"functionCall": {…}}]}]}
//	{"system": [{"text": "…"}], "messages": [{"role": "user", "content": [{"toolResult": {…}}]}], "toolConfig": {…}}
//
// A list of messages is one rollout, by itself or as "messages" of a record. A part
// whose kind is not known is refused by its name.
package frameworks

import (
	"slices"

	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// All are the importers. The first that knows a record reads it.
func All() []format.Importer {
	return slices.Concat(adk(), autoGen(), pydantic(), langChain(), contents(), converse(), vercelUI(), vercel(), spans())
}
