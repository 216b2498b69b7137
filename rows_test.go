package turnpack_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// steps is a rollout of a number of turns, each after an observation of a number of words.
func steps(id string, turns, words int) *rollout.Rollout {
	yes := true
	r := &rollout.Rollout{ID: id, Group: "g", Status: rollout.StatusCompleted, Outcome: rollout.Outcome{Resolved: &yes}}
	for i := range turns {
		r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleUser, Content: strings.Repeat(fmt.Sprintf("line %d of output\n", i), words/4)},
			rollout.Message{Role: rollout.RoleAssistant, Content: fmt.Sprintf("do %d", i), Sampled: rollout.SampledByPolicy})
	}
	return r
}

// Rows of one rollout that wait in a file are the same as in memory, masked ones left out, and the
// file is removed.
func TestRowsOfOneRolloutThroughAFile(t *testing.T) {
	src := turnpack.Slice{steps("a", 6, 8), steps("b", 1, 8), steps("c", 9, 8)}
	p := turnpack.Pipeline{Model: model(t), Encode: tokenize.Options{Mode: tokenize.PerStep}, Mask: lossmask.Policy{MaxTokens: 200}}
	var memory, file rows
	_, err := p.Run(t.Context(), src, &memory)
	require.NoError(t, err)
	p.TempDir = t.TempDir()
	report, err := turnpack.WithHeldLimit(p, 100).Run(t.Context(), src, &file)
	require.NoError(t, err)
	require.Equal(t, memory.got, file.got)
	require.Positive(t, report.MaskedRows["overlong"])
	_, err = turnpack.WithHeldLimit(p, 100).Run(t.Context(), src, &rows{fail: 3})
	require.ErrorIs(t, err, errFull)
	left, err := os.ReadDir(p.TempDir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// A rollout that fails after some of its rows were made writes none.
func TestFailureAfterRows(t *testing.T) {
	bad := steps("bad", 5, 8)
	for i := range 5 {
		bad.Turns = append(bad.Turns, rollout.Turn{Message: 2*i + 1, Step: i})
	}
	bad.Turns[4].Output = []rollout.TokenID{1 << 30}
	for _, limit := range []int64{0, 50} {
		var dst rows
		p := turnpack.WithHeldLimit(turnpack.Pipeline{Model: model(t), Encode: tokenize.Options{Mode: tokenize.PerStep}, TempDir: t.TempDir()}, limit)
		report, err := p.Run(t.Context(), turnpack.Slice{bad, steps("good", 2, 8)}, &dst)
		require.NoError(t, err)
		require.Equal(t, map[string]int{"could not be encoded": 1}, report.WithoutRows)
		require.Len(t, dst.got, 2)
		require.Equal(t, "good#0", dst.got[0].ID)
	}
}

// heap is a sink that records the memory in use.
type heap struct{ rows, peak uint64 }

func (h *heap) Write(rollout.Sample) error {
	if h.rows++; h.rows%40 == 1 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		h.peak = max(h.peak, m.HeapAlloc)
	}
	return nil
}

// The rows of one rollout of 200 turns that ends at 100,000 tokens, ten million in all, take less
// than 128 MB in addition to the model.
func TestMemoryOfPerStepRows(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: makes rows of 10 million tokens; run without -short")
	}
	p := turnpack.Pipeline{Model: model(t), Encode: tokenize.Options{Mode: tokenize.PerStep}, Workers: 1, TempDir: t.TempDir()}
	r := steps("r", 200, 400)
	version := int32(1)
	p.PolicyVersion = &version
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var h heap
	report, err := p.Run(t.Context(), turnpack.Slice{r}, &h)
	require.NoError(t, err)
	require.Equal(t, 200, report.Rows)
	require.Greater(t, report.Tokens, int64(9_000_000))
	used := h.peak - min(before.HeapAlloc, h.peak)
	t.Logf("%d tokens in %d rows, %.1f MB", report.Tokens, report.Rows, float64(used)/1e6)
	require.Less(t, float64(used), 64e6, "what a batch of such rollouts holds at once is twice that")
}

// An error of Each's callback ends the encoding.
func TestEachEnds(t *testing.T) {
	enc, err := tokenize.NewEncoder(model(t), tokenize.Options{Mode: tokenize.PerStep})
	require.NoError(t, err)
	enough, n := errors.New("enough"), 0
	_, err = enc.Each(t.Context(), steps("a", 5, 8), func(seq rollout.Sequence) error {
		require.Equal(t, n, seq.SampleIndex)
		if n++; n == 2 {
			return enough
		}
		return nil
	})
	require.ErrorIs(t, err, enough)
	require.Equal(t, 2, n)
}

// runRows counts the rows that it is given as runs, and as columns.
type runRows struct{ runs, columns int }

func (s *runRows) Write(rollout.Sample) error { s.columns++; return nil }

func (s *runRows) WriteRuns(rollout.Sample, []int32, []rollout.TokenID, []float32) error {
	s.runs++
	return nil
}

// A whole row beyond any model's context would otherwise take five columns of memory.
func TestLongWholeRowsAreRuns(t *testing.T) {
	long := strings.Repeat("a word of a long text. ", 400)
	r := &rollout.Rollout{ID: "a", Group: "g", Messages: []rollout.Message{{Role: "user", Content: long}, {Role: "assistant", Content: long, Sampled: rollout.SampledByPolicy}}}
	p := turnpack.Pipeline{Model: model(t), Encode: tokenize.Options{Mode: tokenize.Whole}, NoAdvantages: true}
	var short, held runRows
	_, err := p.Run(t.Context(), turnpack.Slice{r}, &short)
	require.NoError(t, err)
	require.Equal(t, runRows{columns: 1}, short)
	_, err = turnpack.WithHeldLimit(p, 1000).Run(t.Context(), turnpack.Slice{r}, &held)
	require.NoError(t, err)
	require.Equal(t, runRows{runs: 1}, held)
}
