package lineage

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

func TestKitExact(t *testing.T) {
	for _, c := range kitCases(t) {
		res, err := Merge(c.compact, Options{})
		require.NoError(t, err, c.ID)
		checkInvariants(t, c.flats, res)
		require.Equal(t, c.Expect.Rows, res.Report.Rows, c.ID)
		require.Equal(t, c.Expect.Sampled, res.Report.Trained, c.ID)
		require.Equal(t, c.Expect.PerStep, res.Report.PerTurn, c.ID)
		require.Equal(t, c.Expect.Trie, res.Report.Distinct, c.ID)
		require.Equal(t, append([]int{}, c.Expect.EmptyTurns...), append([]int{}, res.EmptyTurns...), c.ID)
		require.Empty(t, res.Dropped, c.ID)
		require.Equal(t, res.Report.Sampled, res.Report.Trained-res.Report.SubContext, c.ID)
		checkTree(t, c.flats, res)

		plain, err := Merge(plainTurns(c.flats), Options{})
		require.NoError(t, err, c.ID)
		require.Equal(t, res.Report, plain.Report, "%s: plain prompts give what compact ones give", c.ID)
	}
}

// checkTree reads each turn's full ids back from the plan.
func checkTree(t *testing.T, flats []flat, res *Result) {
	t.Helper()
	tree := res.Tree()
	total := 0
	ends := map[int]int{} // by turn: the deepest node it sampled
	for k, n := range tree {
		total += len(n.IDs)
		require.Less(t, n.Parent, k)
		for _, turn := range n.Turns {
			if end, ok := ends[turn]; !ok || tree[end].Start < n.Start {
				ends[turn] = k
			}
		}
	}
	require.Equal(t, res.Report.Distinct, total)
	for i, f := range flats {
		if len(f.output) == 0 || f.excluded {
			continue
		}
		ids := f.full()
		k, ok := ends[i]
		require.True(t, ok, "turn %d is in the tree", i)
		for end := len(ids); k >= 0; k = tree[k].Parent {
			start := end - len(tree[k].IDs)
			require.True(t, slices.Equal(ids[start:end], tree[k].IDs))
			require.Equal(t, start >= len(f.prompt), slices.Contains(tree[k].Turns, i), "turn %d owns its output and nothing else", i)
			end = start
		}
	}
}

func TestKitRealign(t *testing.T) {
	kit.OneGoroutine(t)
	for _, c := range kitCases(t) {
		for d, want := range c.Expect.Realign {
			budget, err := strconv.Atoi(d)
			require.NoError(t, err)
			res, err := Merge(c.compact, Options{Drift: driftRealign, MaxDropTokens: budget})
			require.NoError(t, err)
			checkInvariants(t, c.flats, res)
			require.Equal(t, want.Rows, res.Report.Rows, "%s d=%s", c.ID, d)
			require.Equal(t, want.Dropped, res.Report.Dropped, "%s d=%s", c.ID, d)
		}
	}
}

func TestKitSpliceAndAuto(t *testing.T) {
	kit.OneGoroutine(t)
	var splice, auto Report
	for _, c := range kitCases(t) {
		res, err := Merge(c.compact, Options{Drift: driftSplice, MaxSubTokens: 64, Text: toyText})
		require.NoError(t, err)
		checkInvariants(t, c.flats, res)
		require.LessOrEqual(t, res.Report.Rows, c.Expect.Rows, c.ID)
		require.Zero(t, res.Report.Dropped, c.ID)
		splice.Add(res.Report)

		res, err = Merge(c.compact, Options{Drift: driftAuto, MaxDropTokens: 8, MaxSubTokens: 64, Text: toyText})
		require.NoError(t, err)
		checkInvariants(t, c.flats, res)
		require.LessOrEqual(t, res.Report.Rows, c.Expect.Rows, c.ID)
		auto.Add(res.Report)
	}
	require.LessOrEqual(t, splice.Rows, 457)
	require.LessOrEqual(t, auto.Rows, 446)
	require.LessOrEqual(t, auto.Dropped, 21)
	require.Positive(t, splice.Substituted)
	require.Less(t, splice.Trained-splice.SubContext, splice.Sampled)
}

func TestKitRecordOrderIsIrrelevant(t *testing.T) {
	kit.OneGoroutine(t)
	rng := rand.New(rand.NewPCG(11, 4))
	for _, opts := range []Options{{}, {Drift: driftRealign}, {Drift: driftAuto, Text: toyText}} {
		for _, c := range kitCases(t) {
			want, err := Merge(c.compact, opts)
			require.NoError(t, err)
			shuffled := slices.Clone(c.flats)
			rng.Shuffle(len(shuffled), func(a, b int) { shuffled[a], shuffled[b] = shuffled[b], shuffled[a] })
			got, err := Merge(plainTurns(shuffled), opts)
			require.NoError(t, err)
			checkInvariants(t, shuffled, got)
			require.Equal(t, want.Report.Rows, got.Report.Rows, "%s %s", c.ID, opts.Drift)
			require.Equal(t, want.Report.Dropped, got.Report.Dropped, "%s %s", c.ID, opts.Drift)
			if opts.Drift == driftFork {
				require.Equal(t, want.Report.Distinct, got.Report.Distinct, c.ID)
			}
		}
	}
}

func TestKitEraseDeclaresWhatItDrops(t *testing.T) {
	kit.OneGoroutine(t)
	erased := 0
	for _, c := range kitCases(t) {
		for _, opts := range []Options{
			{Drift: driftRealign, MaxDropTokens: 1 << 20, AllowErase: true},
			{Drift: driftAuto, MaxDropTokens: 64, AllowErase: true, Text: toyText},
		} {
			res, err := Merge(c.compact, opts)
			require.NoError(t, err)
			checkInvariants(t, c.flats, res)
			erased += res.Report.DroppedBy[dropErase]
		}
	}
	require.Positive(t, erased)
}
