package lineage

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
)

// linear makes a rollout of n calls that each add add ids (the first call first ids) and sample out
// ids, with prompts stored relative to the call before.
func linear(n, first, out, add int) []Turn {
	turns := make([]Turn, n)
	full := 0
	for k := range turns {
		t := &turns[k]
		t.Stopped, t.Output, t.Logprobs = true, make(ids, out), make([]float32, out)
		for x := range t.Output {
			t.Output[x] = rollout.TokenID((k*104729 + x*17 + 5) % 150000)
		}
		grown := make(ids, add)
		if k == 0 {
			grown = make(ids, first)
		} else {
			t.Prompt.Base, t.Prompt.Keep = rollout.At(k-1), full
		}
		for x := range grown {
			grown[x] = rollout.TokenID((k*7919 + x*31) % 150000)
		}
		t.Prompt.Add = grown
		full += len(grown) + out
	}
	return turns
}

// inPlainIDs gives each prompt an array of its own.
func inPlainIDs(turns []Turn) []Turn {
	plain := slices.Clone(turns)
	for k := range plain {
		p := turns[k].Prompt
		if base, ok := p.Base.Get(); ok {
			full := slices.Concat(plain[base].Prompt.Add, plain[base].Output)
			plain[k].Prompt = rollout.PromptIDs{Add: slices.Concat(full[:p.Keep], p.Add)}
		}
	}
	return plain
}

// benchText looks up texts, as a vocabulary would.
var benchText = func() func(rollout.TokenID) string {
	table := make([]string, 160000)
	for id := range table {
		table[id] = toyText(rollout.TokenID(id))
	}
	return func(id rollout.TokenID) string { return table[id] }
}()

func benchMerge(b *testing.B, turns []Turn, drift string) *Result {
	b.Helper()
	b.ReportAllocs()
	var res *Result
	began := kit.CPUTime()
	for b.Loop() {
		var err error
		res, err = Merge(turns, Options{Drift: drift, Text: benchText})
		require.NoError(b, err)
	}
	b.ReportMetric(float64((kit.CPUTime()-began).Microseconds())/float64(b.N)/float64(len(turns)), "cpu-µs/turn")
	b.ReportMetric(float64(len(res.Rows)), "rows")
	return res
}

func BenchmarkMerge(b *testing.B) {
	for _, n := range []int{20, 200, 1000} {
		compact := linear(n, 1600, 150, 310)
		for name, turns := range map[string][]Turn{"plain": inPlainIDs(compact), "compact": compact} {
			b.Run(fmt.Sprintf("turns=%d/%s", n, name), func(b *testing.B) {
				require.Len(b, benchMerge(b, turns, driftFork).Rows, 1)
				total := 0
				for _, t := range turns {
					total += len(t.Prompt.Add)
				}
				b.ReportMetric(float64(total)/1e6, "Mids")
			})
		}
	}
}

// shapes are those for which a merge could become quadratic: calls that interleave, retry, branch,
// end early, or see another spelling.
var shapes = []struct {
	name string
	of   func(n int) []Turn
}{
	{"linear", func(n int) []Turn { return linear(n, 1000, 100, 200) }},
	{"interleaved", func(n int) []Turn {
		x, y := linear(n/2, 1000, 100, 200), linear(n/2, 1001, 100, 200)
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
	}},
	{"retries", func(n int) []Turn {
		turns := linear(n, 1000, 100, 200)
		for k := range turns[1:] {
			turns[k+1].Prompt = turns[1].Prompt
		}
		return turns
	}},
	{"retries that begin alike", func(n int) []Turn { // every other call repeats the next with three tokens of it
		var out []Turn
		for k, t := range linear(n/2, 1000, 100, 200) {
			if k > 0 {
				t.Prompt.Base = rollout.At(2*k - 1)
			}
			cut := t
			cut.Output, cut.Logprobs = append(slices.Clone(t.Output[:3]), stop), nil
			out = append(out, cut, t)
		}
		return out
	}},
	{"retries that compete", func(n int) []Turn { // with a drifting rollout for its few places
		turns := drifting(n/2, 95)
		for k := range n / 2 {
			cut := turns[0]
			cut.Output, cut.Logprobs = append(slices.Clone(cut.Output[:1]), whole(k)), nil
			turns = append(turns, cut)
		}
		return turns
	}},
	{"branches", func(n int) []Turn { // each call keeps half of the one before it
		turns := linear(n, 1000, 100, 200)
		for k := range turns[1:] {
			turns[k+1].Prompt.Keep = min(turns[k+1].Prompt.Keep, 600+k)
		}
		return turns
	}},
	{"drift", func(n int) []Turn { return drifting(n, 50) }},
	{"drift in the last words", func(n int) []Turn { return drifting(n, 95) }},
}

// drifting makes a rollout each prompt of which spells word number at of the response before it in
// two tokens.
func drifting(n, at int) []Turn {
	turns := linear(n, 1000, 100, 200)
	for k := range turns {
		turns[k].Output[at] = whole(k)
	}
	keep := 1000
	for k := range turns[1:] {
		spelled := slices.Concat(turns[k].Output[:at], halves(k), turns[k].Output[at+1:], turns[k+1].Prompt.Add)
		turns[k+1].Prompt = rollout.PromptIDs{Base: rollout.At(k), Keep: keep, Add: spelled}
		keep += len(spelled)
	}
	return turns
}

func BenchmarkMergeShapes(b *testing.B) {
	for _, shape := range shapes {
		for _, n := range []int{1000, 4000, 10000} {
			turns := shape.of(n)
			for _, drift := range []string{driftFork, driftSplice, driftRealign, driftAuto} {
				b.Run(fmt.Sprintf("%s/turns=%d/%s", shape.name, n, drift), func(b *testing.B) { benchMerge(b, turns, drift) })
			}
		}
	}
}
