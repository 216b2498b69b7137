package lineage

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// linear makes a rollout of n calls that each add grow ids, of which out are
// sampled, as plain prompts in arrays of their own and as compact ones.
func linear(n, first, out, add int) (plain, compact []Turn) {
	var full ids
	for k := range n {
		grown := make(ids, add)
		if k == 0 {
			grown = make(ids, first)
		}
		for x := range grown {
			grown[x] = rollout.TokenID((k*7919 + x*31) % 150000)
		}
		output := make(ids, out)
		for x := range output {
			output[x] = rollout.TokenID((k*104729 + x*17 + 5) % 150000)
		}
		lps := make([]float32, out)
		p := slices.Concat(full, grown)
		plain = append(plain, Turn{Prompt: rollout.PromptIDs{Add: p}, Output: output, Logprobs: lps, Stopped: true})
		c := rollout.PromptIDs{Add: grown}
		if k > 0 {
			c.Base, c.Keep = rollout.At(k-1), len(full)
		}
		compact = append(compact, Turn{Prompt: c, Output: output, Logprobs: lps, Stopped: true})
		full = slices.Concat(p, output)
	}
	return plain, compact
}

// benchText looks texts up, as a vocabulary would.
var benchText = func() func(rollout.TokenID) string {
	table := make([]string, 160000)
	for id := range table {
		table[id] = toyText(rollout.TokenID(id))
	}
	return func(id rollout.TokenID) string { return table[id] }
}()

func total(turns []Turn) int {
	n := 0
	for _, t := range turns {
		n += len(t.Prompt.Add)
	}
	return n
}

func BenchmarkMerge(b *testing.B) {
	for _, n := range []int{20, 200, 1000} {
		plain, compact := linear(n, 1600, 150, 310)
		for name, turns := range map[string][]Turn{"plain": plain, "compact": compact} {
			b.Run(fmt.Sprintf("linear/turns=%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					res, err := Merge(turns, Options{})
					require.NoError(b, err)
					require.Len(b, res.Rows, 1)
				}
				b.ReportMetric(float64(total(turns))/1e6, "Mids")
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "us/turn")
			})
		}
	}
}

// BenchmarkMergeShapes holds the shapes in which a tree over recorded ids could
// turn quadratic: every call a retry, a branch, a new header, a drift.
func BenchmarkMergeShapes(b *testing.B) {
	shapes := map[string]func(n int) []Turn{
		"interleaved": func(n int) []Turn {
			_, x := linear(n/2, 1000, 100, 200)
			_, y := linear(n/2, 1001, 100, 200)
			var out []Turn
			for k := range x {
				for _, t := range []Turn{x[k], y[k]} {
					if base, ok := t.Prompt.Base.Get(); ok {
						t.Prompt.Base = rollout.At(2*base + len(out)%2)
					}
					out = append(out, t)
				}
			}
			return out
		},
		"retries": func(n int) []Turn {
			_, turns := linear(n, 1000, 100, 200)
			for k := range turns[1:] {
				turns[k+1].Prompt = turns[1].Prompt
			}
			return turns
		},
		"branches": func(n int) []Turn { // each call keeps half of the one before it
			_, turns := linear(n, 1000, 100, 200)
			for k := range turns[1:] {
				turns[k+1].Prompt.Keep = min(turns[k+1].Prompt.Keep, 600+k)
			}
			return turns
		},
		"drift": func(n int) []Turn { // each prompt respells the response before it
			_, turns := linear(n, 1000, 100, 200)
			for k := range turns {
				turns[k].Output[50] = whole(k)
			}
			keep := 1000
			for k := range turns[1:] {
				spelled := slices.Concat(turns[k].Output[:50], halves(k), turns[k].Output[51:], turns[k+1].Prompt.Add)
				turns[k+1].Prompt = rollout.PromptIDs{Base: rollout.At(k), Keep: keep, Add: spelled}
				keep += len(spelled)
			}
			return turns
		},
	}
	for _, name := range []string{"interleaved", "retries", "branches", "drift"} {
		for _, n := range []int{200, 1000} {
			for _, drift := range []DriftPolicy{DriftFork, DriftAuto} {
				turns := shapes[name](n)
				b.Run(fmt.Sprintf("%s/turns=%d/%s", name, n, drift), func(b *testing.B) {
					b.ReportAllocs()
					rows := 0
					for b.Loop() {
						res, err := Merge(turns, Options{Drift: drift, Text: benchText})
						require.NoError(b, err)
						rows = len(res.Rows)
					}
					b.ReportMetric(float64(rows), "rows")
					b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "us/turn")
				})
			}
		}
	}
}
