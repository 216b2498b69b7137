package lineage

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

type ids = []rollout.TokenID

// Control tokens of the toy vocabulary.
const (
	open, stop, sep rollout.TokenID = 1, 2, 3
	user, model     rollout.TokenID = 7, 6
)

func cat(parts ...any) ids {
	var out ids
	for _, p := range parts {
		switch p := p.(type) {
		case rollout.TokenID:
			out = append(out, p)
		case ids:
			out = append(out, p...)
		case int:
			out = append(out, whole(p))
		}
	}
	return out
}

func said(prompt, output ids) flat { return flat{prompt: prompt, output: output, stopped: true} }

var (
	ask    = cat(open, user, sep, 1, 2, stop, sep, open, model, sep) // a first prompt
	answer = cat(10, 11, 12, 13, 14, stop)                           // a response to it
	more   = cat(sep, open, user, sep, 20, 21, stop, sep, open, model, sep)
)

func merged(t *testing.T, opts Options, flats ...flat) *Result {
	t.Helper()
	res, err := Merge(plainTurns(flats), opts)
	require.NoError(t, err)
	checkInvariants(t, flats, res)
	return res
}

func breaks(res *Result) []string {
	var out []string
	for _, r := range res.Rows {
		out = append(out, r.Break)
	}
	return out
}

func TestBreakReasons(t *testing.T) {
	follow := cat(ask, answer, more)
	respelled := cat(10, halves(11), 12, 13, 14, stop)
	for _, tc := range []struct {
		name, reason string
		opts         Options
		flats        []flat
		want         []string
	}{
		{"linear", "an exact join is no break", Options{}, []flat{said(ask, answer), said(follow, answer)}, []string{breakRoot}},
		{"two agents", "a shared system prompt is no sampled prefix", Options{},
			[]flat{said(cat(open, user, sep, 1, 2, stop, sep, open, model, sep), cat(10, stop)), said(cat(open, user, sep, 1, 3, stop, sep, open, model, sep), cat(11, stop))}, []string{breakRoot, breakRoot}},
		{"drift last", "the last response of a row respelled", Options{},
			[]flat{said(ask, answer), said(cat(ask, respelled, more), answer)}, []string{breakRoot, breakDriftLast}},
		{"drift earlier", "a response respelled that the row has gone on from", Options{},
			[]flat{said(ask, answer), said(follow, answer), said(cat(ask, respelled, more, answer, more), answer)}, []string{breakRoot, breakDriftEarlier}},
		{"thinking stripped", "divergence at the first token of the response", Options{},
			[]flat{said(ask, answer), said(cat(ask, 13, 14, stop, more), answer)}, []string{breakRoot, breakDriftLast}},
		{"retry", "the exact predecessor has gone on with the first try", Options{},
			[]flat{said(ask, answer), said(follow, cat(30, 31, stop)), said(follow, cat(40, 41, stop))}, []string{breakRoot, breakSibling}},
		{"branch", "other context behind the same predecessor", Options{},
			[]flat{said(ask, answer), said(follow, cat(30, 31, stop)), said(cat(ask, answer, sep, open, user, sep, 50, stop, sep, open, model, sep), cat(40, stop))}, []string{breakRoot, breakSibling}},
		{"volatile header", "the history stands behind another header", Options{},
			[]flat{said(ask, answer), said(cat(open, user, sep, 99, 2, stop, sep, open, model, sep, answer, more), answer)}, []string{breakRoot, breakRewrite}},
		{"compaction", "a summary that a turn sampled replaces the history, task included", Options{},
			[]flat{said(ask, answer), said(follow, cat(60, 61, 62, 63, stop)), said(cat(open, user, sep, 60, 61, 62, 63, stop, sep, open, model, sep), answer)}, []string{breakRoot, breakRewrite}},
		{"compaction behind the task", "all messages of the first call are there, its response is not", Options{},
			[]flat{said(ask, answer), said(follow, answer), said(cat(ask[:8], user, sep, 70, 71, stop, sep, open, model, sep), answer)}, []string{breakRoot, breakRewrite}},
		{"retry behind a compaction", "what was rewritten before the exact predecessor does not matter", Options{},
			[]flat{said(ask, answer), said(cat(ask[:8], user, sep, 70, 71, stop, sep, open, model, sep), answer),
				said(cat(ask[:8], user, sep, 70, 71, stop, sep, open, model, sep, answer, more), cat(30, stop)),
				said(cat(ask[:8], user, sep, 70, 71, stop, sep, open, model, sep, answer, more), cat(31, stop))}, []string{breakRoot, breakRewrite, breakSibling}},
		{"over budget", "a realign existed but exceeded its limit", Options{Drift: driftRealign, MaxDropTokens: 2},
			[]flat{said(ask, answer), said(cat(ask, respelled, more), answer)}, []string{breakRoot, breakBudget}},
		{"over splice budget", "same text, too many tokens", Options{Drift: driftSplice, MaxSubTokens: 1, Text: toyText},
			[]flat{said(ask, answer), said(cat(ask, respelled, more), answer)}, []string{breakRoot, breakBudget}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, breaks(merged(t, tc.opts, tc.flats...)), tc.reason)
		})
	}
}

