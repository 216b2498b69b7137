package target

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
)

// Options holds what targets need to know besides the rows.
type Options struct {
	// MaxTokens is the longest row that the trainer accepts; 0 means no limit.
	MaxTokens int
	// GroupSize is the number of rollouts that each group must have if the trainer needs equal
	// groups (trl); 0 takes that of the first group.
	GroupSize int
	// LeaveIncomplete leaves out groups that do not have GroupSize rollouts, for every trainer,
	// and rollouts with more rows than the trainer accepts. Dropped counts them. Otherwise a
	// trainer that needs equal groups refuses them.
	LeaveIncomplete bool
	// MeanOverRollouts makes the loss a mean over rollouts instead of the trainer's own unit,
	// with weights N_trained / (rollouts × rollout_mask_sum). It returns the counts of the
	// optimizer step that a group belongs to. nil keeps the trainer's unit.
	MeanOverRollouts func(group string) Totals
	// RawLogprobs says that log probabilities were recorded before the temperature was applied.
	// Rows sampled at a temperature other than 1 are then refused, since trainers compare them
	// with their own after it.
	RawLogprobs bool
	// EOS is the tokenizer's end-of-sequence id; PadMultiple is the multiple that segments are
	// padded to (megatron).
	EOS         int32
	PadMultiple int
}

// Totals are the counts of one optimizer step.
type Totals struct {
	Trained  int64
	Rollouts int
}

// validate returns all faults of o, joined.
func (o Options) validate() error {
	f := faults.List{Of: "target.Options."}
	f.Count("MaxTokens", o.MaxTokens)
	f.Count("GroupSize", o.GroupSize)
	if o.LeaveIncomplete && o.GroupSize == 0 {
		f.Add("GroupSize", "found 0, expected a number of rollouts: groups of others are to be left out")
	}
	f.Count("PadMultiple", o.PadMultiple)
	return f.Err()
}

// Names returns the names of all targets.
func Names() []string {
	var out []string
	for _, s := range specs() {
		out = append(out, s.name)
	}
	return out
}

// Target prepares rows for one trainer.
type Target struct {
	spec
	opts    Options
	size    int             // rollouts per group, 0 = not known yet
	first   *rollout.Sample // the row that decides the temperature
	Dropped map[string]int
}

// New returns the target with the given name.
func New(name string, o Options) (*Target, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	all := specs()
	i := slices.IndexFunc(all, func(s spec) bool { return s.name == name })
	if i < 0 {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "target"}, "%q is no target", name).
			WithFix("choose one of %s", strings.Join(Names(), ", "))
	}
	t := &Target{spec: all[i], opts: o, size: o.GroupSize, Dropped: map[string]int{}}
	if o.MeanOverRollouts != nil && t.mean == meanNever {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "target.Options.MeanOverRollouts"}, "%s cannot take a mean over rollouts: it reads no weights, its mask holds whole numbers", name).
			WithFix("leave the option off, or train with slime")
	}
	return t, nil
}

// Name returns the target's name.
func (t *Target) Name() string { return t.name }

// Group takes all rows of one GRPO group and returns the rows to write: ordered by rollout and
// row, trimmed and numbered by rollout.FinishRows, with statuses, advantages and weights as the
// trainer reads them. It refuses a row that the trainer cannot take or would train wrongly on.
// Dropped counts the rollouts that are left out. The input is not changed.
func (t *Target) Group(rows []rollout.Sample) ([]rollout.Sample, error) {
	if t.name == "" {
		return nil, zero.Value("target.Target", "New")
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b rollout.Sample) int {
		return cmp.Or(cmp.Compare(a.RolloutIndex, b.RolloutIndex), cmp.Compare(a.SampleIndex, b.SampleIndex))
	})
	var settled []rollout.Sample
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && rows[j].Rollout == rows[i].Rollout {
			j++
		}
		kept := rollout.FinishRows(rows[i:j])
		switch n := j - i - len(kept); {
		case t.aborted(&rows[i]):
			kept = rows[i : i+1] // Keep counts the rollout and drops it
		case len(kept) == 0:
			t.drop("rollout without a trained token", 1)
		case n > 0:
			t.drop("row without a trained token", n)
		}
		settled = append(settled, kept...)
		i = j
	}
	keep, err := t.Keep(settled)
	if err != nil {
		return nil, err
	}
	var out []rollout.Sample
	for i := range settled {
		if !keep[i] {
			continue
		}
		if err := t.Adapt(&settled[i], nil); err != nil {
			return nil, err
		}
		out = append(out, settled[i])
	}
	return out, nil
}

