package ctxwindow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

func plan(t testing.TB, r *rollout.Rollout, p Policy, c Counter) ([]rollout.Context, Report) {
	t.Helper()
	contexts, rep, err := Plan(context.Background(), r, p, c)
	require.NoError(t, err)
	require.Len(t, contexts, len(rollout.TurnsOf(r)))
	return contexts, rep
}

func summarizer(_ context.Context, omitted []rollout.Message) (rollout.Message, error) {
	return rollout.Message{Role: rollout.RoleUser, Content: fmt.Sprintf("summary of %d messages, the first by %s", len(omitted), omitted[0].Role)}, nil
}

func safePolicies(budget int) []Policy {
	return []Policy{
		HeadTail{Budget: budget}, HeadTail{Budget: budget, Head: -1}, HeadTail{Budget: budget, Head: 0.9, Fixed: 1},
		Tail{Budget: budget}, Refill{Budget: budget}, Refill{Budget: budget, Target: 0.3, Fixed: 3},
		Compaction{Budget: budget, Summarize: summarizer},
	}
}

func TestPromisesOnGeneratedRollouts(t *testing.T) {
	rounds := uint64(60)
	if testing.Short() {
		rounds = 10
	}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(seed, 5))
		r := agent(rng, 1+rng.IntN(25), func(int) int {
			if rng.IntN(9) == 0 {
				return 200 // one observation larger than most budgets
			}
			return rng.IntN(30)
		})
		if rng.IntN(2) == 0 {
			r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleExit, Content: "done"})
		}
		budget := 100 + rng.IntN(400)
		for _, policy := range safePolicies(budget) {
			for _, c := range []Counter{&words{}, &chars{}, &stripping{}} {
				contexts, rep, err := Plan(context.Background(), r, policy, c)
				require.NoError(t, err, "seed %d %s", seed, name(policy))
				checkPromises(t, r, contexts, budget, c)
				require.LessOrEqual(t, rep.MaxTokens, budget)
				require.Zero(t, rep.OverBudget+rep.LostLatest)
			}
		}
	}
}

// TestPlanIsFit: a turn sees what a single call with the same messages would see, also if the plain
// history fits again.
func TestPlanIsFit(t *testing.T) {
	again := 0
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 6))
		r := agent(rng, 12, func(int) int { return rng.IntN(12) })
		for k := range r.Messages {
			if r.Messages[k].Role == rollout.RoleAssistant && rng.IntN(4) == 0 {
				r.Messages[k].Reasoning = strings.Repeat("hm ", rng.IntN(400))
			}
		}
		budget := 150 + rng.IntN(300)
		for _, policy := range []Policy{HeadTail{Budget: budget}, Tail{Budget: budget, Fixed: 1}, SWERL(budget)} {
			contexts, _ := plan(t, r, policy, &stripping{})
			for k, turn := range rollout.TurnsOf(r) {
				fitted, err := Fit(t.Context(), r.Messages[:turn.Message], policy, &stripping{})
				require.NoError(t, err)
				require.Equal(t, fitted.Context, contexts[k], "seed %d, %s, turn %d", seed, name(policy), k)
				if k > 0 && contexts[k].Parts == nil && contexts[k-1].Parts != nil {
					again++
				}
			}
		}
	}
	require.Positive(t, again)
}

// A cut leaves no more than the target, also if turns cost more together than one by one. Nothing is
// counted before there are messages: templates may reject an empty list.
func TestCutsAreMeasured(t *testing.T) {
	crowded := CounterFunc(func(_ context.Context, ms []rollout.Message) (int, error) {
		if len(ms) == 0 {
			return 0, errors.New("no messages")
		}
		return 20*len(ms) + len(ms)*len(ms)/4, nil
	})
	r := agent(rand.New(rand.NewPCG(1, 1)), 40, func(int) int { return 1 })
	for n := 4; n < len(r.Messages); n++ {
		f, err := Fit(t.Context(), r.Messages[:n], Refill{Budget: 1000}, crowded)
		require.NoError(t, err)
		if f.Context.Parts != nil {
			require.LessOrEqual(t, f.Tokens, 600)
			require.Greater(t, f.Tokens, 400, "and no more turns go than must")
			require.Zero(t, f.Shortened)
		}
	}
	for _, policy := range append(safePolicies(10), SWERL(10)) {
		f, err := Fit(t.Context(), nil, policy, crowded)
		require.NoError(t, err)
		require.Empty(t, f.Messages)
	}
}