func TestEdgeCases(t *testing.T) {
	long := cat(10, 11, 12) // a truncated output, without stop
	for _, tc := range []struct {
		name  string
		flats []flat
		rows  int
	}{
		{"no turns", nil, 0},
		{"all turns empty", []flat{said(ask, nil), said(ask, nil)}, 0},
		{"an empty turn breaks nothing", []flat{said(ask, answer), said(cat(ask, answer, more), nil), said(cat(ask, answer, more), answer)}, 1},
		{"empty prompt", []flat{said(nil, answer), said(cat(answer, more), answer)}, 1},
		{"same call twice", []flat{said(ask, answer), said(ask, answer)}, 2},
		{"same call twice, both continued", []flat{said(ask, answer), said(ask, answer), said(cat(ask, answer, more), answer), said(cat(ask, answer, sep), answer)}, 2},
		{"sibling whose tokens begin another's", []flat{said(ask, long), said(ask, cat(long, 13, stop)), said(cat(ask, long, 13, stop, more), answer)}, 2},
		{"continuation with prefilled answer", []flat{said(ask, long), said(cat(ask, long), cat(13, stop))}, 1},
		{"full context and a header only", []flat{said(ask, answer), said(cat(ask, answer, open, model), answer)}, 1},
		{"closing token after truncation is context", []flat{said(ask, long), said(cat(ask, long, stop, more), answer)}, 1},
		{"interleaved agents", []flat{said(cat(1, 1), cat(10)), said(cat(1, 2), cat(11)), said(cat(1, 1, 10, 5), cat(12)), said(cat(1, 2, 11, 5), cat(13))}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := merged(t, Options{}, tc.flats...)
			require.Equal(t, tc.rows, res.Report.Rows)
			require.Equal(t, optimum(tc.flats), res.Report.Rows)
			checkTree(t, tc.flats, res)
		})
	}
}

func TestSpliceDeclaresSubstitutions(t *testing.T) {
	flats := []flat{
		said(ask, cat(10, 11, stop)),
		said(cat(ask, halves(10), 11, stop, more), cat(halves(12), stop)),  // one word respelled
		said(cat(ask, 10, halves(11), stop, more, 12, stop, more), answer), // undone, and two others
	}
	res := merged(t, Options{Drift: driftSplice, Text: toyText}, flats...)
	require.Len(t, res.Rows, 1)
	spans := res.Rows[0].Spans
	n := len(ask)
	require.Empty(t, spans[0].Subs)
	require.Equal(t, []Sub{{At: n, Len: 1, EngineLen: 2}}, spans[1].Subs)
	require.Equal(t, []Sub{{At: n + 1, Len: 1, EngineLen: 2}, {At: n + 3 + len(more), Len: 2, EngineLen: 1}}, spans[2].Subs, "the later prompt undid the first respelling")
	require.Equal(t, []Join{{Prev: 0, Turn: 1, Kind: joinSplice, Substituted: 2}, {Prev: 1, Turn: 2, Kind: joinSplice, Substituted: 6}}, res.Rows[0].Joins,
		"a join is counted against the turn before it: there three places differ")
	require.Equal(t, 6+3, res.Report.SubContext)
}

func TestSpliceNeedsTheSameText(t *testing.T) {
	for _, tc := range []struct {
		name   string
		prompt ids
	}{
		{"another word", cat(ask, 15, 11, stop, more)},
		{"the row ends inside an engine token", cat(ask, 10)},
		{"text is shorter", cat(ask, 10, 11)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := merged(t, Options{Drift: driftSplice, Text: toyText}, said(ask, cat(10, 11, halves(12)[0])), said(tc.prompt, answer))
			require.Len(t, res.Rows, 2)
		})
	}
}

