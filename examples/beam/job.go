package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize"
)

func init() {
	register.DoFn3x1[context.Context, string, func(int, []byte), error](&readDump{})
	register.Emitter2[int, []byte]()
	register.DoFn3x1[context.Context, int, func(*[]byte) bool, error](&writeShard{})
	register.Iter1[[]byte]()
}

// job reads every dump and keys each rollout by the shard of its group, so that
// a group is whole where its advantages are made; each shard becomes one file.
func job(dumps, model, out string, shards int) (*beam.Pipeline, error) {
	files, err := filepath.Glob(dumps)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 || model == "" || shards < 1 {
		return nil, fmt.Errorf("found %d dumps at %q, model %q and %d shards, expected one or more of each", len(files), dumps, model, shards)
	}
	p, s := beam.NewPipelineWithRoot()
	keyed := beam.ParDo(s, &readDump{Shards: shards}, beam.Reshuffle(s, beam.CreateList(s, files)))
	beam.ParDo0(s, &writeShard{Model: model, Out: out, Shards: shards}, beam.GroupByKey(s, keyed))
	return p, nil
}

// readDump emits the rollouts of one file as native JSON, by shard.
type readDump struct{ Shards int }

func (f *readDump) ProcessElement(ctx context.Context, file string, emit func(int, []byte)) error {
	in, err := traj.Open([]string{file}, traj.Options{})
	if err != nil {
		return err
	}
	defer in.Close()
	for r, err := range in.All() {
		if err != nil {
			return err
		}
		line, err := jsonl.Append(nil, r)
		if err != nil {
			return err
		}
		h := fnv.New32a()
		h.Write([]byte(cmp.Or(r.Group, r.Instance, r.ID)))
		emit(int(h.Sum32()%uint32(f.Shards)), line)
	}
	for _, err := range in.Report().Errors {
		log.Warnf(ctx, "left out: %v", err)
	}
	return nil
}

// writeShard makes one file of the rollouts of a shard. The bytes and the name
// depend on the rollouts alone, and the file appears whole: a bundle that the
// runner repeats writes the same file again.
type writeShard struct {
	Model, Out string
	Shards     int

	model *tokenize.Model
}

func (f *writeShard) Setup() (err error) {
	f.model, err = tokenize.Load(f.Model, tokenize.LoadOptions{})
	return err
}

func (f *writeShard) ProcessElement(ctx context.Context, shard int, next func(*[]byte) bool) error {
	var lines [][]byte
	for line := []byte(nil); next(&line); line = nil {
		lines = append(lines, line)
	}
	slices.SortFunc(lines, bytes.Compare) // the runner keeps no order
	var group turnpack.Slice
	for _, line := range lines {
		r, err := jsonl.Parse(line, jsonl.Options{})
		if err != nil {
			return err
		}
		group = append(group, r)
	}
	if !slices.ContainsFunc(group, func(r *rollout.Rollout) bool { return reward.Score(r, reward.OutcomePolicy{}).Excluded == "" }) {
		log.Warnf(ctx, "shard %d: none of %d rollouts has a recorded outcome", shard, len(group))
		return nil
	}
	path := filepath.Join(f.Out, fmt.Sprintf("rows-%05d-of-%05d.parquet", shard, f.Shards))
	if err := os.MkdirAll(f.Out, 0o777); err != nil {
		return err
	}
	dst, err := export.Create(path, export.Options{UnknownStatus: rollout.StatusCompleted})
	if err != nil {
		return err
	}
	defer dst.Abort()
	report, err := turnpack.Pipeline{Model: f.model}.Run(ctx, group, dst)
	if err != nil {
		return err
	}
	for _, s := range report.Skips {
		log.Warnf(ctx, "left out: %v", s.Error)
	}
	log.Infof(ctx, "%s: %d rows of %d rollouts", path, report.Rows, report.Rollouts)
	return dst.Close()
}