// A summary that does not fit is shortened like any message.
func TestALongSummaryIsShortened(t *testing.T) {
	long := func(context.Context, []rollout.Message) (rollout.Message, error) {
		return rollout.Message{Role: rollout.RoleSystem, Content: "So far" + strings.Repeat(" and on", 1000) + " it went."}, nil
	}
	r := agent(rand.New(rand.NewPCG(2, 2)), 20, func(int) int { return 5 })
	f, err := Fit(t.Context(), r.Messages, Compaction{Budget: 300, Summarize: long}, &chars{})
	require.NoError(t, err)
	require.LessOrEqual(t, f.Tokens, 300)
	require.Greater(t, f.Tokens, 280)
	require.Equal(t, r.Messages[:2], f.Messages[:2])
	require.Equal(t, rollout.RoleSystem, f.Messages[2].Role)
	require.Regexp(t, `^So far[ a-z]*\n\[\d+ characters left out\]\n[ a-z]* it went\.$`, f.Messages[2].Content)
}

// twoHundredSteps is a rollout of 200 steps in a window that holds about 33.
func twoHundredSteps() (*rollout.Rollout, int) {
	rng := rand.New(rand.NewPCG(204, 1))
	return agent(rng, 200, func(int) int { return 20 + rng.IntN(60) }), 4500
}

func TestRefillMakesFewRows(t *testing.T) {
	r, budget := twoHundredSteps()
	_, window := plan(t, r, HeadTail{Budget: budget}, &words{})
	_, fill := plan(t, r, Refill{Budget: budget}, &words{})
	_, reference := plan(t, r, SWERL(budget), &words{})
	require.Equal(t, 150, reference.Rows)
	require.Equal(t, 145, window.Rows)
	require.Equal(t, 12, fill.Rows)
}

func TestCounterCallsAreLinear(t *testing.T) {
	shown := map[string]int{} // messages shown to a counter whose counts do not add up, for half the steps
	for _, steps := range []int{50, 100, 200, 400} {
		r := agent(rand.New(rand.NewPCG(1, 1)), steps, func(k int) int { return 20 + k%40 })
		for _, policy := range append(safePolicies(3000), SWERL(3000)) {
			sums := &words{}
			_, rep := plan(t, r, policy, sums)
			require.Equal(t, sums.calls, rep.Calls)
			require.LessOrEqual(t, rep.Calls, 3*len(r.Messages), "%s at %d steps", name(policy), steps)
			plain := &chars{}
			_, rep = plan(t, r, policy, plain)
			require.Equal(t, plain.calls, rep.Calls)
			require.LessOrEqual(t, rep.Calls, 3*len(r.Messages), "%s at %d steps", name(policy), steps)
			key := fmt.Sprintf("%#v", policy)
			switch policy.(type) {
			case HeadTail, Tail: // and the plain history at each turn, since it may fit again
				require.LessOrEqual(t, rep.Calls, 3*steps+10, "%s at %d steps: a turn, the history and what is shown", key, steps)
				for _, turn := range rollout.TurnsOf(r) {
					plain.messages -= turn.Message
				}
			case Compaction, SWERLPolicy:
				continue
			}
			if before := shown[key]; steps > 100 {
				require.LessOrEqual(t, plain.messages, 3*before, "%s at %d steps: no call looks at the whole history", name(policy), steps)
			}
			shown[key] = plain.messages
		}
	}
}

