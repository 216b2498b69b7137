package lineage

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// generate makes a random lineage over few words, so that prefixes coincide by chance as well as by
// design.
func generate(rng *rand.Rand, turns int) []flat {
	const words = 4
	var flats []flat
	output := func() ids {
		var out ids
		for range rng.IntN(6) {
			if w := rng.IntN(words); rng.IntN(3) == 0 {
				out = append(out, halves(w)...)
			} else {
				out = append(out, whole(w))
			}
		}
		if rng.IntN(4) > 0 {
			out = append(out, stop)
		}
		return out
	}
	lp := 0
	for range turns {
		var f flat
		if len(flats) > 0 && rng.IntN(8) > 0 {
			base := flats[len(flats)-1]
			if rng.IntN(4) == 0 {
				base = flats[rng.IntN(len(flats))]
			}
			f.prompt = base.full()
			switch rng.IntN(8) {
			case 0: // retry
				f.prompt = slices.Clone(base.prompt)
			case 1: // cut, then go on
				f.prompt = f.prompt[:rng.IntN(len(f.prompt)+1)]
			case 2, 3: // another spelling somewhere in the history
				f.prompt = respell(rng, f.prompt)
			}
		}
		for range rng.IntN(3) {
			f.prompt = append(f.prompt, whole(rng.IntN(words)))
		}
		f.output = output()
		for range f.output {
			lp++
			f.logprobs = append(f.logprobs, -float32(lp)/4096)
		}
		f.stopped = rng.IntN(3) > 0
		f.excluded = rng.IntN(20) == 0
		flats = append(flats, f)
	}
	return flats
}

func respell(rng *rand.Rand, in ids) ids {
	var out ids
	for k := 0; k < len(in); k++ {
		w, part := (in[k]-word0)/3, (in[k]-word0)%3
		switch {
		case in[k] < word0 || rng.IntN(4) > 0:
			out = append(out, in[k])
		case part == 0:
			out = append(out, halves(int(w))...)
		case part == 1 && k+1 < len(in) && in[k+1] == in[k]+1:
			out = append(out, whole(int(w)))
			k++
		default:
			out = append(out, in[k])
		}
	}
	return out
}

// seeded names the case in a failure, without a subtest for each.
type seeded struct {
	testing.TB
	seed   uint64
	policy int
}

func (s seeded) FailNow() {
	s.Helper()
	s.Fatalf("seed %d, policy %d", s.seed, s.policy)
}

// policies returns options of each kind, the default first.
func policies(rng *rand.Rand) []Options {
	return []Options{
		{},
		{Drift: driftSplice, Text: toyText},
		{Drift: driftRealign, MaxDropTokens: 1 + rng.IntN(4)},
		{Drift: driftAuto, Text: toyText, MaxSubTokens: 1 + rng.IntN(6), MaxDropFrac: rng.Float64()},
		{Drift: driftRealign, AllowErase: true, MaxDropTokens: 12},
		{Drift: driftAuto, AllowErase: true, MaxDropTokens: 12, Text: toyText, MaxRowTokens: rng.IntN(30)},
		{Drift: driftRealign, MaxStopLossShare: -1},
	}
}

func TestGeneratedLineages(t *testing.T) {
	rounds := 1000
	if testing.Short() {
		rounds = 100
	}
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 6))
		flats := generate(rng, 1+rng.IntN(14))
		policies := policies(rng)
		best := optimum(flats)
		for k, opts := range policies {
			res, err := Merge(plainTurns(flats), opts)
			require.NoError(t, err, "seed %d policy %d", seed, k)
			checkInvariants(seeded{t, seed, k}, flats, res)
			checkTree(t, flats, res)
			if opts.Drift == driftFork {
				require.Equal(t, best, res.Report.Rows, "seed %d", seed)
			}
			if opts.MaxRowTokens == 0 {
				require.LessOrEqual(t, res.Report.Rows, best, "seed %d policy %d", seed, k)
			}
			shuffled := slices.Clone(flats)
			rng.Shuffle(len(shuffled), func(a, b int) { shuffled[a], shuffled[b] = shuffled[b], shuffled[a] })
			again, err := Merge(plainTurns(shuffled), opts)
			require.NoError(t, err)
			require.Equal(t, res.Report.Distinct, again.Report.Distinct, "seed %d", seed)
			if !opts.AllowErase && opts.MaxRowTokens == 0 {
				require.Equal(t, outcome(res), outcome(again), "seed %d policy %d", seed, k)
			}
		}
	}
}

