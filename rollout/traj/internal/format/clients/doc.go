// Package clients reads the sessions of coding agents: OpenClaw and pi, Qwen Code, Copilot
// CLI and Copilot Chat of VS Code, Kimi CLI, Trae Agent, Hermes Agent, Gemini CLI, goose,
// opencode and cline.
//
//	{"type":"message","id":"2","parentId":"1","message":{"role":"assistant","content":[{"type":"toolCall", …}]}}
//	{"uuid":"2","parentUuid":"1","type":"assistant","message":{"role":"model","parts":[{"functionCall": {…}}]}}
//	{"type":"assistant.message","data":{"content":"…","toolRequests":[{"toolCallId":"c","name":"bash", …}]}}
//	{"role":"_system_prompt","content":"…"}
//
// If records name their parents, a reply saw its ancestor records, so messages taken back
// are context of their own branch only. After a session was compacted or cut, or the model
// was shown text that the session does not hold, later contexts are unknown.
package clients

import (
	"slices"

	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// All returns the importers except QwenCode, whose records other importers could match. The
// first that matches a record reads it.
func All() []format.Importer {
	return slices.Concat([]format.Importer{openClaw(), copilot(), kimi(), copilotChat(), copilotLog(), trae(), hermes(), openCode()}, cline(), geminiCLI(), goose())
}
