package turnpack

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/internal/keys"
	"github.com/turnpack/turnpack/internal/lean"
	"github.com/turnpack/turnpack/internal/roster"
	"github.com/turnpack/turnpack/internal/shaped"
	"github.com/turnpack/turnpack/internal/tally"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/detect"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Keeper is a Sink that can hold the rows of an earlier run on the same input and options, as a
// shard.Set with a Source does. A run reads, scores and encodes rollouts whose rows the sink holds
// only if it must.
type Keeper interface {
	Sink
	// Kept returns the value that Keep was given for a rollout whose rows the sink holds, or that
	// has no rows; nil if its rows must be made. Holds reports whether Kept returns a value.
	// Several goroutines call both.
	Kept(rollout string) []byte
	Holds(rollout string) bool
	// Keep is called before the rows of a rollout, with their number and the value that Kept is to
	// return in a later run. The sink may read value until Keep returns. A nil value means that the
	// later run must make the rows again.
	Keep(rollout string, rows int, value []byte) error
	// State returns what SetState was given by an earlier run, nil for none.
	State() []byte
	// SetState is called once, before any Keep, with the results of the first pass.
	SetState(value []byte) error
}

// Rereader is a Source that can skip decoding rollouts a run no longer needs. *traj.Source is a
// Rereader.
type Rereader interface {
	Source
	// Memory returns what the latest complete reading found, as JSON.
	Memory() ([]byte, error)
	// RolloutsBut reads the input that memory describes. It may skip rollouts for which past
	// returns true; the others are the same as then, in the same order.
	RolloutsBut(ctx context.Context, memory []byte, past func(id string) bool) iter.Seq2[*rollout.Rollout, error]
}

// gathered is what the first pass learnt of the records: all that the second pass needs.
type gathered struct {
	Version            int
	Read, LeftOut      int
	Skips              []skipped
	OutOfStatistics    []Skip
	Groups             []groupPlan
	Members            [][]shaped.Member `json:",omitempty"`
	Shaping            shaping.Report
	Steps              []reward.StepGroup `json:",omitempty"`
	Scored             [][]rollout.Reward
	Order              roster.Roster `json:"-"` // stored in Packed
	Packed             []byte
	Logprobs, Versions Dropped
	Sizes              *sizes
	Source             json.RawMessage // Rereader.Memory
}

// gatheredVersion changes when the fields of gathered or made do.
const gatheredVersion = 5

// skipped is the JSON form of a Skip.
type skipped struct {
	Skip
	Error *rollout.Error
}

// keepGathered gives the sink what spares a resumed run its first pass.
func (x *run) keepGathered(src Source, got *gathered) error {
	if x.keeper == nil {
		return nil
	}
	got.Version, got.Read, got.LeftOut, got.OutOfStatistics, got.Scored = gatheredVersion, x.report.Read, x.report.LeftOut, x.report.OutOfStatistics, x.scored
	got.Shaping, got.Steps = x.report.Shaping, x.steps.Groups
	for _, s := range x.report.Skips {
		got.Skips = append(got.Skips, skipped{s, rollout.Plain(s.Error)})
	}
	got.Groups, got.Sizes = x.groups, x.sizes
	if again, ok := src.(Rereader); ok {
		var err error
		if got.Source, err = again.Memory(); err != nil {
			return err
		}
	}
	got.Packed = got.Order.Pack(&x.keys)
	text, err := json.Marshal(got)
	got.Packed = nil
	if err != nil {
		return rollout.Errorf(rollout.KindInternal, rollout.Where{}, "what the first pass learnt cannot be kept: %w", err)
	}
	return x.keeper.SetState(text)
}

// gatheredBefore returns what an earlier run gathered, nil if this run must gather it.
func (x *run) gatheredBefore() *gathered {
	if x.keeper == nil {
		return nil
	}
	var got gathered
	text := x.keeper.State()
	if text == nil || json.Unmarshal(text, &got) != nil || got.Version != gatheredVersion || x.OnError == rollout.OnErrorStop && got.LeftOut > 0 {
		return nil // unreadable state is gathered again
	}
	var whole bool
	var groups keys.Keys
	if got.Order, groups, whole = roster.Unpack(got.Packed); !whole || groups.Len() != len(got.Groups) {
		return nil
	}
	x.keys, got.Packed = groups, nil
	x.report.Shaping, x.steps.Groups = got.Shaping, got.Steps
	x.report.Read, x.report.LeftOut, x.report.OutOfStatistics, x.scored = got.Read, got.LeftOut, got.OutOfStatistics, got.Scored
	for _, s := range got.Skips {
		s.Skip.Error = s.Error
		x.report.Skips = append(x.report.Skips, s.Skip)
	}
	x.groups, x.sizes = got.Groups, got.Sizes
	for i := range got.Order.Len() {
		group, id, _ := got.Order.At(i)
		x.seen.Add(id, rolloutAt{int32(group), int32(x.groups[group].count)})
		x.groups[group].count++
	}
	x.before = &got
	return &got
}

