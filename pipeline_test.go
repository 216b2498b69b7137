package turnpack_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/embedded"
)

// rows is a sink in memory; after fail rows it returns an error.
type rows struct {
	got  []rollout.Sample
	fail int
}

var errFull = errors.New("the disk is full")

func (r *rows) Write(s rollout.Sample) error {
	if r.fail > 0 && len(r.got) == r.fail {
		return errFull
	}
	r.got = append(r.got, s)
	return nil
}

func model(t testing.TB) *tokenize.Model {
	t.Helper()
	m, err := embedded.Model()
	require.NoError(t, err)
	return m
}

// attempt is a rollout of two turns with an outcome.
func attempt(group string, i int, resolved bool) *rollout.Rollout {
	return &rollout.Rollout{ID: fmt.Sprintf("%s/%d", group, i), Group: group, Status: rollout.StatusCompleted,
		Outcome: rollout.Outcome{Resolved: &resolved},
		Messages: []rollout.Message{
			{Role: rollout.RoleUser, Content: "task " + group},
			{Role: rollout.RoleAssistant, Content: fmt.Sprintf("try %d", i), Sampled: rollout.SampledByPolicy},
			{Role: rollout.RoleUser, Content: "result"},
			{Role: rollout.RoleAssistant, Content: "done", Sampled: rollout.SampledByPolicy},
		}}
}

// batch interleaves three groups of four.
func batch() turnpack.Slice {
	var out turnpack.Slice
	for i := range 4 {
		for _, g := range []string{"a", "b", "c"} {
			out = append(out, attempt(g, i, (g == "a" && i < 2) || (g == "b" && i == 0) || g == "c"))
		}
	}
	return out
}

func TestRun(t *testing.T) {
	var dst rows
	report, err := turnpack.Pipeline{Model: model(t)}.Run(t.Context(), batch(), &dst)
	require.NoError(t, err)
	require.Equal(t, 12, report.Rollouts)
	require.Equal(t, 3, report.Groups)
	require.Equal(t, 12, report.Rows)
	require.Equal(t, 1, report.Reward.Constant, "all of group c are resolved")
	var order []string
	for _, s := range dst.got {
		require.NoError(t, s.Check())
		order = append(order, s.Sequence.Rollout)
		require.True(t, s.IsLast)
		require.Positive(t, s.PromptLen)
	}
	require.Equal(t, []string{"a/0", "a/1", "a/2", "a/3", "b/0", "b/1", "b/2", "b/3", "c/0", "c/1", "c/2", "c/3"}, order, "groups are contiguous although the input interleaves them")
	// Group a: rewards 1 1 −1 −1, σ₁ = 2/√3.
	want := 1 / (2/math.Sqrt(3) + 1e-6)
	require.InDelta(t, want, *dst.got[0].Advantage, 1e-12)
	require.InDelta(t, -want, *dst.got[3].Advantage, 1e-12)
	require.Zero(t, *dst.got[8].Advantage, "equal rewards carry no signal")
}

// Records that the first reading left out, a bad one and a second one of an id, stay out of the second.
func TestBadRecordsOfTheSameID(t *testing.T) {
	src := batch()
	bad, again := *src[0], *src[5]
	bad.Messages = append([]rollout.Message{{Content: "no role"}}, bad.Messages...)
	again.Messages = slices.Clone(again.Messages[:2])
	src = append(append(turnpack.Slice{&bad, nil}, src...), &again)
	var want, kept, twice rows
	p := turnpack.Pipeline{Model: model(t)}
	_, err := p.Run(t.Context(), batch(), &want)
	require.NoError(t, err)
	for limit, dst := range map[int64]*rows{0: &kept, -1: &twice} {
		report, err := turnpack.WithAgainLimit(p, limit).Run(t.Context(), src, dst)
		require.NoError(t, err)
		require.Equal(t, 3, report.LeftOut)
		require.Equal(t, want.got, dst.got)
	}
}

