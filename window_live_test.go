package turnpack_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// TestLiveWindowIsPlanned: a live rollout, counted by the encoder's own counter, sees at each call
// what a plan of the finished rollout says, and what a Fit of its messages alone gives.
func TestLiveWindowIsPlanned(t *testing.T) {
	kit.OneGoroutine(t)
	summary := func(_ context.Context, omitted []rollout.Message) (rollout.Message, error) {
		return rollout.Message{Role: rollout.RoleUser, Content: fmt.Sprint("Done so far: ", len(omitted))}, nil
	}
	enc, err := tokenize.NewEncoder(qwen3(t), tokenize.Options{Mode: tokenize.PerStep})
	require.NoError(t, err)
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 21))
		whole := oddRollout(rng, 10+rng.IntN(25))
		budget := 300 + rng.IntN(600)
		for _, policy := range []ctxwindow.Policy{
			ctxwindow.HeadTail{Budget: budget}, ctxwindow.Tail{Budget: budget}, ctxwindow.Refill{Budget: budget},
			ctxwindow.Compaction{Budget: budget, Summarize: summary}, ctxwindow.SWERL(budget), ctxwindow.None{},
		} {
			where := fmt.Sprintf("seed %d, %#v", seed, policy)
			want, report, failure := ctxwindow.Plan(t.Context(), whole, policy, enc.Counter(whole))
			r := *whole
			r.Messages = nil
			counter := enc.Counter(&r)
			s, err := ctxwindow.NewSession(policy, counter)
			require.NoError(t, err)
			alone := enc.Counter(&r) // for Fit on the live rollout
			for k, turn := range rollout.TurnsOf(whole) {
				for len(r.Messages) < turn.Message {
					m := whole.Messages[len(r.Messages)]
					r.Messages = append(r.Messages, m)
					s.Append(m)
				}
				got, err := s.Fit(t.Context())
				if failure != nil && err != nil {
					require.ErrorIs(t, failure, rollout.KindLimit, where)
					require.ErrorIs(t, err, rollout.KindLimit, where)
					break
				}
				require.NoError(t, err, where)
				if failure == nil {
					require.Equal(t, want[k], got.Context, "%s, turn %d", where, k)
				}
				fitted, err := ctxwindow.Fit(t.Context(), r.Messages, policy, alone)
				require.NoError(t, err, where)
				fresh, err := ctxwindow.Fit(t.Context(), r.Messages, policy, ctxwindow.CounterFunc(func(ctx context.Context, ms []rollout.Message) (int, error) {
					return enc.Counter(whole).Count(ctx, ms)
				}))
				require.NoError(t, err, where)
				require.Equal(t, fresh, fitted, "%s, turn %d", where, k)
			}
			if failure == nil {
				live := s.Report()
				require.Equal(t, report.Rows, live.Rows, where)
				require.Equal(t, report.MaxTokens, live.MaxTokens, where)
			}
		}
	}
}

// TestLiveRefillMakesFewRows: 200 live calls make as few rows as a plan, not one each.
func TestLiveRefillMakesFewRows(t *testing.T) {
	m := model(t)
	enc, err := tokenize.NewEncoder(m, tokenize.Options{})
	require.NoError(t, err)
	r := &rollout.Rollout{ID: "live", Group: "g", Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "Fix it."}}}
	s, err := ctxwindow.NewSession(ctxwindow.Refill{Budget: 2000}, enc.Counter(r))
	require.NoError(t, err)
	s.Append(r.Messages...)
	for k := range 200 {
		shown, err := s.Fit(t.Context())
		require.NoError(t, err)
		require.LessOrEqual(t, shown.Tokens, 2000)
		r.Turns = append(r.Turns, rollout.Turn{Message: len(r.Messages), Step: k, Context: shown.Context})
		more := []rollout.Message{{Role: rollout.RoleAssistant, Content: fmt.Sprint("cat ", k), Sampled: rollout.SampledByPolicy},
			{Role: rollout.RoleUser, Content: strings.Repeat(fmt.Sprint("line ", k, " "), 20)}}
		r.Messages = append(r.Messages, more...)
		s.Append(more...)
	}
	var dst rows
	report, err := turnpack.Pipeline{Model: m, NoAdvantages: true}.Run(t.Context(), turnpack.Slice{r}, &dst)
	require.NoError(t, err)
	require.Len(t, dst.got, s.Report().Rows, "%+v", report.Encode)
	require.Less(t, len(dst.got), 30)
	require.Greater(t, len(dst.got), 3)
}

// oneCall is a user's own policy in a pipeline: it shows the task and the last call.
type oneCall struct{}

func (oneCall) Validate() error { return nil }

func (oneCall) Start(h *ctxwindow.History) ctxwindow.Strategy { return oneCallOf{h} }

type oneCallOf struct{ h *ctxwindow.History }

func (s oneCallOf) View(_ context.Context, n int) (ctxwindow.View, error) {
	ms := s.h.Messages()
	for k := len(ms) - 1; k > 1; k-- {
		if ms[k].Role == rollout.RoleAssistant {
			return ctxwindow.View{Parts: []rollout.ContextPart{{To: 1}, {From: k, To: n}}, Omitted: 1}, nil
		}
	}
	return ctxwindow.View{}, nil
}

func TestOwnWindowInPipeline(t *testing.T) {
	var plain, cut rows
	_, err := turnpack.Pipeline{Model: model(t)}.Run(t.Context(), long(), &plain)
	require.NoError(t, err)
	_, err = turnpack.Pipeline{Model: model(t), Window: oneCall{}}.Run(t.Context(), long(), &cut)
	require.NoError(t, err)
	require.Greater(t, len(cut.got), 4*len(plain.got))
}