// Keep reports which rows of one group are to be written, for callers that then pass them to
// Adapt one by one. The rows must be in the order of Group and finished by rollout.FinishRows;
// their per-token columns are not read.
func (t *Target) Keep(rows []rollout.Sample) (keep []bool, err error) {
	if t.name == "" {
		return nil, zero.Value("target.Target", "New")
	}
	keep = make([]bool, len(rows))
	var kept []rollout.Sample
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && rows[j].Rollout == rows[i].Rollout {
			j++
		}
		if rows[i].Group != rows[0].Group {
			return nil, t.refuse(&rows[i], col.GroupID, "give the rows of one group", "rollouts of groups %q and %q came together", rows[0].Group, rows[i].Group)
		}
		ok, err := t.rollout(rows[i:j])
		if err != nil {
			return nil, err
		}
		for k := i; ok && k < j; k++ {
			if err := t.oneTemperature(&rows[k]); err != nil {
				return nil, err
			}
			kept = append(kept, rows[k])
		}
		for ; i < j; i++ {
			keep[i] = ok
		}
	}
	if len(kept) == 0 {
		return keep, nil
	}
	if t.opts.LeaveIncomplete || t.equal {
		if n := countRollouts(kept); n != t.size && t.opts.LeaveIncomplete {
			t.drop("rollout of an incomplete group", n)
			return make([]bool, len(rows)), nil
		} else if err := t.checkGroupSize(kept, n); err != nil {
			return nil, err
		}
	}
	if t.group != nil {
		return keep, t.group(t, kept)
	}
	return keep, nil
}

// drop counts what is left out.
func (t *Target) drop(what string, n int) { t.Dropped[what] += n }

// aborted reports whether a rollout was aborted and must not reach the trainer.
func (t *Target) aborted(s *rollout.Sample) bool {
	return !t.keepAborted && s.Status == rollout.StatusAborted
}

func countRollouts(rows []rollout.Sample) int {
	n := 1
	for i := 1; i < len(rows); i++ {
		if rows[i].Rollout != rows[i-1].Rollout {
			n++
		}
	}
	return n
}

// checkGroupSize refuses a group whose size differs from the others.
func (t *Target) checkGroupSize(rows []rollout.Sample, n int) error {
	const fix = "leave such groups out (convert --group-size N, the trainer's rollouts of a prompt), or use a target that takes them, such as trl-async"
	if t.equal && n < 2 {
		return t.refuse(&rows[0], col.GroupID, fix, "group %q has one rollout to train, the trainer takes groups of 2 or more", rows[0].Group)
	}
	if t.size == 0 {
		t.size = n
	}
	if n != t.size {
		return t.refuse(&rows[0], col.GroupID, fix, "group %q has %d rollouts to train, the others %d", rows[0].Group, n, t.size)
	}
	return nil
}

// GoOn passes on what an earlier run has written of the batch: the temperature of its rows and
// the number of rollouts per group.
func (t *Target) GoOn(temperature float32, groupSize int) {
	t.first = &rollout.Sample{ID: "of an earlier run", Temperature: temperature}
	if t.size == 0 && t.equal {
		t.size = groupSize
	}
}

// rollout decides whether the rows of one rollout are kept.
func (t *Target) rollout(rows []rollout.Sample) (keep bool, err error) {
	switch {
	case t.aborted(&rows[0]):
		t.drop("aborted rollout", 1)
	case len(rows) == 1 || !t.oneRow:
		return true, nil
	case t.opts.LeaveIncomplete:
		t.drop("rollout of several rows", 1)
	default:
		return false, t.refuse(&rows[1], col.SampleIndex, "leave it and its group out (convert --group-size N), or use target trl-async; where ids drift, convert --drift splice or realign joins its rows",
			"it takes one row per rollout and this one has %d", len(rows))
	}
	return false, nil
}

// Adapt adapts and checks one row that is kept. lens are the run lengths of
// export.Writer.WriteRuns if the row is run-length encoded, otherwise nil.
func (t *Target) Adapt(s *rollout.Sample, lens []int32) error {
	n := s.Len()
	if lens != nil {
		n = 0
		for _, k := range lens {
			n += int(k)
		}
	}
	if t.opts.MaxTokens > 0 && n > t.opts.MaxTokens {
		return t.refuse(s, col.InputIDs, "raise the trainer's limit, window the context, or leave longer rows out (lossmask.Policy.MaxTokens, convert --max-tokens)", "the row has %d tokens, the limit is %d", n, t.opts.MaxTokens)
	}
	if t.opts.RawLogprobs && s.Logprob != nil && s.Temperature != 1 && t.compares() {
		return t.refuse(s, col.Logprobs, "record those after it (vLLM: logprobs_mode processed_logprobs), sample at 1, or leave them out of the dump where the trainer computes its own",
			"its log probabilities are those before the temperature, which is %g, and the trainer compares them with its own at it", s.Temperature)
	}
	if !(s.Temperature > 0) && t.compares() {
		return t.refuse(s, col.Temperature, "sample above 0, say what turns without a record were sampled at (convert --temperature), or train on such rows supervised (target megatron)",
			"it divides logits by the temperature, which is %g", s.Temperature)
	}
	if t.logprobs && s.Logprob == nil {
		return t.refuse(s, col.Logprobs, "record log probabilities while sampling, or use a target whose trainer computes those of the policy before the step, such as trl or slime", "its loader reads log probabilities and the row has none")
	}
	if (t.advantage || t.advantages) && s.Advantage == nil {
		return t.refuse(s, col.Advantage, "run an advantage estimator first", "its loader reads the advantage and the row has none")
	}
	if t.scalar {
		if err := t.oneAdvantage(s); err != nil {
			return err
		}
	}
	if t.versions && s.Version == nil {
		return t.refuse(s, col.Versions, "say which policy sampled the batch (turnpack.Pipeline.PolicyVersion, convert --policy-version)", "its loader reads policy versions and the row has none")
	}
	if err := t.fillWeights(s); err != nil {
		return err
	}
	if t.advantages && s.Credit == nil {
		credit := make([]float32, s.Len())
		for i, w := range s.Weight {
			if w > 0 {
				credit[i] = float32(*s.Advantage)
			}
		}
		s.Credit = credit
	}
	if t.row != nil {
		return t.row(t, s, lens)
	}
	return nil
}