// Rows that wait in a file are unchanged when written.
func TestInterleavedGroupsThroughAFile(t *testing.T) {
	m := model(t)
	var memory, file rows
	_, err := turnpack.Pipeline{Model: m}.Run(t.Context(), batch(), &memory)
	require.NoError(t, err)
	dir := t.TempDir()
	_, err = turnpack.WithHeldLimit(turnpack.Pipeline{Model: m, TempDir: dir}, 1).Run(t.Context(), batch(), &file)
	require.NoError(t, err)
	require.Equal(t, memory.got, file.got)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// The rows do not depend on the number of workers.
func TestWorkersChangeNothing(t *testing.T) {
	m := model(t)
	var one rows
	_, err := turnpack.Pipeline{Model: m, Workers: 1}.Run(t.Context(), batch(), &one)
	require.NoError(t, err)
	for _, n := range []int{2, 7} {
		var many rows
		_, err := turnpack.Pipeline{Model: m, Workers: n}.Run(t.Context(), batch(), &many)
		require.NoError(t, err)
		require.Equal(t, one.got, many.got)
	}
}

func TestBadRecords(t *testing.T) {
	m := model(t)
	src := batch()
	src = append(src, attempt("a", 0, true)) // the id is taken
	bad := attempt("b", 9, true)
	bad.Turns = []rollout.Turn{{Message: 1, Output: []rollout.TokenID{1 << 30}}}
	src = append(src, bad, nil)
	_, err := turnpack.Pipeline{Model: m, OnError: rollout.OnErrorStop}.Run(t.Context(), src, &rows{})
	require.ErrorIs(t, err, rollout.KindInput)
	var dst rows
	report, err := turnpack.Pipeline{Model: m}.Run(t.Context(), src, &dst)
	require.NoError(t, err)
	require.Equal(t, 15, report.Read)
	require.Len(t, report.Skips, 3)
	require.Equal(t, 12, report.Rows)
	require.Equal(t, 1, report.WithoutRows["could not be encoded"])

	_, err = turnpack.Pipeline{Model: m}.Run(t.Context(), turnpack.Slice{{}}, &rows{})
	require.ErrorIs(t, err, rollout.KindInput, "a batch of bad records only is no batch")
	_, err = turnpack.Pipeline{Model: m}.Run(t.Context(), turnpack.Slice{{}, {}}, &rows{})
	require.ErrorContains(t, err, "none of the 2 records can be used; the first: ")
	require.ErrorIs(t, err, rollout.KindInput)
}

// The report's lists are bounded for a file of bad lines only.
func TestManyBadRecords(t *testing.T) {
	src := make(turnpack.Slice, 10_002)
	for i := range src {
		src[i] = &rollout.Rollout{}
	}
	report, err := turnpack.Pipeline{Model: model(t)}.Run(t.Context(), src, &rows{})
	require.ErrorContains(t, err, "none of the 10002 records")
	require.Equal(t, 10_002, report.LeftOut)
	require.Len(t, report.Skips, 10_000)
}

// Records that the dump reader cannot read are listed with those that the pipeline cannot use.
func TestUnreadableRecords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.jsonl")
	line := `{"id":"a","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"x"}],"resolved":true}`
	require.NoError(t, os.WriteFile(file, []byte("{\"messages\":[\n"+line+"\n{\"messages\":5}\n"), 0o600))
	src, err := traj.NewSource([]string{file}, traj.Options{})
	require.NoError(t, err)
	var dst rows
	report, err := turnpack.Pipeline{Model: model(t)}.Run(t.Context(), src, &dst)
	require.NoError(t, err)
	require.Equal(t, [3]int{3, 1, 1}, [3]int{report.Read, report.Rollouts, len(dst.got)})
	require.Equal(t, []int{1, 3}, []int{report.Skips[0].Line, report.Skips[1].Line})
	require.Equal(t, []string{file, file}, []string{report.Skips[0].File, report.Skips[1].File})
	_, err = turnpack.Pipeline{Model: model(t), OnError: rollout.OnErrorStop}.Run(t.Context(), src, &rows{})
	require.ErrorContains(t, err, "x.jsonl:1")
	_, err = traj.NewSource([]string{file}, traj.Options{OnError: rollout.OnErrorStop})
	require.ErrorContains(t, err, "set Pipeline.OnError")
}

