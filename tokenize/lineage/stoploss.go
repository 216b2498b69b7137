package lineage

import (
	"cmp"
	"slices"
)

// limitStopLoss undoes realigned joins until at most share (0…1) of the turns that ended by
// themselves lose their stop token to one. The cheapest joins are undone first: those that drop the
// fewest tokens and so lose little but the stop token; then by prompt length and record index.
func (res *Result) limitStopLoss(share float64) {
	m := res.merge
	var lossy []int32 // by the later turn
	for j := range m.turns {
		if i := m.pred[j]; i != none && m.join[j].kind == joinRealign && m.turns[i].stopped {
			lossy = append(lossy, int32(j))
		}
	}
	// The slack keeps a share such as 0.29 of 100 from being 28.
	allowed := int(share*float64(res.Report.Stops) + 1e-9)
	if len(lossy) <= allowed {
		return
	}
	slices.SortFunc(lossy, func(a, b int32) int {
		return cmp.Or(cmp.Compare(m.join[a].cost, m.join[b].cost), cmp.Compare(m.turns[m.pred[a]].pLen, m.turns[m.pred[b]].pLen), cmp.Compare(a, b))
	})
	for _, j := range lossy[:len(lossy)-allowed] {
		m.unlink(j)
		m.reason[j] = breakBudget
	}
	res.emit()
}
