package outcomes

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// rewardBytes bounds one file of outcomes, which is read into memory.
const rewardBytes = 1 << 30

// Load reads outcomes from files and folders, in the forms listed at traj.LoadRewards.
func Load(paths []string) (*Table, error) {
	x := &Table{byID: map[string]*Entry{}, byRun: map[string]*Entry{}, byInstance: map[string]*Entry{}, all: map[string][]*Entry{}, rivals: map[string]map[string]bool{}}
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: p}, "cannot be read: %w", err)
		}
		if !info.IsDir() {
			if err := x.load(p); err != nil {
				return nil, err
			}
			continue
		}
		err = filepath.WalkDir(p, func(q string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || !isRewardFile(d.Name()) {
				return err
			}
			return x.load(q)
		})
		if err != nil {
			return nil, err
		}
	}
	if len(x.Entries) == 0 {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: strings.Join(paths, ", ")}, "no outcome found").
			WithFix("give JSONL or CSV rows with instance_id or id and resolved or reward, or SWE-bench reports")
	}
	x.tellRunsApart()
	return x, nil
}

func isRewardFile(name string) bool {
	return name == "report.json" || strings.HasSuffix(name, ".report.json") || strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".csv")
}

func (x *Table) load(p string) error {
	f, err := os.Open(p)
	if err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: p}, "cannot be read: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, rewardBytes+1))
	if err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: p}, "cannot be read: %w", err)
	}
	if len(b) > rewardBytes {
		return rollout.Errorf(rollout.KindLimit, rollout.Where{File: p}, "longer than %d bytes", rewardBytes)
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if strings.HasSuffix(strings.ToLower(p), ".csv") {
		return x.csv(p, b)
	}
	var d jsonscan.Doc
	if v, err := d.Parse(b, jsonscan.Options{NonFinite: true}); err == nil {
		return x.value(rollout.Where{File: p}, v)
	} else if !strings.HasSuffix(strings.ToLower(p), "l") {
		return rollout.Errorf(rollout.KindFormat, rollout.Where{File: p}, "not JSON: %s", err)
	}
	n := 0
	for line := range bytes.Lines(b) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		w := rollout.Where{File: p, Line: n}
		v, err := d.Parse(line, jsonscan.Options{NonFinite: true})
		if err != nil {
			return rollout.Errorf(rollout.KindFormat, w, "not JSON: %s", err)
		}
		if err := x.row(w, v); err != nil {
			return err
		}
	}
	return nil
}

// value reads a JSON file: a list of rows, one row, a report or a summary.
func (x *Table) value(w rollout.Where, v format.Value) error {
	if v.Kind() == jsonscan.Array {
		for _, row := range v.Items() {
			if err := x.row(w, row); err != nil {
				return err
			}
		}
		return nil
	}
	if isReport(v) {
		if format.FirstID(v, "instance_id", "id", "rollout_id", "traj_id") != "" {
			return x.row(w, v)
		}
		return x.add(reportEntry(w, reportName(w.File), v))
	}
	for _, key := range []string{"resolved_ids", "resolved", "ids_resolved"} {
		if v.Get(key).Kind() == jsonscan.Array {
			return x.summary(w, v)
		}
	}
	if trials := v.Get("results"); isTrial(trials.First()) {
		for _, t := range trials.Items() {
			if err := x.row(w, t); err != nil {
				return err
			}
		}
		return nil
	}
	known := false
	for instance, report := range v.Members() {
		if isReport(report) {
			known = true
			if err := x.add(reportEntry(w, instance, report)); err != nil {
				return err
			}
		}
	}
	if known {
		return nil
	}
	return x.row(w, v)
}

// isReport reports whether v is a SWE-bench report of one instance.
func isReport(v format.Value) bool {
	return v.Get("resolved").Kind() == jsonscan.Bool &&
		(v.Get("patch_exists").Kind() == jsonscan.Bool || v.Get("tests_status").Kind() == jsonscan.Object || v.Get("patch_successfully_applied").Kind() == jsonscan.Bool)
}

func reportName(p string) string {
	base := filepath.Base(p)
	if base == "report.json" {
		return filepath.Base(filepath.Dir(p))
	}
	return strings.TrimSuffix(strings.TrimSuffix(base, ".json"), ".report")
}

