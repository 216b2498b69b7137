package prm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
)

// Aggregate defines how votes become a score. The zero value is the mean of the valid votes and
// requires at least one.
type Aggregate struct {
	// Method selects the score: "mean_valid" or "", the mean over the votes that have a score;
	// "mean_all", the mean over all planned votes, with 0 for those without a score; "majority", the
	// most frequent value.
	Method string
	// Tie selects the score of a majority with several leading values: "", 0 (OpenClaw-RL@0d034dd5e);
	// "none", no score; "low", the lowest of them; "high", the highest.
	Tie string
	// Quorum is the least number of valid votes for a score; 0 means 1.
	Quorum int
}

func (a Aggregate) validate() error {
	f := faults.List{Of: "Aggregate."}
	faults.Word(&f, "Method", a.Method, "mean_valid", "mean_all", majority)
	faults.Word(&f, "Tie", a.Tie, "none", "low", "high")
	if a.Tie != "" && a.Method != majority {
		f.Add("Tie", "%q has a meaning with the method majority only", a.Tie)
	}
	f.Count("Quorum", a.Quorum)
	return f.Err()
}

// majority is the method whose votes are requested in waves, see needed.
const majority = "majority"

func (a Aggregate) quorum() int { return max(a.Quorum, 1) }

// Score returns the score of a step from its votes. asked is the number of planned votes, at least
// len(votes); fewer votes than planned are possible after an early stop. A nil score comes with the
// reason for its absence; a score may come with a remark. An invalid a gives no score.
func (a Aggregate) Score(votes []rollout.Vote, asked int) (score *float64, reason string) {
	if err := a.validate(); err != nil {
		return nil, err.Error()
	}
	t := count(votes)
	if t.valid < a.quorum() {
		return nil, fmt.Sprintf("%d of %d votes are valid, the quorum is %d: %s", t.valid, len(votes), a.quorum(), summarizeFaults(votes))
	}
	var v float64
	switch a.Method {
	case "mean_all":
		v = t.sum / float64(max(asked, len(votes)))
	case majority:
		leaders := t.leaders()
		switch {
		case len(leaders) == 1:
			v = leaders[0]
		case a.Tie == "none":
			return nil, fmt.Sprintf("%d values lead together", len(leaders))
		case a.Tie == "low":
			v, reason = leaders[0], "tie"
		case a.Tie == "high":
			v, reason = leaders[len(leaders)-1], "tie"
		default:
			reason = "tie"
		}
	default:
		v = t.sum / float64(t.valid)
	}
	return &v, reason
}

// needed returns the least number of further valid votes that could decide the score of a step with m
// planned votes, 0 if no further vote can change it. Requesting votes in waves of that size never
// changes a score, only its cost.
func (a Aggregate) needed(votes []rollout.Vote, m int) int {
	left := m - len(votes)
	if left <= 0 {
		return 0
	}
	t := count(votes)
	if t.valid+left < a.quorum() {
		return 0
	}
	if a.Method != majority {
		return left
	}
	first, second := t.top()
	for k := range left {
		// After k votes for the leader, a rival can get left−k votes; a tie is undecided.
		if t.valid+k >= a.quorum() && first+k > second+left-k {
			return k
		}
	}
	return left
}

type ballot struct {
	value float64
	n     int
}

type tally struct {
	ballots []ballot // by value
	valid   int
	sum     float64
}

func count(votes []rollout.Vote) tally {
	var t tally
	for _, v := range votes {
		if v.Score == nil {
			continue
		}
		t.valid++
		t.sum += *v.Score
		i, ok := slices.BinarySearchFunc(t.ballots, *v.Score, func(b ballot, x float64) int { return cmp.Compare(b.value, x) })
		if !ok {
			t.ballots = slices.Insert(t.ballots, i, ballot{value: *v.Score})
		}
		t.ballots[i].n++
	}
	return t
}

// top returns the two largest counts.
func (t tally) top() (first, second int) {
	for _, b := range t.ballots {
		switch {
		case b.n > first:
			first, second = b.n, first
		case b.n > second:
			second = b.n
		}
	}
	return first, second
}

// leaders returns the values with the largest count, ascending.
func (t tally) leaders() []float64 {
	first, _ := t.top()
	var out []float64
	for _, b := range t.ballots {
		if b.n == first {
			out = append(out, b.value)
		}
	}
	return out
}

// summarizeFaults returns the reasons why votes have no score, the most frequent first.
func summarizeFaults(votes []rollout.Vote) string {
	counts := map[string]int{}
	for _, v := range votes {
		if v.Score == nil {
			counts[cmp.Or(v.Error, "no reason recorded")]++
		}
	}
	keys := slices.SortedFunc(maps.Keys(counts), func(x, y string) int { return cmp.Or(counts[y]-counts[x], cmp.Compare(x, y)) })
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%d× %s", counts[k], k)
	}
	return strings.Join(keys, "; ")
}
