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

// output is a sink with what it makes: name stands for the batch in the
// summary, files are its files once it is closed, both as seen from the folder.
// discard is an Abort that leaves nothing that a later run could go on from. set is
// the set that the files belong to, nil for one file; groups knows what a target left out.
type output struct {
	step.Sink
	name    string
	files   func() []string
	discard func() error
	set     *shard.Set
	groups  *step.Groups // nil = all rows are written
}

// resumable is what a run writes to, and does not abort: one that goes on from finished
// shards knows it.
func (o *output) resumable() turnpack.Sink {
	if o.set == nil {
		return step.Rows{To: o.Sink}
	}
	return struct {
		step.Rows
		keeper
	}{step.Rows{To: o.Sink}, o.set}
}

// fail ends the output after an error. Where no shard is done nothing stays, so that other
// flags can be tried in the same folder; one that was interrupted keeps what it learnt.
func (o *output) fail(interrupted bool) error {
	var err error
	if o.set != nil && len(o.set.Shards()) == 0 && !interrupted {
		err = o.discard()
	}
	return errors.Join(err, o.Abort())
}

// keeper is the part of a set by which a run goes on.
type keeper interface {
	Kept(rollout string) []byte
	Holds(rollout string) bool
	Keep(rollout string, rows int, value []byte) error
	State() []byte
	SetState(value []byte) error
}

// open makes the sink under dir.
func (f *outputFlags) open(dir string, t *target.Target, o target.Options, opts export.Options, w *weigh.Weigher) (output, error) {
	out, err := f.plain(dir, t, o, opts)
	return f.weighed(out, w), err
}

// weighed is out for rows with their weights and, where its files hold rows of tokens
// alone, without those of very many.
func (f *outputFlags) weighed(out output, w *weigh.Weigher) output {
	if out.Sink != nil && w != nil && !w.Mean() {
		out.Sink = weigh.Weighing{Weigher: w, Sink: out.Sink}
	}
	if out.Sink != nil && (f.packs() || f.Pt) {
		out.Sink = step.Whole{Sink: out.Sink}
	}
	return out
}

// plain makes the sink of rows that have their weights, or get them from t.
func (f *outputFlags) plain(dir string, t *target.Target, o target.Options, opts export.Options) (output, error) {
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
	if err == nil && (f.Target != "none" || o.MeanOverRollouts != nil || o.MaxTokens > 0 || f.RolloutsPerStep > 0 || f.GroupSize > 0) {
		g := &step.Groups{Target: t, To: out.Sink, PerStep: f.RolloutsPerStep}
		if out.set != nil {
			g.EndStep = out.set.EndStep
			g.GoOn(out.set.Shards())
		}
		out.Sink, out.groups = g, g
	}
	return out, err
}

// try makes a sink that refuses the rows that open's would, and writes nothing.
func (f *outputFlags) try(t *target.Target, opts export.Options, w *weigh.Weigher) (output, error) {
	opts.Trace = f.traced()
	if f.packs() { // such files hold no status
		opts.UnknownStatus = rollout.StatusCompleted
	}
	check, err := export.NewChecker(opts)
	g := &step.Groups{Target: t, To: step.Checked{Checker: check}, PerStep: f.RolloutsPerStep}
	out := output{Sink: g, groups: g, files: func() []string { return nil }}
	out.discard = out.Abort
	return f.weighed(out, w), err
}

// maker writes the step files of a trainer's own format, nil for the row schema.
func (f *outputFlags) maker(dir string, o target.Options, opts export.Options) *shard.Maker {
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	switch {
	case f.Target == "prime-rl":
		packs := f.primerl()
		packs.Force = true // the set sees to what is there
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

// one says whether the batch is one file.
func (f *outputFlags) one() bool {
	return f.RowsPerShard == 0 && f.BytesPerShard == 0 && !f.steps() && !f.packs() && !f.Pt
}

// rows makes the sink of files of the row schema: one, or one for each shard.
func (f *outputFlags) rows(dir string, opts export.Options) (output, error) {
	if f.one() {
		const name = "batch.parquet"
		opts.Force = opts.Force || f.begun
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

// shards makes the sink of a set of files.
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
