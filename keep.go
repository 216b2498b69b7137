package turnpack

import (
	"encoding/json"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/reward/detect"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Keeper is a Sink that can hold the rows of an earlier run on the same input and
// options, as a shard.Set with a Source does. A run encodes a rollout that it holds
// only where it must.
type Keeper interface {
	Sink
	// Kept is what Keep was given for a rollout whose rows the sink holds, or that has
	// none; nil when its rows must be made. Several goroutines call it.
	Kept(rollout string) []byte
	// Keep comes before the rows of a rollout, with their number and what Kept is to
	// return in a later run; nil when the rows are to be made again there.
	Keep(rollout string, rows int, value []byte) error
}

// made is what a run books of a rollout that it encoded.
type made struct {
	Report  tokenize.Report
	Window  ctxwindow.Report
	Masked  map[string]int       `json:",omitempty"`
	Faults  map[detect.Fault]int `json:",omitempty"`
	Why     string               `json:",omitempty"`
	Rows    int
	Tokens  int64
	Trained int64
}

// madeBefore fills in what an earlier run made, if it did.
func (x *run) madeBefore(res *result) bool {
	if x.keeper == nil {
		return false
	}
	text := x.keeper.Kept(res.r.ID)
	var m made
	if text == nil || json.Unmarshal(text, &m) != nil {
		return false // what cannot be read is made again
	}
	res.earlier, res.report, res.window, res.masked, res.faults, res.why = &m, m.Report, m.Window, m.Masked, m.Faults, m.Why
	return true
}

// writtenBefore says whether the sink holds rows of the rollout.
func (r *result) writtenBefore() bool { return r.earlier != nil && r.earlier.Rows > 0 }

// keep counts rows of an earlier run, or gives the sink what a later one books. What
// holds errors is made again, for those say where they are.
func (x *run) keep(res *result) error {
	switch {
	case res.earlier != nil:
		x.report.Rows += res.earlier.Rows
		x.report.Tokens += res.earlier.Tokens
		x.report.Trained += res.earlier.Trained
		return nil
	case x.keeper == nil:
		return nil
	}
	m := made{res.report, res.window, res.masked, res.faults, res.why, res.rows.n, res.rows.all, res.rows.trained}
	text, err := json.Marshal(&m)
	if err != nil {
		return rollout.Errorf(rollout.KindInternal, rollout.Where{Rollout: res.r.ID}, "what was made of it cannot be kept: %w", err)
	}
	if res.err != nil || res.report.FirstUnknown != nil || res.report.FirstIncomplete != nil || res.report.FirstUnmarked != nil {
		text = nil
	}
	return x.keeper.Keep(res.r.ID, res.rows.n, text)
}
