package turnpack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize/embedded"
)

// told counts what a source yields.
type told struct {
	*traj.Source
	n int
}

func (s *told) Rollouts(ctx context.Context) iter.Seq2[*rollout.Rollout, error] {
	return s.counted(s.Source.Rollouts(ctx))
}

func (s *told) RolloutsBut(ctx context.Context, memory []byte, past func(string) bool) iter.Seq2[*rollout.Rollout, error] {
	return s.counted(s.Source.RolloutsBut(ctx, memory, past))
}

func (s *told) counted(all iter.Seq2[*rollout.Rollout, error]) iter.Seq2[*rollout.Rollout, error] {
	return func(yield func(*rollout.Rollout, error) bool) {
		for r, err := range all {
			if err == nil {
				s.n++
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// dumpLines returns records of captured rollouts, with duplicate ids, interleaved groups,
// unreadable records and turns that cannot be trained.
func dumpLines() (lines []string) {
	add := func(record map[string]any) {
		b, _ := json.Marshal(record)
		lines = append(lines, string(b))
	}
	for g := range 8 {
		for i := range 3 {
			turn := map[string]any{"prompt_ids": []int{1, 2, 30 + g}, "output_ids": []int{3, 4 + i, 5}, "logprobs": []float64{-1, -0.5, -0.25}}
			r := map[string]any{"id": fmt.Sprint("r", g, "-", i), "group": fmt.Sprint("g", g), "status": "completed", "temperature": 1,
				"outcome": map[string]any{"resolved": (i+g)%2 == 0}, "turns": []any{turn}}
			switch {
			case g == 2 && i == 0:
				r["id"] = "r0-0" // renamed by the reader
			case g == 3 && i == 1:
				r["status"] = "aborted"
			case g == 4:
				turn["output_ids"], turn["logprobs"] = make([]int, 40), make([]float64, 40)
			case g == 5 && i == 2:
				r["turns"] = []any{turn, map[string]any{"prompt_ids": []int{1, 2, 35, 3, 6, 5, 7}, "output_ids": []int{3, 4}, "logprobs": []float64{-1, -1}, "incomplete": "cut"}}
			}
			add(r)
		}
	}
	lines[4], lines[7] = lines[7], lines[4]
	lines[10], lines[12] = lines[12], lines[10]
	lines = append(lines[:6], append([]string{`{"id": "bad", "turns": 7}`, `{"id": `}, lines[6:]...)...)
	return lines
}

// withoutCauses returns r without the causes of errors, which no file stores.
func withoutCauses(r Report) Report {
	plain := func(in []Skip) (out []Skip) {
		for _, s := range in {
			if s.Error != nil {
				s.Error = rollout.Plain(s.Error)
			}
			out = append(out, s)
		}
		return out
	}
	r.Skips, r.Untrained = plain(r.Skips), plain(r.Untrained)
	if e := r.Encode.FirstIncomplete; e != nil {
		r.Encode.FirstIncomplete = rollout.Plain(e)
	}
	return r
}

// A run resumed after a cut at any row neither scores nor counts again, decodes only records of
// unfinished shards, and gives the bytes and the reports (its own and its source's) of an
// uninterrupted run.
func TestRunGoesOnWithoutReading(t *testing.T) {
	kit.Long(t)
	model, err := embedded.Model()
	require.NoError(t, err)
	folder := t.TempDir()
	in := filepath.Join(folder, "dump.jsonl")
	text := ""
	for _, l := range dumpLines() {
		text += l + "\n"
	}
	require.NoError(t, os.WriteFile(in, []byte(text), 0o600))
	counts, ok := reward.Preset("verl_grpo")
	require.True(t, ok)
	require.True(t, counts.CountsRows())
	for name, p := range map[string]Pipeline{
		"grpo":        {},
		"counts rows": {Estimator: counts},
		"own reward": {Reward: func(r *rollout.Rollout) rollout.Reward {
			return rollout.Reward{Total: float64(len(r.ID)) / 3, Verdict: r.Outcome.Verdict}
		}},
		"no advantages": {NoAdvantages: true},
	} {
		t.Run(name, func(t *testing.T) {
			p.Model, p.Mask, p.Workers, p.againLimit = model, lossmask.Policy{MaxTokens: 20}, 2, -1
			source := func() *told {
				s, err := traj.NewSource([]string{folder}, traj.Options{})
				require.NoError(t, err)
				return &told{Source: s}
			}
			options := shard.Options{GroupsPerShard: 1, Source: "this"}
			dir := t.TempDir()
			set, err := shard.Create(dir, options)
			require.NoError(t, err)
			src := source()
			want, err := p.Run(context.Background(), src, set)
			require.NoError(t, err)
			require.NoError(t, set.Close())
			require.Len(t, want.Skips, 2)
			require.NotEmpty(t, want.Untrained)
			require.NotEmpty(t, want.WithoutRows)
			require.NotEmpty(t, want.Notes)
			all := src.n
			every := 1
			if name != "grpo" || testing.Short() {
				every = 5 // they differ before the first row only
			}
			for cut := 0; cut < want.Rows; cut += every {
				again := t.TempDir()
				set, err := shard.Create(again, options)
				require.NoError(t, err)
				_, err = p.Run(context.Background(), source(), &cutting{set, cut})
				require.Error(t, err)

				set, err = shard.Create(again, options)
				require.NoError(t, err)
				earlier := set.Shards()
				second := p
				if p.Reward != nil {
					second.Reward = func(*rollout.Rollout) rollout.Reward { panic("asked again") }
				}
				sink, rest := &counting{Set: set}, source()
				got, err := second.Run(context.Background(), rest, sink)
				require.NoError(t, err)
				require.NoError(t, set.Close())
				require.Equal(t, withoutCauses(want), withoutCauses(got), "cut after %d rows", cut)
				require.Equal(t, reportText(src), reportText(rest))
				require.Equal(t, file(t, dir, shard.ManifestName), file(t, again, shard.ManifestName))
				done := 0
				for _, s := range earlier {
					done += s.Rollouts
				}
				require.LessOrEqual(t, rest.n, want.Rollouts-max(0, done-1), "read again after %d rows", cut) // the first names the importer
				require.LessOrEqual(t, rest.n, all/2)
				left, err := filepath.Glob(filepath.Join(again, "*.json*"))
				require.NoError(t, err)
				require.Equal(t, []string{filepath.Join(again, shard.ManifestName)}, left)
			}
			// A resumed run with OnErrorStop ends at the first bad record.
			again := t.TempDir()
			set, err = shard.Create(again, options)
			require.NoError(t, err)
			_, err = p.Run(context.Background(), source(), &cutting{set, 1})
			require.Error(t, err)
			set, err = shard.Create(again, options)
			require.NoError(t, err)
			stops := p
			stops.OnError = rollout.OnErrorStop
			_, err = stops.Run(context.Background(), source(), set)
			require.ErrorContains(t, err, "/turns")
			require.False(t, errors.Is(err, export.ErrOtherRun))
		})
	}
}

func reportText(s *told) string {
	r := *s.Report()
	text := fmt.Sprint(r.Errors)
	r.Errors = nil
	b, _ := json.Marshal(r)
	return text + string(b)
}
