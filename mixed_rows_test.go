package turnpack_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// TestMixedRowsKeepTheirPromises: merged rows of rollouts with some recorded turns, some of them
// spelled differently, hold the prompt and completion of every turn as the per-step rows of the
// same rollout do.
func TestMixedRowsKeepTheirPromises(t *testing.T) {
	kit.Long(t)
	const seed = 31
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	joins := map[string]int{}
	for name, m := range map[string]*tokenize.Model{"embedded": model(t), "qwen3": qwen3(t)} {
		for k := range uint64(rounds) {
			rng := rand.New(rand.NewPCG(seed, k))
			r := recorded(t, m, rng, conversation(rng, 2+rng.IntN(8)))
			steps, _ := encoded(t, m, tokenize.Options{Mode: tokenize.PerStep}, r)
			for _, drift := range []lineage.Options{{}, {Drift: "splice"}, {Drift: "realign", MaxDropTokens: 3}, {Drift: "auto"}} {
				where := fmt.Sprintf("%s, seed %d %d, %s", name, seed, k, drift.Drift)
				rows, report := encoded(t, m, tokenize.Options{Drift: drift}, r)
				owned := make([]int, len(steps)) // by turn: its tokens in all rows
				for i := range rows {
					for _, s := range spansOf(&rows[i]) {
						require.Zero(t, owned[s.turn], "%s: turn %d is in two places", where, s.turn)
						owned[s.turn] = s.to - s.from
						requireSpan(t, where, r, &rows[i], s, &steps[s.turn])
					}
				}
				trained, sampled := 0, 0
				for i := range steps {
					own := spansOf(&steps[i])
					require.Len(t, own, 1)
					trained += owned[i]
					sampled += own[0].to - own[0].from
				}
				require.Equal(t, [3]int{sampled, trained, sampled - trained}, [3]int{report.Sampled, report.Trained, report.Dropped}, where)
				if drift.Drift != "realign" && drift.Drift != "auto" {
					require.Zero(t, report.Dropped, where)
				}
				for kind, n := range report.Joins {
					joins[kind] += n
				}
			}
		}
	}
	for _, kind := range []string{"exact", "splice", "realign"} {
		require.Greater(t, joins[kind], rounds/4, "%s joins are made", kind)
	}
}

// span is the range of tokens of one turn that a row trains.
type span struct{ turn, from, to int }

func spansOf(s *rollout.Sequence) (out []span) {
	for i, turn := range s.Turn {
		if n := len(out) - 1; n >= 0 && out[n].turn == int(turn) && out[n].to == i {
			out[n].to++
		} else if turn >= 0 {
			out = append(out, span{int(turn), i, i + 1})
		}
	}
	return out
}

// requireSpan compares a span with the per-step row of its turn.
func requireSpan(t *testing.T, where string, r *rollout.Rollout, row *rollout.Sequence, s span, step *rollout.Sequence) {
	t.Helper()
	own := spansOf(step)[0]
	n := s.to - s.from
	require.LessOrEqual(t, n, own.to-own.from, where)
	require.Equal(t, step.IDs[own.from:own.from+n], row.IDs[s.from:s.to], "%s: turn %d", where, s.turn)
	if lp := r.Turns[s.turn].Logprobs; lp != nil {
		for i := range n {
			require.Equal(t, math.Float32bits(lp[i]), math.Float32bits(row.Logprob[s.from+i]), "%s: turn %d", where, s.turn)
		}
	}
	if !slices.ContainsFunc(row.Flags[:s.from], func(f rollout.Flag) bool { return f&rollout.FlagRepaired != 0 }) {
		require.Equal(t, step.IDs[:own.from], row.IDs[:s.from], "%s: turn %d is trained in the context it saw", where, s.turn)
	}
}

func encoded(t *testing.T, m *tokenize.Model, o tokenize.Options, r *rollout.Rollout) ([]rollout.Sequence, tokenize.Report) {
	t.Helper()
	enc, err := tokenize.NewEncoder(m, o)
	require.NoError(t, err)
	seqs, report, err := enc.Encode(t.Context(), r)
	require.NoError(t, err)
	return seqs, report
}

// recorded gives most turns of r recorded ids; some spell their text letter by letter or end with a
// token that the history lacks.
func recorded(t *testing.T, m *tokenize.Model, rng *rand.Rand, r *rollout.Rollout) *rollout.Rollout {
	steps, _ := encoded(t, m, tokenize.Options{Mode: tokenize.PerStep}, r)
	out := *r
	out.Turns = slices.Clone(rollout.TurnsOf(r))
	for k := range steps {
		own := spansOf(&steps[k])[0]
		ids := slices.Clone(steps[k].IDs[own.from:own.to])
		switch rng.IntN(6) {
		case 0:
			continue // stays text
		case 1, 2:
			ids = append(byLetters(t, m, r.Messages[out.Turns[k].Message].Content), ids[len(ids)-1])
		case 3:
			ids = append(ids[:len(ids)-1], ids[0])
		}
		out.Turns[k].Prompt, out.Turns[k].Output = rollout.PromptIDs{Add: steps[k].IDs[:own.from]}, ids
		for i := range ids {
			out.Turns[k].Logprobs = append(out.Turns[k].Logprobs, -float32(k+1)-float32(i)/64)
		}
	}
	return &out
}

func byLetters(t *testing.T, m *tokenize.Model, text string) (ids []rollout.TokenID) {
	for _, letter := range text {
		var e engine.Encoding
		require.NoError(t, m.Tokenizer.Encode(&e, string(letter), engine.EncodeOptions{}))
		ids = append(ids, e.IDs...)
	}
	return ids
}

func conversation(rng *rand.Rand, steps int) *rollout.Rollout {
	words := strings.Fields("look at the files before editing; tests fail with error 日本 é and retrying helps")
	text := func() string {
		var said []string
		for range 1 + rng.IntN(9) {
			said = append(said, words[rng.IntN(len(words))])
		}
		return strings.Join(said, " ")
	}
	r := &rollout.Rollout{ID: "mixed", Messages: []rollout.Message{{Role: rollout.RoleUser, Content: text()}}}
	for range steps {
		r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleAssistant, Content: text(), Sampled: rollout.SampledByPolicy},
			rollout.Message{Role: rollout.RoleUser, Content: text()})
	}
	return r
}
