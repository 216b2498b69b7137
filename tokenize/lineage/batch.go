package lineage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// MergeBatch merges rollouts on at most workers goroutines (0 means one per
// CPU), applies Options.MaxStopLossShare over all of them and returns one result
// per rollout. A rollout that fails leaves a nil result; the errors of all are
// joined, each named by the index of its rollout. The results do not depend on
// workers.
func MergeBatch(ctx context.Context, rollouts [][]Turn, opts Options, workers int) ([]*Result, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	each := opts
	each.MaxStopLossShare = 0
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	results := make([]*Result, len(rollouts))
	faults := make([]error, len(rollouts))
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(workers, len(rollouts)) {
		wg.Go(func() {
			for k := range next {
				res, err := Merge(rollouts[k], each)
				if err != nil {
					err = fmt.Errorf("rollout %d of the batch: %w", k, err)
				}
				results[k], faults[k] = res, err
			}
		})
	}
	var stopped error
	for k := range rollouts {
		if stopped = ctx.Err(); stopped != nil {
			break
		}
		next <- k
	}
	close(next)
	wg.Wait()
	if stopped != nil {
		return nil, stopped
	}
	LimitStopLoss(results, opts.withDefaults().MaxStopLossShare)
	return results, errors.Join(faults...)
}

// LimitStopLoss undoes realigned joins over a batch until at most share (0…1) of
// the turns that ended by themselves lose their stop token to one. The cheapest
// joins go first: those that drop the fewest tokens, whose price is little but
// the stop token itself; then by rollout, prompt length and record index. The
// results are rewritten in place; nil results are passed over. It returns the
// number of joins undone.
func LimitStopLoss(results []*Result, share float64) int {
	type undo struct {
		rollout, turn, cost, pLen int
	}
	var lossy []undo
	stops := 0
	for k, res := range results {
		if res == nil {
			continue
		}
		stops += res.Report.Stops
		m := res.merge
		for j := range m.turns {
			if i := m.pred[j]; i != none && m.join[j].kind == JoinRealign && m.turns[i].stopped {
				lossy = append(lossy, undo{k, j, m.join[j].cost, m.turns[i].pLen})
			}
		}
	}
	// The slack keeps a share such as 0.29 of 100 from meaning 28.
	allowed := int(share*float64(stops) + 1e-9)
	if len(lossy) <= allowed {
		return 0
	}
	slices.SortFunc(lossy, func(a, b undo) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.rollout, b.rollout),
			cmp.Compare(a.pLen, b.pLen), cmp.Compare(a.turn, b.turn))
	})
	lossy = lossy[:len(lossy)-allowed]
	touched := make([]bool, len(results))
	for _, u := range lossy {
		m := results[u.rollout].merge
		m.unlink(int32(u.turn))
		m.reason[u.turn] = BreakBudget
		touched[u.rollout] = true
	}
	for k, yes := range touched {
		if yes {
			results[k].emit()
		}
	}
	return len(lossy)
}
