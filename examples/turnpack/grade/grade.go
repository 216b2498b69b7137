// Package grade implements "turnpack grade": verdicts of a SWE-bench run from its test
// logs.
package grade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/reward/swebench"
	"github.com/turnpack/turnpack/rollout"
)

// Cmd is the command grade.
type Cmd struct {
	Instances   string `help:"Instances: JSONL or a JSON list." required:"" type:"path" placeholder:"FILE"`
	Predictions string `help:"Predictions: JSONL, a JSON list, or an object by instance." required:"" type:"path" placeholder:"FILE"`
	Logs        string `help:"Folder of test logs." required:"" type:"path" placeholder:"DIR"`
	Out         string `help:"Folder to write to." default:"." type:"path" placeholder:"DIR"`
	Force       bool   `help:"Replace files that exist."`
}

// result is one line of results.jsonl.
type result struct {
	InstanceID string `json:"instance_id"`
	Resolved   *bool  `json:"resolved,omitempty"` // nil if the infrastructure failed
	Verdict    string `json:"verdict"`
	Reason     string `json:"reason,omitempty"`
}

// noPatch is the reason of a prediction whose patch is missing or blank. SWE-bench's own summary has
// blank ones among its errors.
const noPatch = "no patch"

// Help returns the long help text.
func (*Cmd) Help() string {
	return `Grades test logs of SWE-bench, SWE-Gym or SWE-rebench instances by their lists of tests, as the official harness does, and writes report.json (a report for each instance), summary.json (the report of the run) and results.jsonl, which convert --rewards joins.

A log is a file INSTANCE.log or INSTANCE.txt, or test_output.txt in a folder named after the instance, anywhere in --logs. Exit status 1 means that instances could not be graded: they are listed, and in results.jsonl they have a verdict of the infrastructure.`
}

// Run grades all predictions and writes the reports.
func (f *Cmd) Run(p *cli.Program) error {
	failed, err := f.grade(p.Ctx, p.Out, p.Err)
	if err == nil && failed > 0 {
		return &cli.ExitError{Code: cli.Failed}
	}
	return err
}

// grade writes the three files and returns the number of instances that could not be
// graded.
func (f *Cmd) grade(ctx context.Context, out, errOut io.Writer) (failed int, err error) {
	instances, errI := read(f.Instances, swebench.ReadInstances)
	predictions, errP := read(f.Predictions, swebench.ReadPredictions)
	ids := map[string]bool{}
	for _, p := range predictions {
		ids[p.InstanceID] = true
	}
	logs, errL := findLogs(f.Logs, ids)
	if errI == nil && len(instances) == 0 {
		errI = rollout.Errorf(rollout.KindInput, rollout.Where{File: f.Instances}, "holds no instance").WithFix("fetch it again, or name the file of the data set")
	}
	if errP == nil && len(predictions) == 0 {
		errP = rollout.Errorf(rollout.KindInput, rollout.Where{File: f.Predictions}, "holds no prediction").WithFix("name the file that the agent's run wrote")
	}
	if err := errors.Join(errI, errP, errL); err != nil {
		return 0, err
	}
	byID := map[string]*swebench.Instance{}
	for i := range instances {
		byID[instances[i].InstanceID] = &instances[i]
	}
	text := func(id string) string {
		b, _ := os.ReadFile(logs[id]) // verdict has already listed logs that cannot be read
		harness, _ := os.ReadFile(logs[id+harnessLog])
		return string(b) + "\n" + string(harness)
	}
	reports := map[string]swebench.Report{}
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	seen := map[string]bool{}
	graded, unmarked, patchless := 0, 0, 0
	for _, p := range predictions {
		if err := ctx.Err(); err != nil {
			return failed, err
		}
		if seen[p.InstanceID] {
			return failed, rollout.Errorf(rollout.KindInput, rollout.Where{File: f.Predictions}, "instance %q has two predictions", p.InstanceID)
		}
		seen[p.InstanceID] = true
		res, err := verdict(byID[p.InstanceID], p, logs[p.InstanceID], reports)
		if err != nil {
			failed++
			fmt.Fprintf(errOut, "turnpack: %s: %v\n", rollout.Printable(p.InstanceID), cli.Reason(err))
			res = result{InstanceID: p.InstanceID, Verdict: rollout.VerdictInfraError.String(), Reason: err.Error()}
		}
		if res.Reason == noPatch {
			patchless++
		}
		if _, hasLog := logs[p.InstanceID]; hasLog && err == nil {
			graded++
			if res.Verdict == rollout.VerdictNoMarkers.String() {
				unmarked++
			}
		}
		if err := enc.Encode(res); err != nil {
			return failed, err
		}
	}
	if unmarked > 0 && unmarked == graded {
		fmt.Fprintf(errOut, "turnpack: none of %d test logs has the marks of the test output (>>>>> Start Test Output), so that all count as unresolved: harnesses of SWE-bench before 3.0 write none\n", graded)
	}
	summary := swebench.Summarize(instances, predictions, reports, text)
	var report, whole bytes.Buffer
	if err := errors.Join(swebench.WriteReports(&report, reports), summary.Write(&whole)); err != nil {
		return failed, err
	}
	if err := os.MkdirAll(f.Out, 0o777); err != nil {
		return failed, rollout.Errorf(rollout.KindInput, rollout.Where{File: f.Out}, "the output folder cannot be made: %w", pathless(err)).
			WithFix("choose another --out, or make the folder above it writable")
	}
	if err := f.write([]file{{"report.json", report.Bytes()}, {"summary.json", whole.Bytes()}, {"results.jsonl", lines.Bytes()}}); err != nil {
		return failed, err
	}
	_, err = fmt.Fprintf(out, "%d of %d instances resolved, %d unresolved, %d without a patch, %d not graded, %d without a prediction\n",
		summary.Resolved, summary.Total, summary.Unresolved, patchless, failed, len(summary.IncompleteIDs))
	return failed, err
}