func TestNoneAndFittingRolloutsKeepThePlainHistory(t *testing.T) {
	r := agent(rand.New(rand.NewPCG(2, 2)), 10, func(int) int { return 5 })
	for _, policy := range append(safePolicies(1<<20), None{}, SWERL(1<<20)) {
		contexts, rep := plan(t, r, policy, &chars{})
		require.Equal(t, make([]rollout.Context, 10), contexts, name(policy))
		require.Equal(t, 1, rep.Rows)
		require.Zero(t, rep.Windowed)
	}
}

func TestHeadTailShape(t *testing.T) {
	r := agent(rand.New(rand.NewPCG(4, 4)), 12, func(int) int { return 10 })
	contexts, rep := plan(t, r, HeadTail{Budget: 260}, &words{})
	last := contexts[11]
	require.Len(t, last.Parts, 3)
	head, noted, tail := last.Parts[0], last.Parts[1], last.Parts[2]
	require.Equal(t, 0, head.From)
	require.Greater(t, head.To, 2, "the head holds more than the fixed messages")
	require.Equal(t, []int{head.To, head.To + 1}, []int{noted.From, noted.To})
	before := r.Messages[noted.From]
	require.Equal(t, before.Role, noted.Message.Role)
	omitted := 0
	for _, m := range r.Messages[noted.To:tail.From] {
		if m.Role == rollout.RoleAssistant {
			omitted++
		}
	}
	require.Equal(t, fmt.Sprintf("%s\n\n[%d earlier turns left out to fit the context window]", before.Content, omitted), noted.Message.Content)
	require.Positive(t, rep.Windowed)

	own := func(int) rollout.Message { return rollout.Message{Role: rollout.RoleSystem, Content: "cut"} }
	contexts, _ = plan(t, r, Tail{Budget: 150, Note: own}, &words{})
	require.Equal(t, 2, contexts[11].Parts[0].To)
	require.Equal(t, "cut", contexts[11].Parts[1].Message.Content)
}

// The parity policy's note is a second user message after the first (TestNoteUnderAlternatingRoles
// at the module root shows a template that rejects it); no other policy makes one.
func TestNotesKeepTheOrderOfRoles(t *testing.T) {
	answers := func(m rollout.Message) bool { return m.Role == rollout.RoleUser || m.Role == rollout.RoleTool }
	doubled := func(policy Policy, r *rollout.Rollout) (n int) {
		contexts, _ := plan(t, r, policy, &chars{})
		for k, turn := range rollout.TurnsOf(r) {
			view := shown(r, contexts[k], turn.Message)
			for i := 1; i < len(view); i++ {
				if answers(view[i-1]) && view[i].Role == rollout.RoleUser {
					n++
				}
			}
		}
		return n
	}
	preset := 0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		r := agent(rng, 12, func(int) int { return rng.IntN(40) })
		preset += doubled(SWERL(260), r)
		for _, policy := range safePolicies(260) {
			require.Zero(t, doubled(policy, r), "seed %d %#v", seed, policy)
		}
	}
	require.Positive(t, preset)
}

func TestLatestTurnIsShortenedInTheMiddle(t *testing.T) {
	r := agent(rand.New(rand.NewPCG(4, 4)), 3, func(int) int { return 5 })
	first := strings.Repeat("é", 400) + "BEGIN"
	r.Messages[5].Content = first + strings.Repeat(" filler 日本", 500) + "END " + strings.Repeat("z", 400)
	contexts, rep := plan(t, r, HeadTail{Budget: 300}, &chars{})
	require.Equal(t, 1, rep.Shortened)
	ms := shown(r, contexts[2], rollout.TurnsOf(r)[2].Message)
	got := ms[len(ms)-1].Content
	require.True(t, strings.HasPrefix(got, "ééé") && strings.HasSuffix(got, "zzz"), got)
	require.Contains(t, got, "characters left out]")
	n, err := (&chars{}).Count(context.Background(), ms)
	require.NoError(t, err)
	require.Greater(t, n, 290, "no more is cut than must be")
	require.Equal(t, first, r.Messages[5].Content[:len(first)], "the rollout is not edited")
}

