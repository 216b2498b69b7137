package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/tokenize"
)

// batches writes each group as two files: the rollouts as they were recorded,
// which convert can read again with other options, and the rows for the trainer.
type batches struct {
	model *tokenize.Model
	dir   string
	last  atomic.Int64 // number of the last batch
}

// batch is one written group.
type batch struct {
	Path    string `json:"path"`
	Rows    int    `json:"rows"`
	Tokens  int64  `json:"tokens"`
	Trained int64  `json:"trained"`
}

// newBatches refuses a folder that holds batches: their numbers would start
// again.
func newBatches(model *tokenize.Model, dir string) (*batches, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	if old, _ := filepath.Glob(filepath.Join(dir, "*.jsonl")); len(old) > 0 {
		return nil, fmt.Errorf("%s holds batches of an earlier run: name another folder", dir)
	}
	return &batches{model: model, dir: dir}, nil
}

// write may be called from any goroutine; the numbers follow the order of calls.
// A group in which every rollout was lost gives no batch, only its record.
func (b *batches) write(group []*rollout.Rollout) (*batch, error) {
	stem := filepath.Join(b.dir, fmt.Sprintf("batch_%06d", b.last.Add(1)))
	var lines []byte
	for _, r := range group {
		var err error
		if lines, err = jsonl.Append(lines, r); err != nil {
			return nil, err
		}
		lines = append(lines, '\n')
	}
	if err := os.WriteFile(stem+".jsonl", lines, 0o666); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(group, func(r *rollout.Rollout) bool { return reward.Score(r, reward.OutcomePolicy{}).Excluded == "" }) {
		return nil, nil
	}
	dst, err := export.Create(stem+".parquet", export.Options{UnknownStatus: rollout.StatusCompleted})
	if err != nil {
		return nil, err
	}
	defer dst.Abort()
	report, err := turnpack.Pipeline{Model: b.model, OnError: rollout.OnErrorStop}.Run(context.Background(), turnpack.Slice(group), dst)
	if err != nil {
		return nil, err
	}
	if err := dst.Close(); err != nil {
		return nil, err
	}
	return &batch{Path: stem + ".parquet", Rows: report.Rows, Tokens: report.Tokens, Trained: report.Trained}, nil
}
