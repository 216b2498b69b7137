package tokenize_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

var markPattern = regexp.MustCompile(`QZ\d+QZ`)

// markTexts puts a mark of its message into each non-empty text, and removes what templates parse
// in texts.
func markTexts(r *rollout.Rollout) {
	clean := strings.NewReplacer("<|im_end|>", "", "<think>", "", "</think>", "")
	for i := range r.Messages {
		m := &r.Messages[i]
		mark := fmt.Sprintf("QZ%dQZ", i)
		for _, text := range []*string{&m.Content, &m.Reasoning} {
			if *text = clean.Replace(*text); *text != "" {
				*text += mark
			}
		}
		for k := range m.ToolCalls {
			args := &m.ToolCalls[k].Arguments
			*args = strings.Replace(clean.Replace(*args), `"command": "`, `"command": "`+mark, 1)
		}
	}
}

// With any template and conversation, a turn trains only text of its own message, all of it except
// reported losses, in its own context, once, and nothing after a stop.
func TestTurnsTrainTheirOwnMessages(t *testing.T) {
	kit.OneGoroutine(t)
	const seed = 71
	models := templateModels(t)
	checked := map[tokenize.Mode]int{}
	for k, name := range slices.Sorted(maps.Keys(models)) {
		m := models[name]
		rng := rand.New(rand.NewPCG(seed, uint64(k)))
		for n := range 8 {
			r := randomRollout(rng, n%3 > 0)
			markTexts(r)
			if n%4 == 0 {
				window(rng, r)
			}
			for i := range r.Turns {
				if rng.IntN(6) == 0 {
					r.Turns[i].FinishReason = "length"
				}
			}
			for _, mode := range []tokenize.Mode{tokenize.PerStep, tokenize.Merged, tokenize.Whole} {
				enc, err := tokenize.NewEncoder(m, tokenize.Options{Mode: mode})
				require.NoError(t, err)
				seqs, report, err := enc.Encode(t.Context(), r)
				if err != nil {
					require.ErrorIs(t, err, rollout.KindTemplate)
					continue
				}
				note := fmt.Sprintf("%s, seed %d, rollout %d, %s", name, seed, n, mode)
				for _, s := range seqs {
					for i, turn := range s.Turn {
						if turn >= 0 && m.IsStop(s.IDs[i]) {
							require.True(t, i+1 == s.Len() || s.Turn[i+1] != turn, "%s: turn %d goes on behind a stop", note, turn)
						}
					}
				}
				trained := byTurn(t, m, seqs)
				require.Len(t, r.Turns, len(trained)+report.EmptyTurns, note)
				for i, turn := range r.Turns {
					msg := &r.Messages[turn.Message]
					own := fmt.Sprintf("QZ%dQZ", turn.Message)
					marks := markPattern.FindAllString(trained[int32(i)], -1)
					for _, mark := range marks {
						require.Equal(t, own, mark, "%s: turn %d trains %q", note, i, trained[int32(i)])
					}
					want := strings.Count(msg.Content+msg.Reasoning, own)
					for _, c := range msg.ToolCalls {
						want += strings.Count(c.Arguments, own)
					}
					complete := report.LostContent+report.LostReasoning+report.LostCalls == 0
					if mode != tokenize.Whole && complete {
						require.Len(t, marks, want, "%s: turn %d trains %q", note, i, trained[int32(i)])
					}
					checked[mode]++
				}
			}
		}
	}
	for mode, n := range checked {
		require.Greater(t, n, 1000, mode)
	}
}

// Merged rows give a context the sources that the rows of its turns give it, also where it repeats
// what an earlier turn sampled.
func TestMergedContextsHaveTheOriginOfTheirPrompts(t *testing.T) {
	kit.OneGoroutine(t)
	models := templateModels(t)
	replayed := 0
	for k, name := range slices.Sorted(maps.Keys(models)) {
		r := randomRollout(rand.New(rand.NewPCG(72, uint64(k))), k%3 > 0)
		alone, fault := rows(t, models[name], tokenize.Options{Mode: tokenize.PerStep}, r)
		if fault != "" {
			continue
		}
		merged, _ := rows(t, models[name], tokenize.Options{}, r)
		of := map[int32]*rollout.Sequence{}
		for i := range alone {
			of[alone[i].Turn[alone[i].Len()-1]] = &alone[i]
		}
		for _, row := range merged {
			for i := range row.Len() - 1 {
				turn := row.Turn[i+1]
				if turn < 0 || row.Turn[i] == turn {
					continue
				}
				for at, was := range row.Turn[:i+1] {
					if was < 0 {
						require.Equal(t, of[turn].Source[at], row.Source[at], "%s turn %d token %d", name, turn, at)
						require.Equal(t, of[turn].Flags[at], row.Flags[at], "%s turn %d token %d", name, turn, at)
						replayed++
					}
				}
			}
		}
	}
	require.Greater(t, replayed, 1000)
}
