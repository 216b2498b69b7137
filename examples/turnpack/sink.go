package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/megatron"
	"github.com/turnpack/turnpack/export/primerl"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/export/slime"
	"github.com/turnpack/turnpack/export/target"
	"github.com/turnpack/turnpack/rollout"
)

// sink is where the rows of a conversion go. Close makes the output visible,
// Abort leaves none that looks whole.
type sink interface {
	Write(rollout.Sample) error
	Close() error
	Abort() error
}

// output is a sink with what it makes: name stands for the batch in the
// summary, files are its files once it is closed, both as seen from the folder.
// discard is an Abort that leaves nothing that a later run could go on from.
type output struct {
	sink
	name    string
	files   func() []string
	discard func() error
}

// open makes the sink under dir.
func (f *outputFlags) open(dir string, t *target.Target, o target.Options, opts export.Options, w *weigher) (output, error) {
	out, err := f.plain(dir, t, o, opts)
	if err == nil && w != nil && !w.mean() {
		out.sink = weighing{w, out.sink}
	}
	return out, err
}

// plain makes the sink of rows that have their weights, or get them from t.
func (f *outputFlags) plain(dir string, t *target.Target, o target.Options, opts export.Options) (output, error) {
	opts.Trace = f.traced()
	steps := func(name string, write func(step int, rows []rollout.Sample) ([]string, error)) (output, error) {
		s := &stepSink{target: t, perStep: f.GroupsPerStep, dir: dir, write: write}
		return output{s, name, func() []string { return s.files }, s.Abort}, nil
	}
	switch {
	case f.Target == "prime-rl":
		return steps("rollouts", func(step int, rows []rollout.Sample) ([]string, error) {
			o := f.primerl()
			o.Force = opts.Force
			_, err := primerl.WriteStep(dir, step+1, rows, o)
			var files []string
			for rank := range f.Ranks {
				files = append(files, fmt.Sprintf("rollouts/step_%d/rank_%d.bin", step+1, rank))
			}
			return files, err
		})
	case f.Target == "megatron":
		return steps("", func(step int, rows []rollout.Sample) ([]string, error) {
			files := []string{fmt.Sprintf("train-%05d%s", step, megatron.Suffix), fmt.Sprintf("train-%05d.metadata.json", step)}
			packs := f.megatron()
			packs.EOS, packs.Force = o.EOS, opts.Force
			_, err := megatron.Write(filepath.Join(dir, files[0]), filepath.Join(dir, files[1]), rows, packs)
			return files, err
		})
	case f.Pt:
		return steps("", func(step int, rows []rollout.Sample) ([]string, error) {
			name := fmt.Sprintf("%d.pt", step)
			w, err := slime.Create(filepath.Join(dir, name), slime.Options{Export: opts, Step: step})
			if err != nil {
				return nil, err
			}
			for _, r := range rows {
				if err := w.Write(r); err != nil {
					return nil, errors.Join(err, w.Abort())
				}
			}
			return []string{name}, w.Close()
		})
	}
	out, err := f.rows(dir, opts)
	if err == nil && (f.Target != "none" || o.MeanOverRollouts || o.MaxTokens > 0) {
		out.sink = &groupSink{target: t, to: out.sink}
	}
	return out, err
}

// try makes a sink that refuses the rows that open's would, and writes nothing.
func (f *outputFlags) try(t *target.Target, opts export.Options, w *weigher) (output, error) {
	opts.Trace = f.traced()
	if f.packs() { // such files hold no status
		opts.UnknownStatus = rollout.StatusCompleted
	}
	check, err := export.NewChecker(opts)
	out := output{sink: &groupSink{target: t, to: checked{check}}, files: func() []string { return nil }}
	out.discard = out.Abort
	if err == nil && w != nil && !w.mean() {
		out.sink = weighing{w, out.sink}
	}
	return out, err
}

// checked is the sink of rows that are checked only.
type checked struct{ *export.Checker }

func (c checked) Write(s rollout.Sample) error { return c.Check(&s) }
func (c checked) Close() error                 { return c.End() }
func (c checked) Abort() error                 { return nil }

