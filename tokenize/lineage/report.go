package lineage

// Result is one merged rollout.
type Result struct {
	// Rows are in the order of the record index of their first turn.
	Rows []Row
	// Dropped lists every sampled token that no row trains, by turn and offset.
	Dropped []Drop
	// EmptyTurns are the turns without output, by record index.
	EmptyTurns []int
	Report     Report

	merge *merge
}

// Drop is a run of sampled ids that no row trains.
type Drop struct {
	Turn   int
	From   int // output offset
	Len    int
	Reason string
}

// Report counts what a merge did. Add sums reports over a batch.
type Report struct {
	Turns      int `json:"turns"`
	EmptyTurns int `json:"empty_turns"`
	Rows       int `json:"rows"`

	Joins  map[string]int `json:"joins"`  // between turns, by kind
	Breaks map[string]int `json:"breaks"` // row starts, by reason

	Sampled     int            `json:"sampled_tokens"` // = Trained + Dropped
	Trained     int            `json:"trained_tokens"`
	Dropped     int            `json:"dropped_tokens"`
	DroppedBy   map[string]int `json:"dropped_by_reason"`
	Substituted int            `json:"substituted_tokens"`     // respelled by spliced joins, Rewrites among them
	SubContext  int            `json:"sub_context_tokens"`     // trained after a declared substitution
	Rewrites    int            `json:"stop_rewrites"`          // stop tokens in rows that history shows as another token
	Stops       int            `json:"stop_tokens"`            // turns that ended by themselves
	StopsLost   int            `json:"stop_tokens_lost"`       // turns among Stops whose stop token is not trained
	RowTokens   int            `json:"row_tokens"`             // tokens of all rows
	PerTurn     int            `json:"per_turn_tokens"`        // tokens that one row per turn would take
	Distinct    int            `json:"distinct_prefix_tokens"` // tokens that tree attention would take
}

// Add adds o to r.
func (r *Report) Add(o Report) {
	r.Turns += o.Turns
	r.EmptyTurns += o.EmptyTurns
	r.Rows += o.Rows
	r.Joins = addCounts(r.Joins, o.Joins)
	r.Breaks = addCounts(r.Breaks, o.Breaks)
	r.Sampled += o.Sampled
	r.Trained += o.Trained
	r.Dropped += o.Dropped
	r.DroppedBy = addCounts(r.DroppedBy, o.DroppedBy)
	r.Substituted += o.Substituted
	r.SubContext += o.SubContext
	r.Rewrites += o.Rewrites
	r.Stops += o.Stops
	r.StopsLost += o.StopsLost
	r.RowTokens += o.RowTokens
	r.PerTurn += o.PerTurn
	r.Distinct += o.Distinct
}

func addCounts[K comparable](to, from map[K]int) map[K]int {
	if to == nil && len(from) > 0 {
		to = make(map[K]int, len(from))
	}
	for k, n := range from {
		to[k] += n
	}
	return to
}

// StopLossShare returns the share, 0…1, of turns that ended by themselves whose stop token is not
// trained; 0 if no turn ended by itself.
func (r Report) StopLossShare() float64 {
	if r.Stops == 0 {
		return 0
	}
	return float64(r.StopsLost) / float64(r.Stops)
}

func (res *Result) account() {
	m := res.merge
	rep := Report{Turns: len(m.turns), EmptyTurns: len(res.EmptyTurns), Rows: len(res.Rows),
		Joins: map[string]int{}, Breaks: map[string]int{}, DroppedBy: map[string]int{}}
	for k := range res.Rows {
		row := &res.Rows[k]
		rep.RowTokens += row.n
		rep.Breaks[row.Break]++
		for _, j := range row.Joins {
			rep.Joins[j.Kind]++
			rep.Substituted += j.Substituted
		}
		for _, s := range row.Spans {
			rep.Trained += s.Len
			if len(s.Subs) > 0 {
				rep.SubContext += s.Len
			}
		}
		for _, sub := range row.Spans[len(row.Spans)-1].Subs {
			if sub.Stop {
				rep.Rewrites++
			}
		}
	}
	lastLost := make([]bool, len(m.turns))
	for _, d := range res.Dropped {
		rep.Dropped += d.Len
		rep.DroppedBy[d.Reason] += d.Len
		if d.From+d.Len == len(m.turns[d.Turn].output) {
			lastLost[d.Turn] = true
		}
	}
	for i := range m.turns {
		r := &m.turns[i]
		rep.Sampled += len(r.output)
		if r.empty() {
			continue
		}
		rep.PerTurn += r.fLen()
		if r.stopped {
			rep.Stops++
			if lastLost[i] {
				rep.StopsLost++
			}
		}
	}
	for x := range m.trie.nodes {
		if m.below[x] > 0 {
			rep.Distinct += len(m.trie.nodes[x].ids)
		}
	}
	res.Report = rep
}