// History shows another id than the sampled stop, as in gpt-oss.
func TestStopRewrites(t *testing.T) {
	const shown rollout.TokenID = 4
	first, second := said(ask, answer), said(cat(ask, answer[:len(answer)-1], shown, more), cat(30, stop))
	third := said(cat(second.prompt, 30, shown, more), cat(31, stop))
	rewrites := map[rollout.TokenID]rollout.TokenID{stop: shown}
	for name, o := range map[string]Options{
		"fork":            {StopRewrites: rewrites},
		"splice, unnamed": {Drift: driftSplice, Text: toyText},
		"realign":         {Drift: driftRealign, MaxDropTokens: -1, StopRewrites: rewrites},
	} {
		require.Len(t, merged(t, o, first, second, third).Rows, 3, name)
	}
	for _, drift := range []string{driftSplice, driftAuto} {
		res := merged(t, Options{Drift: drift, Text: toyText, StopRewrites: rewrites}, first, second, third)
		require.Len(t, res.Rows, 1)
		row := &res.Rows[0]
		at := []int{len(ask) + len(answer) - 1, len(second.prompt) + 1}
		require.Equal(t, cat(third.prompt[:at[0]], stop, third.prompt[at[0]+1:at[1]], stop, third.prompt[at[1]+1:], third.output), row.AppendIDs(nil))
		require.Equal(t, []Sub{{at[0], 1, 1, true}, {at[1], 1, 1, true}}, row.Spans[2].Subs, "every stop that history shows as another is declared")
		for k, s := range row.Spans {
			require.Equal(t, Span{Turn: k, Start: s.Start, Len: len([]flat{first, second, third}[k].output), Subs: s.Subs}, s, "nothing sampled is lost")
		}
		require.Equal(t, 2, res.Report.Rewrites)
		require.Zero(t, res.Report.StopsLost)
		require.Less(t, res.Report.Trained-res.Report.SubContext, res.Report.Sampled, "later spans were sampled after the other id")
	}
	other := said(cat(ask, answer[:len(answer)-1], user, more), cat(30, stop))
	require.Len(t, merged(t, Options{Drift: driftSplice, Text: toyText, StopRewrites: rewrites}, first, other).Rows, 2, "only the named id")
}

func TestRealign(t *testing.T) {
	respelled := cat(10, 11, 12, 13, halves(14), stop)
	flats := []flat{said(ask, answer), said(cat(ask, respelled, more), answer)}
	for name, text := range map[string]func(rollout.TokenID) string{"by stop token": nil, "by text": toyText} {
		t.Run(name, func(t *testing.T) {
			res := merged(t, Options{Drift: driftRealign, Text: text}, flats...)
			require.Equal(t, []Drop{{Turn: 0, From: 4, Len: 2, Reason: dropRealign}}, res.Dropped)
			n := len(ask)
			require.Equal(t, []segment{
				{segPrompt, -1, 0, n}, {segSampled, 0, n, 4}, {segRealigned, -1, n + 4, 3},
				{segContext, -1, n + 7, len(more)}, {segSampled, 1, n + 7 + len(more), 6},
			}, segments(&res.Rows[0]))
			require.Equal(t, 1, res.Report.StopsLost)
			require.Equal(t, 0.5, res.Report.StopLossShare())
		})
	}
	t.Run("the share bounds it", func(t *testing.T) {
		require.Len(t, merged(t, Options{Drift: driftRealign, MaxDropFrac: 0.3}, flats...).Rows, 2)
		require.Len(t, merged(t, Options{Drift: driftRealign, MaxDropFrac: 0.4}, flats...).Rows, 1)
		require.Len(t, merged(t, Options{Drift: driftRealign, MaxDropTokens: -1}, flats...).Rows, 2)
	})
	t.Run("a cut tail has no respelling", func(t *testing.T) {
		res := merged(t, Options{Drift: driftRealign, Text: toyText}, said(ask, cat(10, 11, 12)), said(cat(ask, 10, open, user, 5, stop, open, model), answer))
		require.Len(t, res.Rows, 1)
		require.Equal(t, segContext, segments(&res.Rows[0])[2].Kind)
	})
	t.Run("a retry is not deleted", func(t *testing.T) {
		require.Len(t, merged(t, Options{Drift: driftRealign, MaxDropTokens: 100}, said(ask, answer), said(ask, cat(15, stop))).Rows, 2)
	})
	t.Run("unless erasing is allowed, and then not in a circle", func(t *testing.T) {
		res := merged(t, Options{Drift: driftRealign, MaxDropTokens: 100, AllowErase: true}, said(ask, answer), said(ask, cat(15, stop)))
		require.Len(t, res.Rows, 1)
		require.Equal(t, []Drop{{Turn: 1, From: 0, Len: 2, Reason: dropErase}}, res.Dropped)
		res = merged(t, Options{Drift: driftSplice, MaxDropTokens: 100, AllowErase: true, Text: toyText}, said(ask, answer), said(ask, cat(15, stop)))
		require.Len(t, res.Rows, 2, "a policy that drops nothing")
	})
}