// remaining reads the rollouts of the second pass: all of them, or those left to a resumed run.
func (x *run) remaining(ctx context.Context, src Source) iter.Seq2[*rollout.Rollout, error] {
	if again, ok := src.(Rereader); ok && x.before != nil && x.before.Source != nil {
		return again.RolloutsBut(ctx, x.before.Source, x.keeper.Holds)
	}
	if held := x.again.All(); x.before == nil && held != nil {
		return held
	}
	return src.Rollouts(ctx)
}

// passed returns the result of an earlier run for a rollout that is not read again.
func (x *run) passed(r *rollout.Rollout, at rolloutAt) *result {
	res := &result{group: int(at.group), r: r}
	if !x.madeBefore(res) {
		res.err = rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID}, "what an earlier run noted of it cannot be read").
			WithFix("begin anew: remove the unfinished output, or replace it")
	}
	return res
}

// made is what a run reports of a rollout, in the form a later run reads.
type made struct {
	Report   tokenize.Report
	Window   ctxwindow.Report
	Masked   map[string]int
	Faults   map[detect.Fault]int
	Why      string // why there are no rows
	Rows     int
	Tokens   int64
	Trained  int64
	Status   rollout.Status
	Verdict  rollout.Verdict
	Notes    []string // codes
	Seen     tally.Facts
	Unscored int64
	NoTrain  int // rows without log probabilities under the policy being trained
	Votes    []rollout.StepScore
	// The errors of Report, in a form that can be encoded.
	Unknown    *rollout.Error
	Incomplete *rollout.Error
	Unmarked   *rollout.Error
}

// madeBefore fills in the result of an earlier run and reports whether there is one.
func (x *run) madeBefore(res *result) bool {
	if x.keeper == nil {
		return false
	}
	kept := x.keeper.Kept(res.r.ID)
	if kept == nil {
		return false
	}
	var m made
	if lean.Read(kept, &m) != nil {
		return false // an unreadable result is made again
	}
	m.Report.FirstUnknown, m.Report.FirstIncomplete, m.Report.FirstUnmarked = plain(m.Unknown), plain(m.Incomplete), plain(m.Unmarked)
	res.made, res.earlier = m, true
	return true
}

// plain returns e as an error that is nil if e is nil.
func plain(e *rollout.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// keep counts the rows of an earlier run, or gives the sink the result for a later one. A rollout
// that failed is encoded again by the later run, which reproduces its error.
func (x *run) keep(res *result) error {
	switch {
	case res.earlier:
		x.report.Rows += res.Rows
		x.report.Tokens += res.Tokens
		x.report.Trained += res.Trained
		return nil
	case x.keeper == nil:
		return nil
	case res.err != nil:
		return x.keeper.Keep(res.r.ID, res.rows.n, nil)
	}
	res.Votes = trimVotes(res.Votes)
	res.Unknown, res.Incomplete, res.Unmarked = rollout.Plain(res.Report.FirstUnknown), rollout.Plain(res.Report.FirstIncomplete), rollout.Plain(res.Report.FirstUnmarked)
	var err error
	if x.lean, err = lean.Append(x.lean[:0], &res.made); err != nil {
		return rollout.Errorf(rollout.KindInternal, rollout.Where{Rollout: res.r.ID}, "what was made of it cannot be kept: %w", err)
	}
	return x.keeper.Keep(res.r.ID, res.rows.n, x.lean)
}

// trimVotes returns step scores with the texts of votes cut to one byte, which gives the same
// prm.Tally.
func trimVotes(steps []rollout.StepScore) []rollout.StepScore {
	out := make([]rollout.StepScore, 0, len(steps))
	for _, s := range steps {
		s.Extra, s.Votes = nil, slices.Clone(s.Votes)
		for i, v := range s.Votes {
			s.Votes[i] = rollout.Vote{Score: v.Score, Text: v.Text[:min(1, len(v.Text))]}
		}
		out = append(out, s)
	}
	return out
}