// rows makes the sink of files of the row schema: one, or one for each shard.
func (f *outputFlags) rows(dir string, opts export.Options) (output, error) {
	if f.RowsPerShard == 0 && f.BytesPerShard == 0 && f.GroupsPerStep == 0 {
		const name = "batch.parquet"
		w, err := export.Create(filepath.Join(dir, name), opts)
		if err != nil {
			return output{}, err
		}
		return output{w, name, func() []string { return []string{name} }, w.Abort}, nil
	}
	so := shard.Options{Export: opts, RowsPerShard: f.RowsPerShard, BytesPerShard: f.BytesPerShard, GroupsPerShard: f.GroupsPerStep, Force: opts.Force}
	if f.GroupsPerStep > 0 {
		so.Name = func(i int) string { return fmt.Sprintf("step_%d.parquet", i) }
	}
	set, err := shard.Create(dir, so)
	if err != nil {
		return output{}, err
	}
	return output{set, "", func() []string {
		var files []string
		for _, s := range set.Manifest().Shards {
			files = append(files, s.File)
		}
		return append(files, shard.ManifestName)
	}, set.Discard}, nil
}

// groupSink prepares each group for a trainer before it is written.
type groupSink struct {
	target *target.Target
	to     sink
	group  []rollout.Sample
}

func (g *groupSink) Write(s rollout.Sample) error {
	if len(g.group) > 0 && g.group[0].Group != s.Group {
		if err := g.flush(); err != nil {
			return err
		}
	}
	g.group = append(g.group, s)
	return nil
}

func (g *groupSink) flush() error {
	rows, err := g.target.Group(g.group)
	g.group = nil
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := g.to.Write(r); err != nil {
			return err
		}
	}
	return nil
}

// Close writes the last group and ends the output.
func (g *groupSink) Close() error {
	if len(g.group) > 0 {
		if err := g.flush(); err != nil {
			return errors.Join(err, g.to.Abort())
		}
	}
	return g.to.Close()
}

// Abort drops the output.
func (g *groupSink) Abort() error { return g.to.Abort() }

// stepSink collects the groups of a training step and writes it at once.
type stepSink struct {
	target  *target.Target
	perStep int // 0 = one step
	dir     string
	write   func(step int, rows []rollout.Sample) (files []string, err error)

	group, rows  []rollout.Sample
	groups, step int
	files        []string
}

func (s *stepSink) Write(row rollout.Sample) error {
	if len(s.group) > 0 && s.group[0].Group != row.Group {
		if err := s.endGroup(); err != nil {
			return err
		}
	}
	s.group = append(s.group, row)
	return nil
}

func (s *stepSink) endGroup() error {
	rows, err := s.target.Group(s.group)
	s.group = nil
	if err != nil {
		return err
	}
	s.rows = append(s.rows, rows...)
	if s.groups++; s.groups == s.perStep {
		return s.endStep()
	}
	return nil
}

func (s *stepSink) endStep() error {
	rows := s.rows
	s.rows, s.groups = nil, 0
	if len(rows) == 0 {
		return nil
	}
	files, err := s.write(s.step, rows)
	if err != nil {
		return err
	}
	s.step++
	s.files = append(s.files, files...)
	return nil
}

// Close writes the last step.
func (s *stepSink) Close() error {
	var err error
	if len(s.group) > 0 {
		err = s.endGroup()
	}
	if err == nil {
		err = s.endStep()
	}
	if err != nil {
		return errors.Join(err, s.Abort())
	}
	return nil
}

// Abort removes the steps that were written: no run goes on from them.
func (s *stepSink) Abort() error {
	var errs []error
	for _, name := range s.files {
		path := filepath.Join(s.dir, name)
		errs = append(errs, os.Remove(path))
		for up := filepath.Dir(path); up != filepath.Clean(s.dir) && os.Remove(up) == nil; up = filepath.Dir(up) {
		}
	}
	s.files = nil
	return errors.Join(errs...)
}
