package traj

import (
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// isNative knows the version or, since that may be absent, recorded turns. An
// OpenAI chat with such turns would lose them elsewhere.
func isNative(v value, _ *job) bool {
	if v.Get("turnpack_version").Kind() == jsonscan.Number {
		return true
	}
	for _, t := range v.Get("turns").Items() {
		return t.Get("output_ids").Kind() == jsonscan.Array || t.Get("message").Kind() == jsonscan.Number
	}
	return false
}

// readNative hands a line to the native reader. A rollout that was imported
// before keeps the origin of that time.
func readNative(j *job, v value) error {
	if !isNative(v, j) && v.Get("messages").Kind() == jsonscan.Absent && v.Get("turns").Kind() == jsonscan.Absent {
		return j.want(v.Get("messages"), 0, "/messages", "a list")
	}
	r, err := rollout.ParseJSON(v.Raw(), rollout.ReaderOptions{File: j.file.Name, Limits: rollout.Limits{
		Depth: j.r.opt.Limits.Depth, Messages: j.r.opt.Limits.Messages,
	}})
	if err != nil {
		return err
	}
	if r.Origin.Format == "native" {
		r.Origin = rollout.Origin{}
	}
	if v.Get("index").Kind() == jsonscan.Absent {
		r.Index = noIndex
	}
	return j.emit(r)
}
