package traj

import (
	"crypto/sha256"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// Harbor exports a run as ShareGPT records, one for each model call with the
// conversation so far ("episode-3"), or the last of them only.

// episode names the run of such a record, and marks the replies that an earlier
// record of the run holds in the same context: each was sampled once.
func (j *fileReader) episode(r *rollout.Rollout, v value) {
	run := firstID(v, "run_id", "trial_name")
	if run == "" || v.Get("episode").Kind() != jsonscan.String {
		return
	}
	r.ID = run + "/" + v.Get("episode").String()
	if r.Instance == "" {
		r.Instance = identifier(v.Get("task"))
	}
	so := sha256.Sum256([]byte(run))
	for i := range r.Messages {
		next := digest(r.Messages[i : i+1])
		so = sha256.Sum256(append(so[:], next[:]...))
		if r.Messages[i].Sampled != rollout.SampledByPolicy {
			continue
		}
		key := [16]byte(so[:16])
		if _, known := j.r.replies[key]; known {
			r.Messages[i].Sampled = rollout.SampledCopied
		}
		j.r.replies[key] = struct{}{}
	}
}
