package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
)

// Names of the files for steps.
const (
	stepsFolder = "steps"
	stepsName   = "steps.json"
)

// steps says how batches are combined into steps.
type steps struct {
	Groups int `json:"groups"` // batches per step
	Next   int `json:"next"`   // next step to write
	// After is the number of the last batch before step 0, in folders of earlier versions,
	// where steps could start late. Only 0 is accepted.
	After int `json:"after,omitempty"`
}

// from returns the number of the last batch before the next step.
func (p *steps) from() int { return p.Next * p.Groups }

// Steps combines batches into steps of groups batches each: it writes every step whose batches
// have numbers up to upTo, and then removes their files. The step files are
// steps/step_0.parquet and so on, for trainers that read one file per step. A kill at any
// moment neither loses nor changes a step. Call it before the first batch is added; call
// Steps(0, 0) if batches are consumed one by one. A number of groups other than the folder's is
// refused: a batch would otherwise be consumed twice, or never.
func (s *Stream) Steps(groups, upTo int) error {
	if s.keys == nil {
		return zero.Value("stream.Stream", "Open")
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	if err := s.loadSteps(groups, upTo); err != nil {
		return err
	}
	for groups > 0 && s.steps.from()+groups <= upTo {
		if err := s.step(); err != nil {
			return err
		}
	}
	return nil
}

// loadSteps reads the folder's step settings, or writes them.
func (s *Stream) loadSteps(groups, upTo int) error {
	if s.steps != nil && s.steps.Groups == groups {
		return nil
	}
	p, where := steps{Groups: groups}, rollout.Where{File: filepath.Join(s.dir, stepsName)}
	if groups < 0 || upTo < 0 {
		return rollout.Errorf(rollout.KindInput, where, "steps of %d groups up to batch %d, expected 0 or more of both", groups, upTo)
	}
	text, err := os.ReadFile(where.File)
	none := errors.Is(err, fs.ErrNotExist)
	switch {
	case none && groups == 0:
		return nil
	case none && s.lastBatch() > 0:
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: s.dir}, "its %d batches are taken one by one, and none of them is in a step", s.lastBatch()).
			WithFix("go on without steps (Options.StepGroups 0, no --groups-per-step), or have all batches acknowledged and name another folder (--out)")
	case none:
		err = errors.Join(os.MkdirAll(filepath.Join(s.dir, stepsFolder), 0o755), s.saveSteps(p))
	case err == nil:
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return atomic.Locate(where, err)
	}
	if groups == 0 {
		return rollout.Errorf(rollout.KindInput, where, "batches of this folder go into steps of %d groups, and are not taken one by one", p.Groups).
			WithFix("keep their number (Options.StepGroups, --groups-per-step %d), or name another folder (--out)", p.Groups)
	}
	if p.After != 0 || p.Next < 0 {
		return rollout.Errorf(rollout.KindFormat, where, "step %d is the next, and steps begin after batch %d, expected 0 or more and after 0", p.Next, p.After).WithFix("name another folder")
	}
	if p.Groups != groups {
		return rollout.Errorf(rollout.KindInput, where, "its steps have %d groups each, not %d", p.Groups, groups).WithFix("keep their number, or name another folder")
	}
	atomic.Sweep(filepath.Join(s.dir, stepsFolder), "")
	s.steps = &p
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.batches { // a kill left these files of a finished step
		if b := &s.batches[i]; b.Seq <= p.from() {
			err = errors.Join(err, atomic.Remove(s.path(b)))
		}
	}
	return err
}

// lastBatch returns the number of the last batch.
func (s *Stream) lastBatch() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *Stream) saveSteps(p steps) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return atomic.WriteFile(filepath.Join(s.dir, stepsName), append(text, '\n'), true)
}

// step writes the next step. It leaves out batches whose files were removed.
func (s *Stream) step() error {
	p, from := *s.steps, s.steps.from()
	var files []string
	s.mu.Lock()
	for seq := from + 1; seq <= from+p.Groups; seq++ {
		if b, known := s.batch(seq); known {
			if _, missing := os.Stat(s.path(&b)); missing == nil {
				files = append(files, s.path(&b))
			}
		}
	}
	s.mu.Unlock()
	path := filepath.Join(s.dir, stepsFolder, fmt.Sprintf("step_%d%s", p.Next, filepath.Ext(s.name(0))))
	if _, missing := os.Stat(path); missing != nil && len(files) > 0 { // otherwise a kill came after the step was written
		if err := s.join(path, files); err != nil {
			return err
		}
	}
	p.Next++
	if err := s.saveSteps(p); err != nil {
		return err
	}
	s.steps = &p
	for _, file := range files {
		if err := atomic.Remove(file); err != nil {
			return err
		}
	}
	return nil
}

// join writes the rows of files to one file.
func (s *Stream) join(path string, files []string) (err error) {
	o := s.opts
	o.KeepTail, o.KeepUntrained = true, true // accept what the files contain
	o.Trace = true
	var in []*export.Reader
	var names []string
	defer func() {
		for _, r := range in {
			_ = r.Close()
		}
	}()
	for _, file := range files {
		r, err := export.Open(file)
		if err != nil {
			return err
		}
		in = append(in, r)
		info := r.Info()
		if len(in) == 1 {
			o.Tokenizer, o.Template, o.Estimator, o.Metadata = info.Tokenizer, info.Template, info.Estimator, info.Metadata
		}
		if info.Tokenizer != o.Tokenizer || info.Template != o.Template {
			return rollout.Errorf(rollout.KindInput, rollout.Where{File: file}, "was made with another tokenizer or template than %s, and both would be in one step", filepath.Base(files[0])).
				WithFix("give each model a folder of its own; to go on in this one, move the files of the step away")
		}
		names = append(names, info.Columns.String())
		o.Trace = o.Trace && info.Trace
	}
	columns := export.ColumnsNamed(strings.Join(names, ","))
	o.Columns = &columns
	w, err := export.Create(path, o)
	if err != nil {
		return err
	}
	for _, r := range in {
		if err := copyRows(w, r, func(x *rollout.Sample) {
			if columns.Versions && x.Version == nil { // no version was known when this file was written
				x.Version = slices.Repeat([]int32{-1}, x.Len())
			}
		}); err != nil {
			return errors.Join(err, w.Abort())
		}
	}
	return w.Close()
}