func reportEntry(w rollout.Where, instance string, v format.Value) *Entry {
	e := &Entry{instance: instance, Where: w, resolved: format.Boolean(v.Get("resolved")), verdict: rollout.VerdictUnresolved}
	is := func(key string, want bool) bool { b, ok := v.Get(key).Bool(); return ok && b == want }
	switch {
	case *e.resolved:
		e.verdict = rollout.VerdictResolved
	case is("patch_is_None", true) || is("patch_exists", false):
		e.verdict = rollout.VerdictNoPatch
	case is("patch_successfully_applied", false):
		e.verdict = rollout.VerdictApplyFailed
	}
	return e
}

// summary reads a run's lists of instances; each list stands for an outcome.
func (x *Table) summary(w rollout.Where, v format.Value) error {
	yes, no := true, false
	for _, c := range []struct {
		keys []string
		e    Entry
	}{
		{[]string{"resolved_ids", "resolved", "ids_resolved"}, Entry{resolved: &yes, verdict: rollout.VerdictResolved}},
		{[]string{"unresolved_ids", "failed_ids", "ids_unresolved"}, Entry{resolved: &no, verdict: rollout.VerdictUnresolved}},
		{[]string{"empty_patch_ids", "no_generation"}, Entry{resolved: &no, verdict: rollout.VerdictNoPatch}},
		{[]string{"error_ids"}, Entry{reason: "the evaluation ended with an error"}},
	} {
		for _, key := range c.keys {
			for _, id := range v.Get(key).Items() {
				e := c.e
				e.instance, e.Where, e.summary = format.Identifier(id), w, true
				if err := x.add(&e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// isTrial reports whether v is the result of a terminal-bench trial, from the file of the
// run or of the trial.
func isTrial(v format.Value) bool {
	return v.Get("trial_name").Kind() == jsonscan.String && v.Get("task_id").Kind() == jsonscan.String && v.Get("is_resolved").Kind() != jsonscan.Absent
}

// trial adds the outcome of a trial, found by its folder, else by its task; its id is the
// result's.
func (x *Table) trial(w rollout.Where, v format.Value) error {
	e := &Entry{Where: w, trial: true, run: v.Get("trial_name").String(), instance: v.Get("task_id").String(), resolved: format.Boolean(v.Get("is_resolved"))}
	if mode := v.Get("failure_mode").String(); mode != "unset" && mode != "none" {
		e.reason = mode
	}
	return x.add(e)
}

// row reads one row: its keys and its outcome.
func (x *Table) row(w rollout.Where, v format.Value) error {
	if v.Kind() != jsonscan.Object {
		return rollout.Errorf(rollout.KindFormat, w, "found %s, expected an object with instance_id or id and an outcome", v.Kind())
	}
	if isTrial(v) {
		return x.trial(w, v)
	}
	e := &Entry{Where: w}
	if isReport(v) {
		e = reportEntry(w, "", v)
	}
	said := false
	if resolved, verdict := format.Graded(v.Path("test_result", "report")); verdict != rollout.VerdictUnknown {
		said, e.resolved, e.verdict = true, resolved, verdict // OpenHands' evaluation
	}
	if run, ok := v.Get("run_dir").Text(); ok && run != "" {
		e.run = path.Base(strings.ReplaceAll(run, `\`, "/"))
	}
	for _, key := range rewardKeys {
		x := v.Get(key)
		said = said || x.Kind() != jsonscan.Absent && slices.Contains(outcomeKeys, key)
		if x.IsNull() {
			continue
		}
		if err := e.set(key, format.PlainText(x)); err != nil {
			return err
		}
	}
	if !said {
		return rollout.Errorf(rollout.KindFormat, w, "the row has no outcome, only %s", format.Shape(v)).WithFix("give it one of %s", strings.Join(outcomeKeys, ", "))
	}
	return x.add(e)
}

// Keys and columns that are read; others are ignored. Of several with the same meaning the
// first is used.
var (
	nameKeys    = []string{"rollout_id", "traj_id", "id", "instance_id", "instance"}
	outcomeKeys = []string{"resolved", "reward", "score", "verdict", "reason"}
	rewardKeys  = slices.Concat(nameKeys, outcomeKeys)
)

// delimiter returns the column separator of a header: a comma, or a semicolon or tab as
// written by spreadsheets.
func delimiter(b []byte) rune {
	header, _, _ := bytes.Cut(b, []byte{'\n'})
	for _, c := range ";\t" {
		if bytes.ContainsRune(header, c) && !bytes.ContainsRune(header, ',') {
			return c
		}
	}
	return ','
}

func (x *Table) csv(p string, b []byte) error {
	r := csv.NewReader(bytes.NewReader(b))
	r.Comma = delimiter(b)
	header, err := r.Read()
	if err != nil {
		return rollout.Errorf(rollout.KindFormat, rollout.Where{File: p, Line: 1}, "the CSV has no header: %w", err)
	}
	for i := range header {
		header[i] = strings.ToLower(strings.TrimSpace(header[i]))
	}
	known := func(keys []string) bool {
		return slices.ContainsFunc(header, func(h string) bool { return slices.Contains(keys, h) })
	}
	if !known(nameKeys) || !known(outcomeKeys) {
		return rollout.Errorf(rollout.KindFormat, rollout.Where{File: p, Line: 1}, "found columns %s, expected a key (%s) and an outcome (%s)",
			strings.Join(header, ", "), strings.Join(nameKeys, ", "), strings.Join(outcomeKeys, ", ")).WithFix("rename the columns")
	}
	for {
		row, err := r.Read()
		if err == io.EOF {
			return nil
		}
		line, _ := r.FieldPos(0)
		if err != nil {
			var pe *csv.ParseError
			if errors.As(err, &pe) {
				line = pe.Line
			}
			return rollout.Errorf(rollout.KindFormat, rollout.Where{File: p, Line: line}, "not CSV: %w", err).WithFix("put texts with separators, quotes or line breaks in quotes")
		}
		e := &Entry{Where: rollout.Where{File: p, Line: line}}
		for _, key := range rewardKeys {
			if i := slices.Index(header, key); i >= 0 {
				if err := e.set(key, strings.TrimSpace(row[i])); err != nil {
					return err
				}
			}
		}
		if err := x.add(e); err != nil {
			return err
		}
	}
}

// set sets one field from text, unless an earlier key of the same meaning set it.
func (e *Entry) set(key, s string) error {
	if s == "" {
		return nil
	}
	w := e.Where
	w.Field = key
	switch key {
	case "instance_id", "instance":
		e.instance = cmp.Or(e.instance, s)
	case "id", "rollout_id", "traj_id":
		e.id = cmp.Or(e.id, s)
	case "reward", "score":
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || f-f != 0 {
			return rollout.Errorf(rollout.KindFormat, w, "found %q, expected a finite number", s).WithFix("leave it empty where there is none")
		}
		if e.reward == nil {
			e.reward = &f
		}
	case "resolved":
		yes := slices.Contains([]string{"true", "yes", "1", "1.0"}, strings.ToLower(s))
		if !yes && !slices.Contains([]string{"false", "no", "0", "0.0"}, strings.ToLower(s)) {
			return rollout.Errorf(rollout.KindFormat, w, "found %q, expected true or false", s).WithFix("leave it empty where it is not known")
		}
		e.resolved = &yes
	case "verdict":
		if err := e.verdict.UnmarshalText([]byte(s)); err != nil {
			return rollout.Errorf(rollout.KindFormat, w, "%s", err)
		}
	case "reason":
		e.reason = s
	}
	return nil
}

func (x *Table) add(e *Entry) error {
	if e.id == "" && e.instance == "" && e.run == "" {
		return rollout.Errorf(rollout.KindFormat, e.Where, "the row names neither a rollout nor an instance").WithFix("give it one of %s", strings.Join(nameKeys, ", "))
	}
	if e.home = homeOf(e.Where.File); e.id == "" && e.run == "" {
		x.all[e.instance] = append(x.all[e.instance], e)
	}
	if first := x.byInstance[e.instance]; first.repeats(e) {
		first.verdict = max(first.verdict, e.verdict)
		if e.Of = first; e.summary != first.summary {
			e.verdict, e.reason = first.verdict, cmp.Or(e.reason, first.reason)
		}
		return nil
	}
	x.Entries = append(x.Entries, e)
	if e.id != "" {
		if first, dup := x.byID[e.id]; dup {
			return rollout.Errorf(rollout.KindInput, e.Where, "rollout %q has an outcome already, at %s", e.id, first.Where).WithFix("keep one row of each rollout")
		}
		x.byID[e.id] = e
	}
	if e.run != "" {
		x.byRun[e.run] = e
	}
	if name := e.instance; name != "" {
		if _, dup := x.byInstance[name]; dup {
			e = nil
		}
		x.byInstance[name] = e
	}
	return nil
}

// repeats reports whether two files give the same outcome for an instance, such as the
// report of the instance and the summary of its run.
func (e *Entry) repeats(o *Entry) bool {
	plain := func(e *Entry) bool { return e.id == "" && e.run == "" && e.reward == nil && e.resolved != nil }
	return e != nil && plain(e) && plain(o) && e.Where.File != o.Where.File && *e.resolved == *o.resolved &&
		(e.verdict == o.verdict || min(e.verdict, o.verdict) == rollout.VerdictUnresolved)
}