// A turn with an unknown context is left out and listed; the turns around it are trained.
func TestTurnsOfUnknownContext(t *testing.T) {
	m := model(t)
	src := batch()
	unknown := rollout.Turn{Message: 1, Context: rollout.Context{Unknown: true}}
	src[0].Turns = []rollout.Turn{unknown, {Message: 3, Step: 1}}
	src[1].Turns = []rollout.Turn{unknown}
	var dst rows
	report, err := turnpack.Pipeline{Model: m}.Run(t.Context(), src, &dst)
	require.NoError(t, err)
	require.Equal(t, 2, report.Encode.UnknownContext)
	require.Len(t, report.Untrained, 2)
	require.Equal(t, src[0].ID, report.Untrained[0].Rollout)
	require.ErrorIs(t, report.Untrained[0].Error, rollout.KindInput)
	require.ErrorContains(t, report.Untrained[0].Error, "so the turn is not trained")
	require.Equal(t, map[string]int{"what the model saw is not known": 1}, report.WithoutRows)
	require.Equal(t, []int{1, 1}, []int{dst.got[0].FirstTurn, dst.got[0].LastTurn})
	require.Empty(t, report.Skips)
}

func TestOutcomesThatAreNoReward(t *testing.T) {
	m := model(t)
	src := batch()
	src[0].Outcome.Resolved = nil
	src[3].Status = rollout.StatusFailed
	src[6].Status = rollout.StatusAborted
	var dst rows
	report, err := turnpack.Pipeline{Model: m}.Run(t.Context(), src, &dst)
	require.NoError(t, err)
	require.Equal(t, 9, report.Rows)
	total := 0
	for _, n := range report.WithoutRows {
		total += n
	}
	require.Equal(t, 3, total, "each is counted with its reason: %v", report.WithoutRows)
	for k, i := range []int{0, 3, 6} {
		at := report.WithoutRowsAt[k]
		require.Equal(t, src[i].ID, at.Rollout)
		require.Positive(t, report.WithoutRows[at.Reason], "and named")
	}
	for _, s := range dst.got {
		require.GreaterOrEqual(t, s.Reward, -1.0)
	}
	for _, r := range src {
		r.Outcome.Resolved = nil
	}
	_, err = turnpack.Pipeline{Model: m}.Run(t.Context(), src, &rows{})
	require.ErrorIs(t, err, rollout.KindInput, "no reward at all is an error, not a batch of zeros")
	dst = rows{}
	report, err = turnpack.Pipeline{Model: m, NoAdvantages: true}.Run(t.Context(), src, &dst)
	require.NoError(t, err)
	require.Equal(t, 10, report.Rows, "the failed and the aborted one stay masked: %v", report.MaskedRows)
	require.Nil(t, dst.got[0].Advantage)
}

func TestOverlongRowsAreMaskedWithAReason(t *testing.T) {
	report, err := turnpack.Pipeline{Model: model(t), Mask: lossmask.Policy{MaxTokens: 5}}.Run(t.Context(), batch(), &rows{})
	require.NoError(t, err)
	require.Zero(t, report.Rows)
	require.Equal(t, 12, report.MaskedRows["overlong"])
	require.Equal(t, 12, report.WithoutRows["masked: overlong"])
}

