package view

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/examples/turnpack/internal/tokens"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// journal reports whether path is the folder of a live journal.
func journal(path string) bool {
	segments, err := fs.Glob(os.DirFS(path), "[0-9]*.tpj")
	return err == nil && len(segments) > 0
}

// writeRecorded writes the current contents of the journal, open sessions included, as a batch
// into dir, and returns the path of the batch.
func (c *Cmd) writeRecorded(ctx context.Context, dir string) (path string, err error) {
	model, err := tokens.ModelOf(c.Model, c.Template, "")
	if err != nil {
		return "", err
	}
	var all turnpack.Slice
	for r, err := range live.Read(c.journal) {
		if err != nil {
			return "", err
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if len(r.Turns) > 0 {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return "", rollout.Errorf(rollout.KindInput, rollout.Where{File: c.journal}, "the journal has no reply yet").WithFix("look again after a call has ended")
	}
	path = filepath.Join(dir, filepath.Base(c.journal)+".parquet")
	w, err := export.Create(path, export.Options{})
	if err != nil {
		return "", err
	}
	if _, err := (turnpack.Pipeline{Model: model}).Run(ctx, all, w); err != nil {
		return "", errors.Join(err, w.Close())
	}
	return path, w.Close()
}