func TestReplayNamesItsTurn(t *testing.T) {
	follow := cat(ask, answer, more)
	res := merged(t, Options{}, said(ask, answer), said(follow, cat(30, stop)), said(follow, cat(31, stop)))
	n := len(ask)
	require.Equal(t, []segment{
		{segPrompt, -1, 0, n}, {segReplay, 0, n, 6}, {segPrompt, -1, n + 6, len(more)}, {segSampled, 2, n + 6 + len(more), 2},
	}, segments(&res.Rows[1]))
}

func TestExcludedTurnIsContext(t *testing.T) {
	bad := said(ask, answer)
	bad.excluded = true
	res := merged(t, Options{}, bad, said(cat(ask, answer, more), cat(30, stop)))
	require.Len(t, res.Rows, 1)
	require.Equal(t, []Drop{{Turn: 0, Len: 6, Reason: dropPolicy}}, res.Dropped)
	require.Equal(t, segReplay, segments(&res.Rows[0])[1].Kind)
}

func TestMaxRowTokens(t *testing.T) {
	flats := []flat{said(ask, answer), said(cat(ask, answer, more), answer)}
	n := len(ask) + 6 + len(more)
	for _, tc := range []struct {
		limit, rows, rowTokens int
		dropped                []Drop
	}{
		{n + 6, 1, n + 6, nil},
		{n + 2, 1, n + 2, []Drop{{1, 2, 4, dropTooLong}}},
		{n, 1, len(ask) + 6, []Drop{{1, 0, 6, dropTooLong}}},
		{len(ask), 0, 0, []Drop{{0, 0, 6, dropTooLong}, {1, 0, 6, dropTooLong}}},
	} {
		res := merged(t, Options{MaxRowTokens: tc.limit}, flats...)
		require.Equal(t, tc.rows, res.Report.Rows)
		require.Equal(t, tc.rowTokens, res.Report.RowTokens)
		require.Equal(t, tc.dropped, res.Dropped)
	}
}

func TestRefuse(t *testing.T) {
	_, err := Merge(plainTurns([]flat{said(ask, answer), said(cat(ask, 10, halves(11), 12, 13, 14, stop, more), answer)}), Options{Drift: driftRefuse})
	require.ErrorIs(t, err, rollout.KindDrift)
	var e *rollout.Error
	require.True(t, errors.As(err, &e))
	require.Equal(t, rollout.Where{Turn: rollout.At(1), Token: rollout.At(len(ask) + 1)}, e.Where)
	require.Contains(t, e.Msg, "10034") // first half of word 11
	require.Contains(t, e.Msg, "10033") // word 11 in one id

	res := merged(t, Options{Drift: driftRefuse}, said(ask, answer), said(cat(ask, answer, more), answer), said(ask, cat(15, stop)))
	require.Len(t, res.Rows, 2, "a retry is no drift")
}

func TestInputErrors(t *testing.T) {
	for _, tc := range []struct {
		name, field string
		turn        Turn
	}{
		{"base is not earlier", "Prompt.Base", Turn{Prompt: rollout.PromptIDs{Base: rollout.At(1)}}},
		{"keep beyond base", "Prompt.Keep", Turn{Prompt: rollout.PromptIDs{Base: rollout.At(0), Keep: 100}}},
		{"negative keep", "Prompt.Keep", Turn{Prompt: rollout.PromptIDs{Base: rollout.At(0), Keep: -1}}},
		{"keep without base", "Prompt.Keep", Turn{Prompt: rollout.PromptIDs{Keep: 1}}},
		{"logprobs too short", "Logprobs", Turn{Output: answer, Logprobs: make([]float32, 5)}},
		{"logprobs without output", "Logprobs", Turn{Logprobs: make([]float32, 1)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, err := newBuilder(Options{})
			require.NoError(t, err)
			_, err = b.add(said(ask, answer).turn())
			require.NoError(t, err)
			_, err = b.add(tc.turn)
			require.ErrorIs(t, err, rollout.KindInput)
			var e *rollout.Error
			require.True(t, errors.As(err, &e))
			require.Equal(t, tc.field, e.Where.Field)
			require.Equal(t, rollout.At(1), e.Where.Turn)
			require.Equal(t, 1, len(b.turns), "a refused turn leaves nothing behind")
			res, err := b.finish()
			require.NoError(t, err)
			require.Equal(t, 1, res.Report.Rows)
		})
	}
}