// The limit applies to rows as written, without the tokens after the last trained one.
func TestTheLimitIsOnRowsAsWritten(t *testing.T) {
	r := attempt("a", 0, true)
	r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleUser, Content: "thanks for all of this"})
	whole := turnpack.Pipeline{Model: model(t), Encode: tokenize.Options{Mode: tokenize.Whole}}
	var free, limited rows
	_, err := whole.Run(t.Context(), turnpack.Slice{r}, &free)
	require.NoError(t, err)
	n := free.got[0].Len()
	whole.Mask.MaxTokens = n
	_, err = whole.Run(t.Context(), turnpack.Slice{r}, &limited)
	require.NoError(t, err)
	require.Equal(t, free.got, limited.got)
	whole.Mask.MaxTokens = n - 1
	report, err := whole.Run(t.Context(), turnpack.Slice{r}, &rows{})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"masked: overlong": 1}, report.WithoutRows)
}

// A rollout without rows does not remove a column from those with rows.
func TestColumnsOfRolloutsWithoutRows(t *testing.T) {
	captured := func(i int, status rollout.Status, logprobs []float32) *rollout.Rollout {
		version := int32(3)
		r := attempt("a", i, i == 0)
		r.Status, r.Turns = status, []rollout.Turn{{Message: 1, Output: []rollout.TokenID{7, 8}, Logprobs: logprobs, Version: &version}}
		r.Turns[0].Prompt.Add = []rollout.TokenID{5, 6}
		r.Messages = r.Messages[:2]
		return r
	}
	lp := []float32{-1, -2}
	unknown := captured(2, rollout.StatusCompleted, lp)
	unknown.Messages = attempt("a", 2, false).Messages
	unknown.Turns = append(unknown.Turns, rollout.Turn{Message: 3, Step: 1, Context: rollout.Context{Unknown: true}})
	lacking := captured(2, rollout.StatusTruncated, nil)
	lacking.Origin = rollout.Origin{File: "x.jsonl", Line: 9}
	for _, c := range []struct {
		reason string
		last   *rollout.Rollout
		kept   bool
	}{
		{"all have them", captured(2, rollout.StatusCompleted, lp), true},
		{"a turn whose context nobody knows is not trained", unknown, true},
		{"an aborted rollout has no rows", captured(2, rollout.StatusAborted, nil), true},
		{"this one has rows", lacking, false},
	} {
		var dst rows
		src := turnpack.Slice{captured(0, rollout.StatusCompleted, lp), captured(1, rollout.StatusCompleted, lp), c.last}
		report, err := turnpack.Pipeline{Model: model(t)}.Run(t.Context(), src, &dst)
		require.NoError(t, err, c.reason)
		for _, s := range dst.got {
			require.Equal(t, c.kept, s.Logprob != nil, "%s: %s", c.reason, s.ID)
			require.NotNil(t, s.Version, c.reason)
		}
		if c.kept {
			require.Nil(t, report.DroppedLogprobs, c.reason)
			continue
		}
		require.Equal(t, &turnpack.Dropped{Without: 1, Turns: 3, First: rollout.Where{File: "x.jsonl", Line: 9, Rollout: "a/2", Turn: rollout.At(0)}}, report.DroppedLogprobs, c.reason)
	}
}

// The run's policy version applies to turns that record none.
func TestPolicyVersion(t *testing.T) {
	r := attempt("a", 0, true)
	recorded, given := int32(3), int32(5)
	r.Turns = []rollout.Turn{{Message: 1, Version: &recorded}, {Message: 3, Step: 1}}
	for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep} {
		var dst rows
		report, err := turnpack.Pipeline{Model: model(t), Encode: tokenize.Options{Mode: mode}, PolicyVersion: &given}.Run(t.Context(), turnpack.Slice{r}, &dst)
		require.NoError(t, err)
		require.Nil(t, report.DroppedVersions)
		for _, s := range dst.got {
			for i, turn := range s.Turn {
				want := map[int32]int32{-1: -1, 0: recorded, 1: given}[turn]
				require.Equal(t, want, s.Version[i], "%s, token %d of turn %d", mode, i, turn)
			}
		}
	}
}