func TestLargeTaskIsShortenedLast(t *testing.T) {
	r := agent(rand.New(rand.NewPCG(4, 4)), 2, func(int) int { return 5 })
	r.Messages[1].Content = strings.Repeat("task ", 1000)
	contexts, rep := plan(t, r, HeadTail{Budget: 200}, &chars{})
	checkPromises(t, r, contexts, 200, &chars{})
	require.Positive(t, rep.Shortened)

	_, _, err := Plan(context.Background(), r, HeadTail{Budget: 5}, &chars{})
	require.ErrorIs(t, err, rollout.KindLimit)
	var e *rollout.Error
	require.True(t, errors.As(err, &e))
	require.Equal(t, rollout.Where{Rollout: "r", Turn: rollout.At(0)}, e.Where)
}

// If the task alone nearly fills the budget, an observation is shown without content: the model
// sees only that there was one.
func TestEmptiedMessagesAreCounted(t *testing.T) {
	r := agent(rand.New(rand.NewPCG(4, 4)), 2, func(int) int { return 5 })
	r.Messages[3].Content = strings.Repeat("observation ", 200)
	_, rep := plan(t, r, HeadTail{Budget: 300}, &chars{})
	require.Positive(t, rep.Shortened)
	require.Zero(t, rep.Emptied, "a part of it is left")
	r.Messages[1].Content = strings.Repeat("task ", 1000)
	contexts, rep := plan(t, r, HeadTail{Budget: 300}, &chars{})
	require.Positive(t, rep.Emptied)
	ms := shown(r, contexts[1], rollout.TurnsOf(r)[1].Message)
	require.Regexp(t, `^\n\[\d+ characters left out\]\n$`, ms[len(ms)-1].Content)
	total := Report{}
	total.Add(rep)
	total.Add(rep)
	require.Equal(t, 2*rep.Emptied, total.Emptied)
}

func TestImagesAreNotCut(t *testing.T) {
	ms := []rollout.Message{{Role: rollout.RoleUser, Content: strings.Repeat("x", 400), Parts: []rollout.Part{{Type: "text"}, {Type: "image"}}}}
	_, err := Fit(context.Background(), ms, HeadTail{Budget: 50}, &chars{})
	require.ErrorIs(t, err, rollout.KindLimit)
}

func TestRefillAppendsBetweenCuts(t *testing.T) {
	r, budget := twoHundredSteps()
	for _, policy := range []Policy{Refill{Budget: budget}, Compaction{Budget: budget, Summarize: summarizer}} {
		contexts, rep := plan(t, r, policy, &words{})
		turns := rollout.TurnsOf(r)
		cuts := 0
		for k := 1; k < len(turns); k++ {
			before, now := shown(r, contexts[k-1], turns[k-1].Message), shown(r, contexts[k], turns[k].Message)
			if len(now) > len(before) && fmt.Sprint(now[:len(before)]) == fmt.Sprint(before) {
				require.Equal(t, r.Messages[turns[k-1].Message:turns[k].Message], now[len(before):], "turn %d goes on with what followed", k)
				continue
			}
			cuts++
			n, err := (&words{}).Count(context.Background(), now)
			require.NoError(t, err)
			require.LessOrEqual(t, n, budget*6/10, "turn %d: a cut goes deep", k)
		}
		require.Equal(t, cuts+1, rep.Rows, name(policy))
	}
}

