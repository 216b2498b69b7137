package prm

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/turnpack/turnpack/rollout"
)

// Message is one chat message of a judge prompt.
type Message struct {
	Role    rollout.Role `json:"role"`
	Content string       `json:"content"`
}

// VoteID names one vote: the Vote-th (0-based) of agent step Step of a rollout.
type VoteID struct {
	Rollout string
	Step    int
	Vote    int
}

// Request asks for votes on one prompt. Messages is shared by all votes of a
// step and must not be changed.
type Request struct {
	Messages []Message
	// Seed makes the sampling repeatable where the judge supports it; [Seed]
	// derives it from ID.
	Seed int64
	ID   VoteID
}

// Reply is one answer of a judge.
type Reply struct {
	Text         string
	FinishReason string // stop, length, …; "" unknown
	// PromptTokens and CompletionTokens are what the judge counted, 0 unknown. In a
	// batch the prompt is counted on the first reply only.
	PromptTokens, CompletionTokens int
	// Latency is the duration of the successful call; 0 lets the scorer measure.
	Latency time.Duration
}

// Judge answers a prompt with text. Implementations are safe for concurrent use
// and return when ctx ends. An error means that there is no vote, for a reason
// outside the policy; it is never read as a score.
type Judge interface {
	Judge(ctx context.Context, req Request) (Reply, error)
}

// BatchJudge is a Judge that can draw several votes from one prompt in one
// call. JudgeN returns between 1 and n replies, or an error; what is missing is
// asked for one by one, each vote with its own seed. Batches says whether
// JudgeN is worth calling now: a judge may learn that its server draws one vote
// at a time.
type BatchJudge interface {
	Judge
	JudgeN(ctx context.Context, req Request, n int) ([]Reply, error)
	Batches() bool
}

// JudgeFunc makes a function a Judge.
type JudgeFunc func(ctx context.Context, req Request) (Reply, error)

// Judge calls f.
func (f JudgeFunc) Judge(ctx context.Context, req Request) (Reply, error) { return f(ctx, req) }

// Seed derives a sampling seed in [0, 2³¹) from a base and the vote's name, so
// that a vote can be asked again alone and votes of a step differ.
func Seed(base int64, id VoteID) int64 {
	h := sha256.New()
	var b [8]byte
	put := func(v uint64) {
		binary.LittleEndian.PutUint64(b[:], v)
		h.Write(b[:])
	}
	put(uint64(base))
	put(uint64(len(id.Rollout)))
	h.Write([]byte(id.Rollout))
	put(uint64(id.Step))
	put(uint64(id.Vote))
	return int64(binary.LittleEndian.Uint32(h.Sum(nil)) >> 1)
}