// A recorded failure sets the status of a rollout that records none.
func TestFailureWithoutStatus(t *testing.T) {
	r := attempt("a", 0, true)
	r.Status, r.Failure = rollout.StatusUnknown, &rollout.Failure{Reason: "net"}
	for _, unknown := range []rollout.Status{rollout.StatusUnknown, rollout.StatusCompleted} {
		var dst rows
		report, err := turnpack.Pipeline{Model: model(t), UnknownStatus: unknown, NoAdvantages: true}.Run(t.Context(), turnpack.Slice{r}, &dst)
		require.NoError(t, err)
		require.Empty(t, dst.got)
		require.Equal(t, map[string]int{"masked: failed": 1}, report.WithoutRows)
	}
}

// A rollout that records no status counts as truncated if a limit cut its last reply.
func TestCutWithoutStatus(t *testing.T) {
	for reason, want := range map[string]rollout.Status{"length": rollout.StatusTruncated, "stop": rollout.StatusCompleted} {
		r := attempt("a", 0, true)
		r.Status = rollout.StatusUnknown
		r.Turns = []rollout.Turn{{Message: 1}, {Message: 3, FinishReason: reason}}
		var dst rows
		_, err := turnpack.Pipeline{Model: model(t), UnknownStatus: rollout.StatusCompleted}.Run(t.Context(), turnpack.Slice{r}, &dst)
		require.NoError(t, err)
		require.Equal(t, want, dst.got[0].Status)
	}
}

// A finish reason that is not recorded is not made up, except that a truncated rollout's last turn
// was cut by the limit.
func TestFinishReasonIsRecordedOrEmpty(t *testing.T) {
	for status, want := range map[rollout.Status][]string{
		rollout.StatusCompleted: {"", ""}, rollout.StatusTruncated: {"", "limit"},
	} {
		r := attempt("a", 0, true)
		r.Status = status
		var dst rows
		_, err := turnpack.Pipeline{Model: model(t), Encode: tokenize.Options{Mode: tokenize.PerStep}}.Run(t.Context(), turnpack.Slice{r}, &dst)
		require.NoError(t, err)
		require.Equal(t, want, []string{dst.got[0].FinishReason, dst.got[1].FinishReason}, status)
	}
}

// Steps, their score and the finish reason are those of the turns that the mask leaves trained.
func TestRowsTellOfTheStepsTheyTrain(t *testing.T) {
	good, bad := 1.0, -1.0
	r := attempt("a", 0, true)
	r.Turns = []rollout.Turn{{Message: 1, Step: 3, FinishReason: "stop"}, {Message: 3, Step: 4, FinishReason: "length"}}
	r.Steps = []rollout.StepScore{{Step: 3, Score: &good}, {Step: 4, Score: &bad}}
	for turn, want := range map[int]struct {
		score  float64
		finish string
	}{0: {good, "stop"}, 1: {bad, "length"}} {
		var dst rows
		_, err := turnpack.Pipeline{Model: model(t), Mask: lossmask.Policy{Turns: func(i int) bool { return i == turn }}}.Run(t.Context(), turnpack.Slice{r}, &dst)
		require.NoError(t, err)
		got := dst.got[0]
		require.Equal(t, []int{turn, turn, 3 + turn, 3 + turn}, []int{got.FirstTurn, got.LastTurn, got.FirstStep, got.LastStep})
		require.Equal(t, want.score, *got.StepReward)
		require.Equal(t, want.finish, got.FinishReason)
	}
}