func TestCompactionCarriesTheSummaryOn(t *testing.T) {
	r, budget := twoHundredSteps()
	var asked [][]rollout.Message
	policy := Compaction{Budget: budget, Summarize: func(ctx context.Context, omitted []rollout.Message) (rollout.Message, error) {
		asked = append(asked, append([]rollout.Message(nil), omitted...))
		return summarizer(ctx, omitted)
	}}
	plan(t, r, policy, &words{})
	require.Greater(t, len(asked), 2)
	require.Equal(t, r.Messages[2], asked[0][0], "the first summary begins after the task")
	next := 2
	for k, ms := range asked {
		if k > 0 {
			require.True(t, strings.HasPrefix(ms[0].Content, "summary of"), "summary %d begins with the one before", k)
			ms = ms[1:]
		}
		require.Equal(t, r.Messages[next:next+len(ms)], ms, "each message is summarized once")
		next += len(ms)
	}
	_, _, err := Plan(context.Background(), r, Compaction{Budget: budget, Summarize: func(context.Context, []rollout.Message) (rollout.Message, error) {
		return rollout.Message{}, errors.New("no answer")
	}}, &words{})
	require.ErrorContains(t, err, "no answer")
	require.ErrorIs(t, err, rollout.KindInput)
}

func TestRecordedContextsAreKept(t *testing.T) {
	r := agent(rand.New(rand.NewPCG(4, 4)), 6, func(int) int { return 30 })
	turns := append([]rollout.Turn(nil), rollout.TurnsOf(r)...)
	seen := rollout.Context{Parts: []rollout.ContextPart{{From: 1, To: 3}}}
	turns[4].Context = seen
	turns[5].Message, turns[5].Context = -1, rollout.Context{Unknown: true}
	r.Turns = turns
	contexts, rep := plan(t, r, HeadTail{Budget: 100}, &chars{})
	require.Equal(t, seen, contexts[4])
	require.True(t, contexts[5].Unknown)
	require.Equal(t, 2, rep.Recorded)
	require.NotNil(t, contexts[3].Parts)

	turns[3].Prompt = rollout.PromptIDs{Add: []rollout.TokenID{1, 2}}
	contexts, rep = plan(t, r, HeadTail{Budget: 100}, &chars{})
	require.Nil(t, contexts[3].Parts, "recorded ids say what the model saw")
	require.Equal(t, 3, rep.Recorded)
	for i := range turns {
		turns[i].Prompt = turns[3].Prompt
	}
	_, rep = plan(t, r, HeadTail{Budget: 1}, &chars{})
	require.Equal(t, 6, rep.Recorded, "nothing has to fit where nothing is planned")
	for i := range turns {
		turns[i].Prompt = rollout.PromptIDs{}
	}
	contexts, _ = plan(t, r, HeadTail{Budget: 100}, &chars{})

	applied, err := Apply(r, contexts)
	require.NoError(t, err)
	require.Equal(t, contexts[3], applied.Turns[3].Context)
	require.Nil(t, r.Turns[3].Context.Parts, "the rollout is not edited")
	_, err = Apply(r, contexts[1:])
	require.ErrorIs(t, err, rollout.KindInput)
}

func TestRowsCountRealBreaks(t *testing.T) {
	part := func(from, to int) rollout.ContextPart { return rollout.ContextPart{From: from, To: to} }
	note := func(s string) rollout.ContextPart {
		return rollout.ContextPart{From: 2, To: 2, Message: &rollout.Message{Content: s}}
	}
	parts := func(p ...rollout.ContextPart) rollout.Context { return rollout.Context{Parts: p} }
	for _, tc := range []struct {
		name string
		a    rollout.Context
		am   int
		b    rollout.Context
		bm   int
		want bool
	}{
		{"plain", rollout.Context{}, 2, rollout.Context{}, 4, true},
		{"back", rollout.Context{}, 4, rollout.Context{}, 2, false},
		{"plain spelled out", rollout.Context{}, 2, parts(part(0, 1), part(1, 4)), 4, true},
		{"window moves", parts(part(0, 2), note("x"), part(4, 6)), 6, parts(part(0, 2), note("x"), part(6, 8)), 8, false},
		{"window grows", parts(part(0, 2), note("x"), part(4, 6)), 6, parts(part(0, 2), note("x"), part(4, 8)), 8, true},
		{"note changes", parts(part(0, 2), note("x"), part(4, 6)), 6, parts(part(0, 2), note("y"), part(4, 8)), 8, false},
		{"own message missing", rollout.Context{}, 2, parts(part(0, 2), part(3, 4)), 4, false},
		{"unknown", rollout.Context{Unknown: true}, 2, rollout.Context{}, 4, false},
	} {
		require.Equal(t, tc.want, extends(tc.a, tc.am, tc.b, tc.bm), tc.name)
	}
}

