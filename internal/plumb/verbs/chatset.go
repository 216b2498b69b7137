package verbs

import (
	"context"
	"errors"
	"os"

	"github.com/turnpack/turnpack/export/chats"
	"github.com/turnpack/turnpack/internal/plumb/pipe"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// writeSet writes the rollouts of dumps as a Parquet data set of conversations.
func writeSet(opt traj.Options, root, path, to string) (pipe.Run, error) {
	layout, ok := map[string]string{"chat": "openai", "sharegpt": "sharegpt"}[to]
	if !ok {
		return pipe.Run{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--to"}, "found %q, expected chat or sharegpt for a Parquet file", to)
	}
	return pipe.Run{Files: func(ctx context.Context, paths []string, emit func(any) error) error {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "cannot be written: %w", err)
		}
		report := setReport{Set: path, Notes: map[string]int{}}
		w, err := chats.NewWriter(file, layout)
		if err == nil {
			err = importFiles(ctx, opt, func(r *rollout.Rollout, _ string) (any, error) {
				notes, err := w.Write(r)
				if err == nil {
					report.Rollouts++
					for _, n := range notes {
						report.Notes[n.Code]++
					}
				}
				return nil, err
			}, root, paths, func(line any) error {
				if line == nil {
					return nil // the rollout is in the file
				}
				return emit(line)
			})
			err = errors.Join(err, w.Close())
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return errors.Join(err, os.Remove(path)) // do not leave a partial data set
		}
		return emit(report)
	}}, nil
}

// setReport reports what was written, and how often the data set could not hold some data
// of a rollout.
type setReport struct {
	Set      string         `json:"set"`
	Rollouts int            `json:"rollouts"`
	Notes    map[string]int `json:"notes,omitempty"`
}
