package lineage

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// bill is the total of a rollout's joins, in order of priority.
type bill struct{ joins, dropped, respelled int }

const far = 1 << 40

// Prices of single joins, so far apart that sums compare like bills.
const (
	perDropped   = 1 << 20
	perRespelled = 1
)

// priceOf is the price of letting turn b follow turn a, by definition; far if not allowed.
func priceOf(a, b flat, opts Options) int {
	if len(a.output) == 0 || len(b.output) == 0 || a.excluded || b.excluded {
		return far
	}
	full := a.full()
	at := commonPrefix(full, b.prompt)
	if at == len(full) {
		return 0
	}
	price := far
	lost := len(full) - at
	if opts.realigns() && at > len(a.prompt) && lost <= opts.MaxDropTokens && float64(lost) <= opts.MaxDropFrac*float64(len(a.output)) {
		price = lost * perDropped
	}
	if size := sizeOfRespelling(full, b.prompt); opts.splices() && size <= opts.MaxSubTokens {
		price = min(price, size*perRespelled)
	}
	return price
}

// sizeOfRespelling cuts both at every place where their texts so far are equal and sums the longer
// side of each part that differs in ids; far if a's text is not a prefix of b's.
func sizeOfRespelling(a, b ids) int {
	size, i, j := 0, 0, 0 // cut so far
	for i < len(a) {
		x, y := i+1, j+1
		for {
			if y > len(b) || x > len(a) {
				return far
			}
			p, q := toyTexts(a[i:x]), toyTexts(b[j:y])
			if p == q {
				break
			}
			if len(p) <= len(q) {
				x++
			} else {
				y++
			}
		}
		if !slices.Equal(a[i:x], b[j:y]) {
			size += max(x-i, y-j)
		}
		i, j = x, y
	}
	return size
}

// cheapest solves the assignment of row ends to row starts over all turns: the most joins at the
// least price, by shortest augmenting paths with negative edges.
func cheapest(price [][]int) (best bill) {
	n := len(price)
	from := slices.Repeat([]int{-1}, n) // by start
	for {
		dist, parent := slices.Repeat([]int{far}, n), slices.Repeat([]int{-1}, n) // by start: price, previous end
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
			for k := range n { // start k is taken: its row end may move
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
			for j, i := range from {
				if i >= 0 {
					best.joins++
					best.dropped += price[i][j] / perDropped
					best.respelled += price[i][j] % perDropped
				}
			}
			return best
		}
		for end >= 0 {
			i := parent[end]
			before := slices.Index(from, i)
			from[end] = i
			end = before
		}
	}
}

func TestRepairsAreTheMostAndTheCheapest(t *testing.T) {
	rounds := uint64(600)
	if testing.Short() {
		rounds = 200
	}
	repaired, anew := 0, 0
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(seed, 8))
		flats := generate(rng, 2+rng.IntN(12))
		for _, opts := range []Options{
			{Drift: driftRealign, MaxDropTokens: 1 + rng.IntN(5), MaxDropFrac: cmp.Or(float64(rng.IntN(4))/4, 1)},
			{Drift: driftSplice, MaxSubTokens: 1 + rng.IntN(6), Text: toyText},
			{Drift: driftAuto, MaxDropTokens: 1 + rng.IntN(5), MaxDropFrac: 1, MaxSubTokens: 1 + rng.IntN(6), Text: toyText},
		} {
			price := make([][]int, len(flats))
			for i := range flats {
				for j := range flats {
					price[i] = append(price[i], priceOf(flats[i], flats[j], opts))
				}
			}
			res, err := Merge(plainTurns(flats), opts)
			require.NoError(t, err)
			checkInvariants(t, flats, res)
			joins := res.Report.Joins
			got := bill{joins[joinExact] + joins[joinSplice] + joins[joinRealign], res.Report.DroppedBy[dropRealign], res.Report.Substituted}
			require.Equal(t, cheapest(price), got, "seed %d %s", seed, opts.Drift)
			repaired += joins[joinSplice] + joins[joinRealign]
			exact, err := Merge(plainTurns(flats), Options{})
			require.NoError(t, err)
			started := map[int]bool{}
			for _, row := range exact.Rows {
				started[row.Spans[0].Turn] = true
			}
			for _, row := range res.Rows {
				require.True(t, started[row.Spans[0].Turn], "seed %d %s: a repair makes no row start", seed, opts.Drift)
			}
			if joins[joinExact] < exact.Report.Joins[joinExact] {
				anew++
			}
		}
	}
	require.Greater(t, repaired, int(rounds)/4, "the generator makes something to repair")
	t.Logf("%d repairs; in %d merges an exact join gave way", repaired, anew)
}

func TestAnExactJoinGivesWay(t *testing.T) {
	b, a := said(ask, cat(10, 11, 12)), said(cat(ask, 10), cat(11))
	both := said(cat(ask, 10, 11, 12, more), cat(30, stop))
	res := merged(t, Options{Drift: driftRealign, MaxDropTokens: 2}, b, a, both)
	require.Len(t, res.Rows, 1)
	require.Equal(t, []Join{{Prev: 0, Turn: 1, Kind: joinRealign, Dropped: 2}, {Prev: 1, Turn: 2, Kind: joinExact}}, res.Rows[0].Joins)
	require.Len(t, merged(t, Options{Drift: driftRealign, MaxDropTokens: 1}, b, a, both).Rows, 2)
}

func TestACheapRowEndPushesNoneToADearStart(t *testing.T) {
	words := cat(10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
	res := merged(t, Options{Drift: driftRealign, MaxDropTokens: 10},
		said(ask, cat(words, 21)),                          // 1 token to the first start, 10 to the second
		said(ask, words[:3]),                               // nothing to the next turn
		said(cat(ask, words[:3]), cat(words[3:], 22, 23)),  // 2 to the first
		said(ask, cat(words[:2], 24, 25, 26, 27, 28)),      // 5 to the second
		said(cat(ask, words, 30, more), cat(31, stop)),     // the first start
		said(cat(ask, words[:2], 32, more), cat(33, stop))) // the second
	require.Len(t, res.Rows, 3)
	require.Equal(t, 6, res.Report.Dropped, "1 + 5, not 2 + 10")
}