func TestOptionsValidateReportsAllFaults(t *testing.T) {
	err := Options{Drift: "guess", MaxDropFrac: 2, MaxStopLossShare: 1.5, MaxRowTokens: -1}.Validate()
	for _, field := range []string{"Drift", "MaxDropFrac", "MaxStopLossShare", "MaxRowTokens"} {
		require.ErrorContains(t, err, field)
	}
	require.ErrorContains(t, Options{Drift: driftAuto}.Validate(), "Text")
	require.NoError(t, Options{}.Validate())
	require.ErrorIs(t, err, rollout.KindInput)
}

func TestMaxStopLossShare(t *testing.T) {
	// Ten conversations, each with one turn that ended by itself and loses its stop token to a
	// realign and one that keeps it: half of the stops are lost.
	var turns []Turn
	for k := range 10 {
		own := cat(200+k, ask)
		out := cat(10, 11, 12, 13, 14, stop)
		drifted := cat(out[:5-k%3], whole(90), sep)
		turns = append(turns, plainTurns([]flat{said(own, out), said(cat(own, drifted, more), answer)})...)
	}
	sum := func(share float64) (rep Report, costs []int) {
		res, err := Merge(turns, Options{Drift: driftRealign, MaxStopLossShare: share})
		require.NoError(t, err)
		for _, d := range res.Dropped {
			costs = append(costs, d.Len)
		}
		return res.Report, costs
	}
	rep, _ := sum(0)
	require.Equal(t, [3]int{10, 20, 10}, [3]int{rep.Rows, rep.Stops, rep.StopsLost}, "0 is the default: no limit")
	rep, costs := sum(0.2)
	require.Equal(t, [2]int{16, 4}, [2]int{rep.Rows, rep.StopsLost})
	require.Equal(t, 6, rep.Breaks[breakBudget])
	slices.Sort(costs)
	require.Equal(t, []int{2, 3, 3, 3}, costs, "those that drop least are undone first")
	rep, _ = sum(-1)
	require.Equal(t, [2]int{20, 0}, [2]int{rep.Rows, rep.StopsLost}, "negative allows none")
}

func TestBuilderKeepsDistinctIDsOnly(t *testing.T) {
	// A harness that reuses one buffer only appends to it, so earlier prompts do not change.
	b, err := newBuilder(Options{})
	require.NoError(t, err)
	var flats []flat
	prompt := slices.Clone(ask)
	for k := range 50 {
		f := said(slices.Clone(prompt), cat(100+k, stop))
		flats = append(flats, f)
		_, err := b.add(f.turn())
		require.NoError(t, err)
		prompt = append(prompt, cat(f.output, more)...)
	}
	held := 0
	for _, n := range b.trie.nodes {
		held += len(n.ids)
	}
	require.Equal(t, len(flats[49].full()), held)
	res, err := b.finish()
	require.NoError(t, err)
	checkInvariants(t, flats, res)
	require.Len(t, res.Rows, 1)
}

// A windowed prompt's repetition is found even if all replies end with the same words (a closing
// fence, a call's end).
func TestRewriteAmongRepliesThatEndAlike(t *testing.T) {
	var flats []flat
	prompt := ask
	for k := range 12 {
		said := said(prompt, cat(100+k, 200+k, 10, 11, 12, 13, stop))
		flats = append(flats, said)
		prompt = cat(prompt, said.output, more)
	}
	last := flats[11]
	note := cat(ask[:3], 300, 301, 302, 303, 304, 305, stop, open, model)
	cut := cat(note, last.output, more)
	require.Equal(t, breakRewrite, merged(t, Options{}, append(flats, said(cut, answer))...).Rows[1].Break)
	other := cat(note, cat(100, 200, 10, 11, 12, 14, stop), more)
	require.Equal(t, breakRoot, merged(t, Options{}, append(flats, said(other, answer))...).Rows[1].Break, "no turn said that")
}
