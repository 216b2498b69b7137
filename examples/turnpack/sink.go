package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/examples/turnpack/internal/step"
	"github.com/turnpack/turnpack/examples/turnpack/internal/weigh"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/megatron"
	"github.com/turnpack/turnpack/export/primerl"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/export/slime"
	"github.com/turnpack/turnpack/export/target"
	"github.com/turnpack/turnpack/rollout"
)

// output is a sink and the files it writes. name stands for the batch in the summary, and
// files lists the files after Close; both are relative to the output folder. discard
// aborts so that no later run can resume. set is nil if the batch is one file.
type output struct {
	step.Sink
	name    string
	files   func() []string
	discard func() error
	set     *shard.Set
	groups  *step.Groups // counts what a target left out; nil if all rows are written
}

// resumable returns the sink for a run to write to, without Abort. For a set of files,
// the run can resume after finished shards.
func (o *output) resumable() turnpack.Sink {
	if o.set == nil {
		return step.Rows{To: o.Sink}
	}
	return struct {
		step.Rows
		keeper
	}{step.Rows{To: o.Sink}, o.set}
}

// fail ends the output after an error. If no shard is done and the run was not
// interrupted, it removes everything, so that other flags can be tried in the same
// folder.
func (o *output) fail(interrupted bool) error {
	var err error
	if o.set != nil && len(o.set.Shards()) == 0 && !interrupted {
		err = o.discard()
	}
	return errors.Join(err, o.Abort())
}

// keeper is the part of a set that lets a run resume.
type keeper interface {
	Kept(rollout string) []byte
	Holds(rollout string) bool
	Keep(rollout string, rows int, value []byte) error
	State() []byte
	SetState(value []byte) error
}

// open creates the sink under dir.
func (f *outputFlags) open(dir string, t *target.Target, o target.Options, opts export.Options, w *weigh.Weigher) (output, error) {
	out, err := f.openUnweighted(dir, t, o, opts)
	return f.addWeights(out, w), err
}

// addWeights wraps out so that rows get their loss weights. Targets that pack rows, and formats
// that take only rows with one entry per token, get such rows.
func (f *outputFlags) addWeights(out output, w *weigh.Weigher) output {
	if w != nil && !w.Mean() {
		out.Sink = weigh.Weighing{Weigher: w, Sink: out.Sink}
	}
	if f.packs() || f.Pt {
		out.Sink = step.Whole{Sink: out.Sink}
	}
	return out
}

// openUnweighted creates the sink without loss weights, except those that t sets.
func (f *outputFlags) openUnweighted(dir string, t *target.Target, o target.Options, opts export.Options) (output, error) {
	opts.Trace = f.traced()
	out, err := output{}, error(nil)
	if m := f.maker(dir, o, opts); m != nil {
		out, err = f.shards(dir, shard.Options{Export: opts, GroupsPerShard: f.GroupsPerStep, Maker: m, Source: f.source, Force: opts.Force})
		if f.Target == "prime-rl" {
			out.name = "rollouts"
		}
	} else {
		out, err = f.rows(dir, opts)
	}
	if f.Target != "none" || o.MeanOverRollouts != nil || o.MaxTokens > 0 || f.RolloutsPerStep > 0 || f.GroupSize > 0 {
		g := &step.Groups{Target: t, To: out.Sink, PerStep: f.RolloutsPerStep}
		if out.set != nil {
			g.EndStep = out.set.EndStep
			g.GoOn(out.set.Shards())
		}
		out.Sink, out.groups = g, g
	}
	return out, err
}

// openDryRun creates a sink that refuses the same rows as the sink of open, and writes nothing.
func (f *outputFlags) openDryRun(t *target.Target, opts export.Options, w *weigh.Weigher) (output, error) {
	opts.Trace = f.traced()
	if f.packs() { // these formats hold no status
		opts.UnknownStatus = rollout.StatusCompleted
	}
	check, err := export.NewChecker(opts)
	g := &step.Groups{Target: t, To: step.Checked{Checker: check}, PerStep: f.RolloutsPerStep}
	out := output{Sink: g, groups: g, files: func() []string { return nil }}
	out.discard = out.Abort
	return f.addWeights(out, w), err
}

// maker returns the writer of step files in a trainer's own format, or nil for the row
// schema.
func (f *outputFlags) maker(dir string, o target.Options, opts export.Options) *shard.Maker {
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	switch {
	case f.Target == "prime-rl":
		packs := f.primerl()
		packs.Force = true // the set checks existing files
		return &shard.Maker{ID: fmt.Sprintf("prime-rl %+v", packs), Names: func(i int) (files []string) {
			for rank := range f.Ranks {
				files = append(files, fmt.Sprintf("rollouts/step_%d/rank_%d.bin", i+1, rank))
			}
			return files
		}, Write: func(i int, rows []rollout.Sample) error {
			return primerl.WriteStep(dir, i+1, rows, packs)
		}}
	case f.Target == "megatron":
		packs := f.megatron()
		packs.EOS, packs.Force = o.EOS, true
		names := func(i int) []string {
			return []string{fmt.Sprintf("train-%05d%s", i, megatron.Suffix), fmt.Sprintf("train-%05d.metadata.json", i)}
		}
		return &shard.Maker{ID: fmt.Sprintf("megatron %+v", packs), Names: names, Write: func(i int, rows []rollout.Sample) error {
			return megatron.Write(at(names(i)[0]), at(names(i)[1]), rows, packs)
		}}
	case f.Pt:
		names := func(i int) []string { return []string{fmt.Sprintf("%d.pt", i)} }
		opts.Force = true
		return &shard.Maker{ID: f.Target, Names: names, Write: func(i int, rows []rollout.Sample) error {
			return slime.Write(at(names(i)[0]), rows, slime.Options{Export: opts, Step: i, Rollouts: f.RolloutsPerStep, ByRollout: f.Target == "openclaw"})
		}}
	}
	return nil
}

// oneFile reports whether the batch is one file.
func (f *outputFlags) oneFile() bool {
	return f.RowsPerShard == 0 && f.BytesPerShard == 0 && !f.steps() && !f.packs() && !f.Pt
}

// rows creates the sink for the row schema: one file, or one per shard.
func (f *outputFlags) rows(dir string, opts export.Options) (output, error) {
	if f.oneFile() {
		const name = "batch.parquet"
		opts.Force = opts.Force || f.unrecordedRun
		w, err := export.Create(filepath.Join(dir, name), opts)
		if err != nil {
			return output{}, err
		}
		return output{step.Files{Writer: w}, name, func() []string { return []string{name} }, w.Abort, nil, nil}, nil
	}
	so := shard.Options{Export: opts, RowsPerShard: f.RowsPerShard, BytesPerShard: f.BytesPerShard, GroupsPerShard: f.GroupsPerStep, Source: f.source, Force: opts.Force}
	if f.steps() {
		so.Name = func(i int) string { return fmt.Sprintf(shard.DataFolder+"/step_%d.parquet", i) }
	}
	out, err := f.shards(dir, so)
	out.name = shard.DataFolder
	return out, err
}

// shards creates the sink for a set of files.
func (f *outputFlags) shards(dir string, o shard.Options) (output, error) {
	set, err := shard.Create(dir, o)
	if err != nil {
		return output{}, err
	}
	return output{step.Files{Writer: set}, "", func() []string {
		var files []string
		for _, s := range set.Manifest().Shards {
			for _, file := range s.Files() {
				files = append(files, file.File)
			}
		}
		return append(files, shard.ManifestName)
	}, set.Discard, set, nil}, nil
}