type file struct {
	name string
	text []byte
}

// write writes the files to the output folder, or none if one of them is refused.
func (f *Cmd) write(files []file) (err error) {
	var begun []*atomic.File
	defer func() {
		for _, o := range begun {
			err = errors.Join(err, o.Abort())
		}
	}()
	for _, of := range files {
		o, errO := atomic.Create(filepath.Join(f.Out, of.name), f.Force)
		if errO == nil {
			begun = append(begun, o)
			_, errO = o.Write(of.text)
		}
		err = errors.Join(err, errO)
	}
	if err != nil {
		return err
	}
	for _, o := range begun {
		if err := o.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// verdict grades one prediction and stores its report in reports.
func verdict(in *swebench.Instance, p swebench.Prediction, log string, reports map[string]swebench.Report) (result, error) {
	where := rollout.Where{Rollout: p.InstanceID}
	if in == nil {
		return result{}, rollout.Errorf(rollout.KindInput, where, "the prediction is of no instance")
	}
	if p.Patch == nil || strings.TrimSpace(*p.Patch) == "" {
		return result{InstanceID: p.InstanceID, Resolved: new(bool), Verdict: rollout.VerdictUnresolved.String(), Reason: noPatch}, nil
	}
	if log == "" {
		return result{}, rollout.Errorf(rollout.KindInput, where, "there is no test log").WithFix("name it %s.log, or %s/test_output.txt", p.InstanceID, p.InstanceID)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		return result{}, err
	}
	spec, err := in.Spec()
	if err != nil {
		return result{}, err
	}
	r, err := spec.Grade(p.Patch, string(text))
	if err != nil {
		return result{}, err
	}
	reports[p.InstanceID] = r.Report
	out := result{InstanceID: p.InstanceID, Verdict: r.Verdict.String(), Reason: r.Reason}
	if !r.Verdict.Infra() {
		out.Resolved = &r.Report.Resolved
	}
	return out, nil
}

func read[T any](path string, from func(io.Reader) ([]T, error)) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "cannot be read: %w", pathless(err)).WithFix("check the path, and the right to read it")
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "cannot be read: is a directory").WithFix("name a file")
	}
	out, err := from(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

// harnessLog follows an instance in the map of logs for the log of the harness itself, which tells in
// the summary why there is no test log.
const harnessLog = "/run_instance"

// findLogs returns the log path of each of the instances. Two logs of one instance are an error; other
// files are no logs.
func findLogs(dir string, ids map[string]bool) (map[string]string, error) {
	out := map[string]string{}
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		dir = target // WalkDir does not enter a link
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "cannot be read: %w", pathless(err)).WithFix("check --logs, and the right to read it")
		}
		if d.IsDir() {
			return nil
		}
		id, ext := d.Name(), filepath.Ext(d.Name())
		switch {
		case id == "run_instance.log":
			out[filepath.Base(filepath.Dir(path))+harnessLog] = path
			return nil
		case id == "test_output.txt":
			id = filepath.Base(filepath.Dir(path))
		case ext == ".log" || ext == ".txt":
			id = strings.TrimSuffix(id, ext)
		default:
			return nil
		}
		if !ids[id] {
			return nil
		}
		if first, ok := out[id]; ok {
			return rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "instance %q has another test log, %s", id, first).WithFix("name the folder of one run")
		}
		out[id] = path
		return nil
	})
	return out, err
}

// pathless returns what is wrong with a file, without its name.
func pathless(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