func TestPerStepRowsShareTheirRollout(t *testing.T) {
	var dst rows
	_, err := turnpack.Pipeline{Model: model(t), Encode: tokenize.Options{Mode: tokenize.PerStep}}.Run(t.Context(), batch()[:3], &dst)
	require.NoError(t, err)
	require.Len(t, dst.got, 6)
	require.Equal(t, []bool{false, true}, []bool{dst.got[0].IsLast, dst.got[1].IsLast})
	require.Equal(t, dst.got[0].RolloutMaskSum, dst.got[1].RolloutMaskSum)
	require.EqualValues(t, dst.got[0].Sequence.Trained()+dst.got[1].Sequence.Trained(), dst.got[0].RolloutMaskSum)
}

func TestWindow(t *testing.T) {
	var plain, cut rows
	_, err := turnpack.Pipeline{Model: model(t)}.Run(t.Context(), long(), &plain)
	require.NoError(t, err)
	_, err = turnpack.Pipeline{Model: model(t), Window: ctxwindow.Refill{Budget: 120}}.Run(t.Context(), long(), &cut)
	require.NoError(t, err)
	require.Less(t, len(plain.got), len(cut.got))
	sum := func(r rows) (n int) {
		for _, s := range r.got {
			n += s.Sequence.Trained()
		}
		return n
	}
	require.Equal(t, sum(plain), sum(cut), "a window changes contexts, not what was sampled")

	var captured, windowed rows
	src := withIDs(long(), plain.got)
	_, err = turnpack.Pipeline{Model: model(t)}.Run(t.Context(), src, &captured)
	require.NoError(t, err)
	for _, budget := range []int{120, 1} {
		windowed.got = nil
		report, err := turnpack.Pipeline{Model: model(t), Window: ctxwindow.Refill{Budget: budget}}.Run(t.Context(), src, &windowed)
		require.NoError(t, err)
		require.Equal(t, captured.got, windowed.got, "recorded ids are what the model saw")
		require.Zero(t, report.Encode.Unattributed)
	}
}

// withIDs records in the turns of rollouts the ids of their per-step rows.
func withIDs(rollouts turnpack.Slice, of []rollout.Sample) turnpack.Slice {
	for i, r := range rollouts {
		seq := of[i].Sequence
		r.Turns = slices.Clone(rollout.TurnsOf(r))
		for t := range r.Turns {
			from := slices.Index(seq.Turn, int32(t))
			end := from
			for end < seq.Len() && seq.Turn[end] == int32(t) {
				end++
			}
			r.Turns[t].Prompt, r.Turns[t].Output = rollout.PromptIDs{Add: seq.IDs[:from]}, seq.IDs[from:end]
		}
	}
	return rollouts
}

// long is one group of two rollouts of twelve turns.
func long() turnpack.Slice {
	var out turnpack.Slice
	for i := range 2 {
		r := attempt("long", i, i == 0)
		for k := range 10 {
			r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleUser, Content: fmt.Sprintf("output number %d", k)},
				rollout.Message{Role: rollout.RoleAssistant, Content: fmt.Sprintf("command %d", k), Sampled: rollout.SampledByPolicy})
		}
		out = append(out, r)
	}
	return out
}

func TestFailingSinkEndsTheRun(t *testing.T) {
	dst := rows{fail: 2}
	_, err := turnpack.Pipeline{Model: model(t)}.Run(t.Context(), batch(), &dst)
	require.ErrorIs(t, err, errFull)
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	_, err := turnpack.Pipeline{Model: model(t), Progress: func(p turnpack.Progress) {
		if seen++; p.Pass == 2 {
			cancel()
		}
	}}.Run(ctx, batch(), &rows{})
	require.ErrorIs(t, err, context.Canceled)
	require.Positive(t, seen)
}