// compares reports whether the trainer compares its own log probabilities with the recorded
// ones.
func (t *Target) compares() bool { return t.name != "none" && t.name != "megatron" }

// oneAdvantage refuses a row whose trained tokens have different advantages.
func (t *Target) oneAdvantage(s *rollout.Sample) error {
	if s.Credit == nil {
		return nil
	}
	for i, w := range s.Weight {
		if w > 0 && s.Credit[i] != float32(*s.Advantage) {
			return t.refuse(s, col.Advantages, "use an estimator by rollout or a target that reads advantages per token (skyrl, prime-rl, trl, nemo-rl); one row per step does for an estimator of steps and slime, trl-async or areal",
				"it reads one advantage per row; token %d has %g and the row %g", i, s.Credit[i], *s.Advantage)
		}
	}
	return nil
}

// oneTemperature refuses a row sampled at a different temperature than the first.
func (t *Target) oneTemperature(s *rollout.Sample) error {
	if t.temperatures {
		return nil
	}
	if t.first == nil {
		t.first = &rollout.Sample{ID: rollout.SampleID(s.Rollout, s.SampleIndex), Temperature: s.Temperature, Metadata: s.Metadata}
	}
	if s.Temperature != t.first.Temperature {
		fix := "convert the dumps of each temperature by themselves, or use a target that reads it per token, such as prime-rl"
		if assumed(s) || assumed(t.first) {
			fix = "say what turns without a record were sampled at (convert --temperature); else " + fix
		}
		return t.refuse(s, col.Temperature, fix,
			"it trains at one temperature; the row was sampled at %g and row %s at %g", s.Temperature, t.first.ID, t.first.Temperature)
	}
	return nil
}

// assumed reports whether the temperature of a row was not recorded in the dump.
func assumed(s *rollout.Sample) bool {
	var m struct {
		Turnpack struct{ Temperature string } `json:"turnpack"`
	}
	return json.Unmarshal(s.Metadata, &m) == nil && m.Turnpack.Temperature == "assumed"
}

// fillWeights puts the loss weights into the form that the trainer reads.
func (t *Target) fillWeights(s *rollout.Sample) error {
	if !t.weights && export.ColumnsOf(s).Weights {
		return t.refuse(s, col.Weights, "of the means take that over rollouts (MeanOverRollouts, convert --weights rollout-mean), leave importance weights to the trainer (convert --importance-weights none), or use a target that reads weights (prime-rl)",
			"it reads a mask of 0 and 1 and no weights")
	}
	if t.opts.MeanOverRollouts == nil || t.mean == meanNative {
		return nil
	}
	totals := t.opts.MeanOverRollouts(s.Group)
	if totals.Trained <= 0 || totals.Rollouts <= 0 {
		return t.refuse(s, col.Weights, "let MeanOverRollouts give the counts of the step with this group", "a step with %d trained tokens and %d rollouts has no mean over rollouts", totals.Trained, totals.Rollouts)
	}
	w := float64(totals.Trained) / (float64(totals.Rollouts) * float64(s.RolloutMaskSum))
	if t.mean == meanWeights {
		s.Weight = scaled(s.Weight, w)
		return nil
	}
	if s.Advantage != nil {
		a := *s.Advantage * w
		s.Advantage = &a
	}
	if s.Credit != nil {
		s.Credit = scaled(s.Credit, w)
	}
	return nil
}

func scaled(v []float32, by float64) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(float64(x) * by)
	}
	return out
}

// refuse returns an error that names the trainer, the row, the column and the remedy.
func (t *Target) refuse(s *rollout.Sample, column, fix, format string, args ...any) error {
	return export.Refuse(s, column, "target", fix, "%s: %s", t.name, fmt.Sprintf(format, args...))
}
