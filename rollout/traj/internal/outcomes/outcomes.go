package outcomes

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// Table holds outcomes recorded separately from the trajectories. Reading does not change
// it; readers may share it.
type Table struct {
	Entries []*Entry // in the order read
	byID    map[string]*Entry
	byRun   map[string]*Entry // by base name of the run's folder
	// byInstance holds nil for an instance with several outcomes that cannot be told apart.
	byInstance map[string]*Entry
	all        map[string][]*Entry        // by instance, including those that repeat one of Entries
	rivals     map[string]map[string]bool // folder of a run → folders of other runs that share a task with it
}

// Entry is one recorded outcome.
type Entry struct {
	id, run, instance string
	resolved          *bool
	reward            *float64
	verdict           rollout.Verdict
	reason            string
	trial             bool          // run names the folder above the run's own folders
	summary           bool          // from a run's summary, which may omit the reason
	Where             rollout.Where // place of the row
	home              string        // folder of its run
	Of                *Entry        // the entry of another file that this one repeats
}

// Name returns the key of an outcome for error texts.
func (e *Entry) Name() string { return cmp.Or(e.id, e.run, e.instance) }

// Find returns the outcome of r and the key that matched, "" if none did. The outcome is
// nil if the key matches several.
func (x *Table) Find(r *rollout.Rollout) (e *Entry, by string) {
	if e, ok := x.byID[r.ID]; ok {
		return e, "id"
	}
	if e, ok := x.byRun[filepath.Base(filepath.Dir(r.Origin.File))]; ok && (e.instance == "" || e.instance == r.Instance) {
		return e, "run_dir"
	}
	for dir := filepath.Dir(r.Origin.File); len(x.byRun) > 0; dir = filepath.Dir(dir) {
		if e, ok := x.byRun[filepath.Base(dir)]; ok && e.trial {
			return e, "trial"
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if r.Instance == "" {
		return nil, ""
	}
	if e, ok := x.byID[r.Instance]; ok && e.instance == "" {
		return e, "instance" // the table's only key is called id and holds instances
	}
	if run := x.runOf(r); run != "" {
		return x.ofRun(run, r.Instance)
	}
	e, ok := x.byInstance[r.Instance]
	if !ok || e != nil && e.id != "" {
		return nil, "" // the row belongs to another rollout, named by its id
	}
	return e, "instance"
}

// runOf returns the folder of the run that r belongs to, "" if the table has no two runs of
// one task.
func (x *Table) runOf(r *rollout.Rollout) string {
	if len(x.rivals) == 0 {
		return ""
	}
	for dir := filepath.Dir(r.Origin.File); ; dir = filepath.Dir(dir) {
		if x.rivals[dir] != nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// ofRun returns the outcome of an instance in a run. It does not take another run's, even
// if that is the only one.
func (x *Table) ofRun(run, instance string) (e *Entry, by string) {
	for _, o := range x.all[instance] {
		switch {
		case o.home != run:
		case e != nil && !e.repeats(o):
			return nil, "instance"
		default:
			e, by = o, "instance and folder"
		}
	}
	if e != nil {
		return e, by
	}
	if e = x.byInstance[instance]; e == nil || e.id != "" || x.rivals[run][e.home] {
		return nil, ""
	}
	return e, "instance"
}

// homeOf returns the folder of the run that a file of outcomes belongs to.
func homeOf(file string) string {
	dir := filepath.Dir(file)
	if slices.Contains([]string{"results", "reports", "evaluation", "eval"}, filepath.Base(dir)) {
		return filepath.Dir(dir)
	}
	return dir
}

// tellRunsApart finds pairs of folders with outcomes of the same task, neither inside the
// other: each holds a run.
func (x *Table) tellRunsApart() {
	holds := func(a, b string) bool {
		rel, err := filepath.Rel(a, b)
		return err == nil && filepath.IsLocal(rel)
	}
	for _, all := range x.all {
		homes := map[string]bool{}
		for _, e := range all {
			homes[e.home] = true
		}
		for a := range homes {
			for b := range homes {
				if holds(a, b) || holds(b, a) {
					continue
				}
				if x.rivals[a] == nil {
					x.rivals[a] = map[string]bool{}
				}
				x.rivals[a][b] = true
			}
		}
	}
}

// Apply sets the outcome of r. If e agrees with part of the recorded outcome, it adds to
// it; otherwise it replaces all of it: a verdict and a number of two gradings are not one
// outcome.
func (e *Entry) Apply(r *rollout.Rollout, by string) {
	o := &r.Outcome
	replaced := e.replaces(o)
	if replaced {
		*o = rollout.Outcome{Submission: o.Submission}
	}
	if e.resolved != nil {
		b := *e.resolved
		o.Resolved = &b
		o.Verdict = rollout.VerdictUnresolved
		if b {
			o.Verdict = rollout.VerdictResolved
		}
	}
	if e.reward != nil {
		f := *e.reward
		o.Reward = &f
	}
	if e.verdict != rollout.VerdictUnknown {
		o.Verdict = e.verdict
	}
	if e.reason != "" {
		o.Reason = e.reason
	}
	n := rollout.Note{Code: "joined", Text: fmt.Sprintf("the outcome comes from %s, by %s", e.Where, by)}
	if replaced {
		n = rollout.Note{Code: "outcome_replaced", Text: fmt.Sprintf("the outcome at %s, joined by %s, differs from the dump's and replaces it", e.Where, by)}
	}
	r.Notes = append(r.Notes, n)
}

// replaces reports whether e and o both have an outcome and contradict each other or have
// no value in common.
func (e *Entry) replaces(o *rollout.Outcome) bool {
	if e.resolved == nil && e.reward == nil && e.verdict == rollout.VerdictUnknown ||
		o.Resolved == nil && o.Reward == nil && o.Verdict == rollout.VerdictUnknown {
		return false
	}
	same, other := false, false
	compare := func(both, equal bool) { same, other = same || both && equal, other || both && !equal }
	compare(e.resolved != nil && o.Resolved != nil, e.resolved != nil && o.Resolved != nil && *e.resolved == *o.Resolved)
	compare(e.reward != nil && o.Reward != nil, e.reward != nil && o.Reward != nil && *e.reward == *o.Reward)
	// A verdict beside a boolean is only its reason.
	compare(e.resolved == nil && e.verdict != rollout.VerdictUnknown && o.Verdict != rollout.VerdictUnknown, e.verdict == o.Verdict)
	return other || !same
}
