package reward

import (
	"fmt"
	"math"
	"runtime"
	"testing"
)

// benchRewards returns the rewards of a large job: groups of 16, three kinds of rewards. Rollouts
// arrive group by group, or interleaved, where each rollout belongs to a different group than the
// previous one (the worst order for caches).
func benchRewards(n int, interleaved bool) (keys []string, rewards []float64) {
	groups := n / 16
	names := make([]string, groups)
	for g := range names {
		names[g] = fmt.Sprintf("instance-%07d", g)
	}
	keys, rewards = make([]string, n), make([]float64, n)
	for i := range n {
		if keys[i] = names[i/16]; interleaved {
			keys[i] = names[i%groups]
		}
		rewards[i] = []float64{1, -1, float64(i%7) / 7}[i%3]
	}
	return keys, rewards
}

func eachJob(b *testing.B, run func(b *testing.B, n int, keys []string, rewards []float64)) {
	for _, interleaved := range []bool{false, true} {
		for _, n := range []int{1_000_000, 10_000_000} {
			order := map[bool]string{false: "grouped", true: "interleaved"}[interleaved]
			b.Run(fmt.Sprintf("%s/%dM", order, n/1_000_000), func(b *testing.B) {
				if n > 1_000_000 && testing.Short() {
					b.Skip("SKIPPED: 10 M rollouts: run without -short")
				}
				keys, rewards := benchRewards(n, interleaved)
				run(b, n, keys, rewards)
			})
		}
	}
}

// BenchmarkStatistics measures both passes of a job: counting the rewards of all groups, then
// computing every advantage.
func BenchmarkStatistics(b *testing.B) {
	eachJob(b, func(b *testing.B, n int, keys []string, rewards []float64) {
		groups := make([]GroupRewards, n/16)
		at := map[string]int{}
		for i, k := range keys {
			if _, seen := at[k]; !seen {
				at[k] = len(at)
			}
			g := &groups[at[k]]
			g.Key, g.Rollouts = k, append(g.Rollouts, RolloutReward{Reward: rewards[i]})
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		b.ResetTimer()
		for range b.N {
			s, err := GRPO().Statistics(groups)
			if err != nil {
				b.Fatal(err)
			}
			if b.N == 1 {
				b.StopTimer()
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n/16), "B/group")
				b.StartTimer()
			}
			sink := 0.0
			for i, k := range keys {
				v, err := s.Advantage(k, RolloutReward{Reward: rewards[i]})
				if err != nil {
					b.Fatal(err)
				}
				sink += v.Value
			}
			if math.IsNaN(sink) {
				b.Fatal("NaN")
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/rollout")
	})
}

// BenchmarkPlainSums is the baseline: the same two passes with plain float64 sums, whose results
// depend on the order of rows.
func BenchmarkPlainSums(b *testing.B) {
	type sums struct{ n, sum, square float64 }
	eachJob(b, func(b *testing.B, n int, keys []string, rewards []float64) {
		b.ResetTimer()
		for range b.N {
			index := map[string]int{}
			var groups []sums
			for i, k := range keys {
				g, ok := index[k]
				if !ok {
					g = len(groups)
					index[k] = g
					groups = append(groups, sums{})
				}
				r := rewards[i]
				groups[g].n++
				groups[g].sum += r
				groups[g].square += r * r
			}
			sink := 0.0
			for i, k := range keys {
				g := groups[index[k]]
				mean := g.sum / g.n
				sd := math.Sqrt((g.square - g.n*mean*mean) / (g.n - 1))
				sink += (rewards[i] - mean) / (sd + 1e-6)
			}
			if math.IsNaN(sink) {
				b.Fatal("NaN")
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/rollout")
	})
}

func BenchmarkAdvantages(b *testing.B) {
	groups := make([]GroupRewards, 1<<14)
	for i := range groups {
		groups[i] = GroupRewards{Key: fmt.Sprint(i), Rollouts: make([]RolloutReward, 16)}
		for j := range groups[i].Rollouts {
			groups[i].Rollouts[j].Reward = float64((i*j)%5) / 5
		}
	}
	for b.Loop() {
		if _, _, err := Advantages(groups, GRPO()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(groups)*16), "ns/rollout")
}
