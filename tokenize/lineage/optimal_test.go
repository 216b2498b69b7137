package lineage

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// bestRepair solves the assignment by its definition: over the row ends and row
// starts that exact joins leave, the most realigned joins and, among those, the
// fewest positions given up. Shortest augmenting paths with negative edges.
func bestRepair(flats []flat, exact *Result, budget int) (joins, cost int) {
	const far = 1 << 30
	head, tail := map[int]bool{}, map[int]bool{}
	for _, row := range exact.Rows {
		head[row.Spans[0].Turn] = true
		tail[row.Spans[len(row.Spans)-1].Turn] = true
	}
	n := len(flats)
	price := make([][]int, n)
	for i := range n {
		price[i] = slices.Repeat([]int{far}, n)
		for j := range n {
			full := flats[i].full()
			at := commonPrefix(full, flats[j].prompt)
			if i != j && tail[i] && head[j] && at > len(flats[i].prompt) && len(full)-at <= budget {
				price[i][j] = len(full) - at
			}
		}
	}
	from := slices.Repeat([]int{-1}, n) // by head
	for {
		dist, parent := slices.Repeat([]int{far}, n), slices.Repeat([]int{-1}, n) // by head: cost, tail before
		for i := range n {
			if !slices.Contains(from, i) {
				for j := range n {
					if price[i][j] < dist[j] {
						dist[j], parent[j] = price[i][j], i
					}
				}
			}
		}
		for range n {
			for k := range n { // head k is taken: its tail may move on
				if from[k] < 0 || dist[k] >= far {
					continue
				}
				for j := range n {
					if d := dist[k] - price[from[k]][k] + price[from[k]][j]; price[from[k]][j] < far && d < dist[j] {
						dist[j], parent[j] = d, from[k]
					}
				}
			}
		}
		end := -1
		for j := range n {
			if from[j] < 0 && dist[j] < far && (end < 0 || dist[j] < dist[end]) {
				end = j
			}
		}
		if end < 0 {
			return joins, cost
		}
		joins++
		cost += dist[end]
		for end >= 0 {
			i := parent[end]
			before := slices.Index(from, i)
			from[end] = i
			end = before
		}
	}
}

func TestRealignedJoinsAreTheMostAndTheCheapest(t *testing.T) {
	rounds := uint64(4000)
	if testing.Short() {
		rounds = 400
	}
	repaired := 0
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(seed, 8))
		flats := generate(rng, 2+rng.IntN(12))
		budget := 1 + rng.IntN(5)
		exact, err := Merge(plainTurns(flats), Options{})
		require.NoError(t, err)
		res, err := Merge(plainTurns(flats), Options{Drift: DriftRealign, MaxDropTokens: budget})
		require.NoError(t, err)
		joins, cost := bestRepair(flats, exact, budget)
		require.Equal(t, joins, res.Report.Joins[JoinRealign], "seed %d budget %d", seed, budget)
		require.Equal(t, cost, res.Report.DroppedBy[DropRealign], "seed %d budget %d", seed, budget)
		repaired += joins
	}
	require.Greater(t, repaired, int(rounds)/8, "the generator makes something to repair")
}
