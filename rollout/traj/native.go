package traj

import (
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

func isNative(v value, _ *job) bool { return v.Get("turnpack_version").Kind() == jsonscan.Number }

// readNative hands a line to the native reader. A rollout that was imported
// before keeps the origin of that time.
func readNative(j *job, v value) error {
	r, err := rollout.ParseJSON(v.Raw(), rollout.ReaderOptions{File: j.file.Name, Limits: rollout.Limits{
		Depth: j.r.opt.Limits.Depth, Messages: j.r.opt.Limits.Messages,
	}})
	if err != nil {
		return err
	}
	if r.Origin.Format == "native" {
		r.Origin = rollout.Origin{}
	}
	return j.emit(r)
}
