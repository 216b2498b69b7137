package turnpack

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/overview"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Report says what a run did. Every record is counted in Rollouts or in LeftOut, and every rollout
// without rows is counted in WithoutRows by reason.
type Report struct {
	Read     int // usable ones
	Rollouts int // of them usable
	Groups   int
	Rows     int
	Tokens   int64 // over all rows
	Trained  int64
	// Status counts rollouts by how they ended.
	Status map[string]int
	// Verdicts counts rollouts by their recorded outcome; those without one count as unknown.
	Verdicts map[string]int
	// WithoutRows counts usable rollouts that gave no row, by reason; WithoutRowsAt lists the first
	// 10,000 of them, without errors.
	WithoutRows   map[string]int
	WithoutRowsAt []Skip
	// MaskedRows counts rows left out because their whole loss mask is zero, by reason.
	MaskedRows map[string]int
	// LeftOut counts the records that were left out; Skips lists the first 10,000.
	LeftOut int
	Skips   []Skip
	// Untrained lists rollouts with turns left out because their context is unknown, because their
	// record is not what was sampled, or because nothing says who wrote a reply (Message.Sampled is
	// not set). Error locates the first such turn. The other turns have rows.
	Untrained []Skip
	Reward    reward.Report
	// OutOfStatistics lists the first 10,000 rollouts whose reward enters no mean and no deviation,
	// with the reason; Reward.Excluded counts them.
	OutOfStatistics []Skip
	Encode          tokenize.Report
	// Window says what Pipeline.Window did to the contexts; zero if there is no Window.
	Window ctxwindow.Report
	// Faults counts what the Detector found in sampled messages of rollouts with an advantage, if
	// the estimator overrides the advantage of such messages.
	Faults map[string]int
	// Shaping counts what Pipeline.Shaping did to rewards, groups and rollouts; rows it masked are
	// in MaskedRows.
	Shaping shaping.Report
	// Overview describes the usable rollouts: outcomes, rewards, steps, lengths, advantages.
	Overview overview.Batch
	// Unscored counts sampled tokens that are not trained because the estimator compares steps and
	// their step has no advantage.
	Unscored int64
	// Judge says how far the votes on steps agree; nil without votes.
	Judge *prm.Agreement
	// Notes counts importer remarks by code.
	Notes map[string]int
	// Columns that only some turns record and that are therefore left out; nil if the column is
	// written or no turn records it.
	DroppedLogprobs, DroppedVersions *Dropped
}

// Skip is one record that was left out.
type Skip struct {
	Rollout string
	File    string
	Line    int
	Reason  string
	Error   error
}

// maxSkips bounds the lists of a report, for files in which every line is bad.
const maxSkips = 10_000

func (r *Report) skip(s Skip) {
	if r.LeftOut++; r.LeftOut <= maxSkips {
		r.Skips = append(r.Skips, s)
	}
}

func (r *Report) leftStatistics(s Skip) {
	if len(r.OutOfStatistics) < maxSkips {
		r.OutOfStatistics = append(r.OutOfStatistics, s)
	}
}

func count(m *map[string]int, key string, n int) {
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[key] += n
}

// counted returns each reason with its count, sorted by reason.
func counted(reasons map[string]int) (out []string) {
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		out = append(out, fmt.Sprintf("%d %s", reasons[reason], reason))
	}
	return out
}

func asDetail(err error) (*rollout.Error, bool) { return errors.AsType[*rollout.Error](err) }
