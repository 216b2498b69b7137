package overview

// Distribution summarises a set of numbers. Quantiles are exact for fewer than 65,536 numbers, between
// two of them in proportion, and taken from an even sample of them otherwise.
type Distribution struct {
	N      int     `json:"n"`
	Mean   float64 `json:"mean"`
	Std    float64 `json:"std"` // with n − 1; 0 for a single number
	Min    float64 `json:"min"`
	P10    float64 `json:"p10"`
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`
	Max    float64 `json:"max"`
}

// Solves counts the groups with Of graded rollouts, Solved of which solved their task.
type Solves struct {
	Solved int `json:"solved"`
	Of     int `json:"of"`
	Groups int `json:"groups"`
}

// Batch holds the numbers that describe a batch.
type Batch struct {
	Rollouts  int `json:"rollouts"`
	Graded    int `json:"graded"` // rollouts known to have solved their task or not
	Resolved  int `json:"resolved"`
	Truncated int `json:"truncated"`
	// Judged counts rollouts with a scored step, NoTemperature rollouts with rows where a turn does
	// not record its sampling temperature.
	Judged        int `json:"judged"`
	NoTemperature int `json:"without_temperature"`
	// Solves is the histogram of groups, by Of and Solved, without groups that have no graded rollout.
	Solves    []Solves     `json:"solves,omitempty"`
	Reward    Distribution `json:"reward"`
	Steps     Distribution `json:"steps"`
	Rows      Distribution `json:"rows"`   // rows per rollout, of rollouts with rows
	Tokens    Distribution `json:"tokens"` // tokens per rollout, of the same rollouts
	Trained   Distribution `json:"trained"`
	Advantage Distribution `json:"advantage"`
}

// ResolveRate returns the share of graded rollouts that solved their task, 0 if there are none.
func (b *Batch) ResolveRate() float64 { return part(b.Resolved, b.Graded) }

// TruncatedShare returns the share of rollouts that were cut off by a limit.
func (b *Batch) TruncatedShare() float64 { return part(b.Truncated, b.Rollouts) }

func part(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}