// Rows are numbered among those that the mask leaves.
func TestRowsLeftByTheMaskAreNumberedAlone(t *testing.T) {
	var all, left rows
	p := turnpack.Pipeline{Model: model(t), Encode: tokenize.Options{Mode: tokenize.PerStep}}
	_, err := p.Run(t.Context(), batch(), &all)
	require.NoError(t, err)
	require.Len(t, all.got, 24)
	require.Less(t, all.got[0].Len(), all.got[1].Len())
	p.Mask.MaxTokens = all.got[0].Len()
	_, err = p.Run(t.Context(), batch(), &left)
	require.NoError(t, err)
	require.Len(t, left.got, 12, "the longer row of each rollout is out")
	for _, s := range left.got {
		require.Equal(t, s.Rollout+"#0", s.ID)
		require.True(t, s.IsLast)
		require.EqualValues(t, s.Trained(), s.RolloutMaskSum)
	}
}

// shrinking yields one rollout less the second time.
type shrinking struct {
	turnpack.Slice
	passes int
}

func (s *shrinking) Rollouts(ctx context.Context) iter.Seq2[*rollout.Rollout, error] {
	s.passes++
	if s.passes > 1 {
		return s.Slice[1:].Rollouts(ctx)
	}
	return s.Slice.Rollouts(ctx)
}

func TestSourceThatChanges(t *testing.T) {
	p := turnpack.Pipeline{Model: model(t)}
	_, err := turnpack.WithAgainLimit(p, -1).Run(t.Context(), &shrinking{Slice: batch()}, &rows{})
	require.ErrorIs(t, err, rollout.KindInput)
	for limit, passes := range map[int64]int{0: 1, 4096: 2} { // rollouts that fit into memory are read once
		src, got := &shrinking{Slice: batch()}, &rows{}
		_, err := turnpack.WithAgainLimit(p, limit).Run(t.Context(), src, got)
		require.Equal(t, passes, src.passes)
		require.Equal(t, passes > 1, err != nil)
	}
}

func TestValidateReportsAllFaults(t *testing.T) {
	p := turnpack.Pipeline{Workers: -1, Temperature: -1, Window: ctxwindow.Refill{Budget: 100}, Encode: tokenize.Options{Mode: tokenize.Whole}}
	err := p.Validate()
	for _, field := range []string{"Model", "Workers", "Temperature", "Pipeline.Window: whole rows"} {
		require.ErrorContains(t, err, field)
	}
	_, err = turnpack.Pipeline{Model: model(t)}.Run(t.Context(), turnpack.Slice{}, &rows{})
	require.ErrorIs(t, err, rollout.KindInput, "an empty source")
	unknown, broken := attempt("a", 0, true), attempt("a", 1, true)
	unknown.Outcome, broken.Messages[0].Role = rollout.Outcome{}, ""
	_, err = turnpack.Pipeline{Model: model(t)}.Run(t.Context(), turnpack.Slice{unknown, broken}, &rows{})
	require.ErrorContains(t, err, "1 no outcome recorded, 1 more records cannot be used, the first: rollout \"a/1\", message 0: the message has no role")
	for name, why := range map[string]string{
		"slime_grpo": "slices by position", "prime_rae": "in their order",
	} {
		e, ok := reward.Preset(name)
		require.True(t, ok)
		p := turnpack.Pipeline{Estimator: &e}
		require.ErrorContains(t, p.Validate(), why)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		p := turnpack.Pipeline{Temperature: float32(bad)}
		require.ErrorContains(t, p.Validate(), "Temperature")
	}
}

func Example() {
	m, err := embedded.Model()
	if err != nil {
		panic(err)
	}
	var dst rows
	report, err := turnpack.Pipeline{Model: m}.Run(context.Background(), batch(), &dst)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d rollouts, %d rows, %d of %d tokens trained\n", report.Rollouts, report.Rows, report.Trained, report.Tokens)
	fmt.Printf("%s: reward %+g, advantage %+.3f\n", dst.got[0].ID, dst.got[0].Reward, *dst.got[0].Advantage)
	// Output:
	// 12 rollouts, 12 rows, 84 of 348 tokens trained
	// a/0#0: reward +1, advantage +0.866
}
