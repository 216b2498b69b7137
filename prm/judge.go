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

// VoteID identifies one vote: vote number Vote (0-based) on agent step Step of a rollout.
type VoteID struct {
	Rollout string
	Step    int
	Vote    int
}

// Request is a request for votes on one prompt. Messages is shared by all votes of a step and must not
// be changed.
type Request struct {
	Messages []Message
	// Seed makes the sampling reproducible if the judge supports it; the function [Seed] derives it
	// from ID.
	Seed int64
	ID   VoteID
}

// Reply is one answer of a judge.
type Reply struct {
	Text         string
	FinishReason string // stop, length, …; "" if unknown
	// PromptTokens and CompletionTokens are the judge's counts, 0 if unknown. In a batch, only the
	// first reply counts the prompt.
	PromptTokens, CompletionTokens int
	// Latency is the duration of the successful call; 0 = measured by the scorer.
	Latency time.Duration
}

// Judge answers a prompt with text. Implementations must be safe for concurrent use and return when
// ctx ends. An error means that there is no vote, for a reason unrelated to the policy; it never
// counts as a score.
type Judge interface {
	Judge(ctx context.Context, req Request) (Reply, error)
}

// BatchJudge is a Judge that can sample several votes from one prompt in one call. JudgeN returns
// between 1 and n replies, or an error; missing votes are requested one by one, each with its own
// seed. Batches reports whether to call JudgeN: a judge may find that its server samples one vote at a
// time.
type BatchJudge interface {
	Judge
	JudgeN(ctx context.Context, req Request, n int) ([]Reply, error)
	Batches() bool
}

// JudgeFunc is a function that implements Judge.
type JudgeFunc func(ctx context.Context, req Request) (Reply, error)

// Judge calls f.
func (f JudgeFunc) Judge(ctx context.Context, req Request) (Reply, error) { return f(ctx, req) }

// Seed returns a sampling seed in [0, 2³¹) derived from a base and the vote's id, so that a single
// vote can be repeated and the votes of a step differ.
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
