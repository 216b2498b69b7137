package lineage

import (
	"cmp"
	"slices"
)

// limitStopLoss undoes realigned joins over a batch until at most share (0…1) of
// the turns that ended by themselves lose their stop token to one. The cheapest
// joins go first: those that drop the fewest tokens, whose price is little but
// the stop token itself; then by rollout, prompt length and record index. The
// results are rewritten in place; nil results are passed over. It returns the
// number of joins undone.
func limitStopLoss(results []*Result, share float64) int {
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
		m.reason[u.turn] = breakBudget
		touched[u.rollout] = true
	}
	for k, yes := range touched {
		if yes {
			results[k].emit()
		}
	}
	return len(lossy)
}
