package shape

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/reward/overview"
	"github.com/turnpack/turnpack/reward/shaping"
)

// maxSolves is the number of entries of the histogram that the table shows.
const maxSolves = 20

// Batch is the JSON form of the overview.
type Batch struct {
	overview.Batch
	ResolveRate    float64 `json:"resolve_rate"`
	TruncatedShare float64 `json:"truncated_share"`
}

// Of returns the JSON form of an overview.
func Of(b *overview.Batch) *Batch {
	return &Batch{Batch: *b, ResolveRate: b.ResolveRate(), TruncatedShare: b.TruncatedShare()}
}

// Rows prints the description of the whole batch, one line per call of row.
func (b *Batch) Rows(row func(name, format string, args ...any), j *prm.Agreement, x *shaping.Report) {
	if b.Graded > 0 {
		row("resolved", "%s of %s graded rollouts (%s)", cli.Number(b.Resolved), cli.Number(b.Graded), cli.Share(b.Resolved, b.Graded))
		row("solved in groups", "%s", solves(b.Solves))
	}
	if b.Truncated > 0 {
		row("cut off", "%s of %s rollouts (%s)", cli.Number(b.Truncated), cli.Number(b.Rollouts), cli.Share(b.Truncated, b.Rollouts))
	}
	if b.NoTemperature > 0 {
		row("temperature", "of %s rollouts not recorded: they count as sampled at --temperature, else at 1", cli.Number(b.NoTemperature))
	}
	if b.Judged > 0 && b.Judged < b.Rollouts {
		row("step scores", "of %s rollouts; with --step-coef, of the others those that nobody judged have their outcome alone as reward, and those whose judge failed are left out", cli.Number(b.Judged))
	}
	for _, d := range []struct {
		name   string
		of     overview.Distribution
		places int
	}{{"reward", b.Reward, 3}, {"advantage", b.Advantage, 3}, {"steps", b.Steps, 0}, {"tokens of a rollout", b.Tokens, 0}, {"trained tokens of one", b.Trained, 0}} {
		if x := d.of; x.N > 0 {
			some, half := max(1, d.places), d.places
			if x.Median != math.Trunc(x.Median) { // between two whole numbers
				half = some
			}
			row(d.name, "mean %s ± %s, min %s, median %s, max %s", fixed(x.Mean, some), fixed(x.Std, some), fixed(x.Min, d.places), fixed(x.Median, half), fixed(x.Max, d.places))
		}
	}
	if j != nil && j.Steps > 0 {
		kappa := "–"
		if j.Kappa != nil {
			kappa = strconv.FormatFloat(*j.Kappa, 'f', 3, 64)
		}
		row("judge", "%s of %s steps with votes unanimous, κ %s; %s votes failed, %s not read, %s steps without a score",
			cli.Number(j.Unanimous), cli.Number(j.Steps), kappa, cli.Number(j.Failed), cli.Number(j.Unparsed), cli.Number(j.NotComputed))
	}
	if x != nil {
		for _, c := range []struct {
			name string
			of   map[string]int
		}{{"rewards shaped", x.Rewards}, {"groups left out", x.Groups}, {"rollouts left out", x.Rollouts}} {
			if len(c.of) > 0 {
				row(c.name, "%s", cli.Counts(c.of))
			}
		}
		if x.UnknownAge > 0 {
			row("age not known", "%s rollouts, which stay", cli.Number(x.UnknownAge))
		}
		if x.NoTrainLogprobs > 0 {
			row("off-policy bounds", "not applied to %s rows without log probabilities of the policy that trains", cli.Number(x.NoTrainLogprobs))
		}
		if x.KeptAlike > 0 {
			row("groups kept", "%s, though their rewards are alike: no other is left", cli.Number(x.KeptAlike))
		}
	}
}

// solves formats the histogram of solve counts, such as 3 groups 1/8.
func solves(all []overview.Solves) string {
	var parts []string
	for i, s := range all {
		if i == maxSolves {
			parts = append(parts, "… (in --json)")
			break
		}
		parts = append(parts, fmt.Sprintf("%d/%d: %s", s.Solved, s.Of, cli.Number(s.Groups)))
	}
	return strings.Join(parts, ", ")
}

// fixed formats v with the given number of decimal places, without the sign of a zero.
func fixed(v float64, places int) string {
	s := strconv.FormatFloat(v, 'f', places, 64)
	if strings.Trim(s, "-0.") == "" {
		return strings.TrimPrefix(s, "-")
	}
	return s
}