// compactOf stores prompts relative to random earlier turns, as a recorder might.
func compactOf(rng *rand.Rand, flats []flat) []Turn {
	turns := plainTurns(flats)
	for i := range turns {
		if i == 0 || rng.IntN(5) == 0 {
			continue
		}
		base := rng.IntN(i)
		keep := commonPrefix(flats[base].full(), flats[i].prompt)
		if keep > 0 {
			keep -= rng.IntN(keep+1) / 2
		}
		turns[i].Prompt = rollout.PromptIDs{Base: rollout.At(base), Keep: keep, Add: flats[i].prompt[keep:]}
	}
	return turns
}

// outcome is what must not depend on the order of the record.
func outcome(res *Result) [4]int {
	return [4]int{res.Report.Rows, res.Report.Trained, res.Report.Dropped, res.Report.Substituted}
}

// laidOut is all that a result says about its rows.
type laidOut struct {
	Report   Report
	Dropped  []Drop
	IDs      []ids
	Spans    [][]Span
	Segments [][]segment
}

func layOut(res *Result) laidOut {
	l := laidOut{Report: res.Report, Dropped: res.Dropped}
	for k := range res.Rows {
		row := &res.Rows[k]
		l.IDs, l.Spans, l.Segments = append(l.IDs, row.AppendIDs(nil)), append(l.Spans, row.Spans), append(l.Segments, segments(row))
	}
	return l
}

// Prompts in plain ids, prompts stored relative to earlier turns and turns added one by one give
// the same rows.
func TestStorageOfPromptsIsIrrelevant(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		flats := generate(rng, 20)
		compact := compactOf(rng, flats)
		for k, opts := range policies(rng) {
			plain, err := Merge(plainTurns(flats), opts)
			require.NoError(t, err)
			online, err := newBuilder(opts)
			require.NoError(t, err)
			for i, turn := range compact {
				index, err := online.add(turn)
				require.NoError(t, err)
				require.Equal(t, i, index)
			}
			got, err := online.finish()
			require.NoError(t, err)
			require.Equal(t, layOut(plain), layOut(got), "seed %d policy %d", seed, k)
		}
	}
}

// FuzzMerge derives a rollout and options from arbitrary bytes and checks every invariant.
func FuzzMerge(f *testing.F) {
	f.Add(uint64(1), uint8(5), uint8(0), int8(8), int8(64), false, uint8(0))
	f.Add(uint64(9), uint8(30), uint8(3), int8(-1), int8(3), true, uint8(17))
	f.Fuzz(func(t *testing.T, seed uint64, turns, drift uint8, drop, sub int8, erase bool, row uint8) {
		flats := generate(rand.New(rand.NewPCG(seed, 1)), int(turns%40))
		opts := Options{Drift: []string{driftFork, driftSplice, driftRealign, driftAuto, driftRefuse}[drift%5], MaxDropTokens: int(drop), MaxSubTokens: int(sub), AllowErase: erase, MaxRowTokens: int(row), Text: toyText}
		res, err := Merge(plainTurns(flats), opts)
		if opts.Drift == driftRefuse && err != nil {
			require.ErrorIs(t, err, rollout.KindDrift)
			return
		}
		require.NoError(t, err)
		checkInvariants(t, flats, res)
	})
}

// A vocabulary may have tokens without text.
func TestTokensWithoutText(t *testing.T) {
	text := func(id rollout.TokenID) string {
		if id == stop || id == whole(1) {
			return ""
		}
		return toyText(id)
	}
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 9))
		flats := generate(rng, 12)
		res, err := Merge(plainTurns(flats), Options{Drift: driftAuto, Text: text, MaxDropTokens: 4})
		require.NoError(t, err)
		seen := 0
		for _, row := range res.Rows {
			seen += len(row.Spans)
		}
		trained := 0
		for _, f := range flats {
			if len(f.output) > 0 && !f.excluded {
				trained++
			}
		}
		require.Equal(t, trained, seen, "seed %d: every turn is in a row", seed)
	}
}
