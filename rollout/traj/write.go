package traj

import (
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/write"
)

// AppendChat appends r as one line of OpenAI chat JSONL, without the newline: messages,
// tools, template variables, ids and outcome. The notes name what this format cannot hold:
// token ids, contexts, exit messages and sampled marks.
func AppendChat(dst []byte, r *rollout.Rollout) ([]byte, []rollout.Note, error) {
	return write.Chat(dst, r)
}

// AppendATIF appends r as one ATIF trajectory on one line, without the newline. An
// assistant message and the tool results that follow it are one step; token ids and log
// probabilities go into its metrics. The notes name what ATIF cannot hold.
func AppendATIF(dst []byte, r *rollout.Rollout) ([]byte, []rollout.Note, error) {
	return write.ATIF(dst, r)
}

// IsImage reports whether a part is an image under any of its type names. Images are kept
// in Parts and do not count as text.
func IsImage(p rollout.Part) bool { return format.IsImage(p) }