func TestFaults(t *testing.T) {
	r := agent(rand.New(rand.NewPCG(4, 4)), 2, func(int) int { return 5 })
	for name, p := range map[string]Policy{
		"budget":     HeadTail{},
		"share":      HeadTail{Budget: 1, Head: 1.5},
		"fixed":      Tail{Budget: 1, Fixed: -1},
		"target":     Refill{Budget: 1, Target: 2},
		"summarizer": Compaction{Budget: 1},
		"head":       SWERLPolicy{Budget: 1, Head: -0.1},
		"no policy":  nil,
	} {
		_, _, err := Plan(context.Background(), r, p, &chars{})
		require.ErrorIs(t, err, rollout.KindInput, name)
	}
	err := HeadTail{Head: 2, Fixed: -1}.Validate()
	for _, field := range []string{"Budget", "Head", "Fixed"} {
		require.ErrorContains(t, err, field, "all faults at once")
	}

	broken := CounterFunc(func(context.Context, []rollout.Message) (int, error) { return 0, errors.New("out of order") })
	_, _, err = Plan(context.Background(), r, HeadTail{Budget: 10}, broken)
	require.ErrorIs(t, err, rollout.KindTokenizer)
	require.ErrorContains(t, err, "out of order")

	r.Turns = []rollout.Turn{{Message: 99}}
	_, _, err = Plan(context.Background(), r, None{}, &chars{})
	require.ErrorIs(t, err, rollout.KindInput)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, err = Plan(ctx, agent(rand.New(rand.NewPCG(4, 4)), 2, func(int) int { return 5 }), None{}, &chars{})
	require.ErrorIs(t, err, context.Canceled)
}

// FuzzPlan plans arbitrary conversations: roles by byte, contents cut from text
// that need not be valid UTF-8.
func FuzzPlan(f *testing.F) {
	f.Add([]byte{0, 1, 2, 1, 2, 3, 2, 1}, "some text é日本 that is cut", uint16(40), uint8(0))
	f.Add([]byte{2, 2, 2, 4}, "\xff\xfe", uint16(9), uint8(3))
	f.Fuzz(func(t *testing.T, roles []byte, text string, budget uint16, which uint8) {
		names := []rollout.Role{rollout.RoleSystem, rollout.RoleUser, rollout.RoleAssistant, rollout.RoleTool, rollout.RoleExit}
		r := &rollout.Rollout{ID: "f"}
		for k, b := range roles[:min(len(roles), 40)] {
			m := rollout.Message{Role: names[int(b)%len(names)], Content: text[:min(len(text), k*int(b))]}
			if m.Role == rollout.RoleAssistant {
				m.Sampled = rollout.SampledByPolicy
			}
			r.Messages = append(r.Messages, m)
		}
		limit := 1 + int(budget%500)
		policies := append(safePolicies(limit), SWERL(limit), None{})
		policy := policies[int(which)%len(policies)]
		c := &chars{}
		contexts, rep, err := Plan(context.Background(), r, policy, c)
		if err != nil {
			require.ErrorIs(t, err, rollout.KindLimit)
			return
		}
		for k, turn := range rollout.TurnsOf(r) {
			view := shown(r, contexts[k], turn.Message)
			n, err := c.Count(context.Background(), view)
			require.NoError(t, err)
			// Without history there is nothing to cut.
			if int(which)%len(policies) < len(policies)-2 && len(view) > 0 {
				require.LessOrEqual(t, n, limit, "turn %d of %s", k, name(policy))
			}
		}
		require.LessOrEqual(t, rep.Rows, rep.Turns)
	})
}

func name(p Policy) string { return fmt.Sprintf("%T", p) }
