package traj

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// OpenClaw-RL's swe-rl writes one folder per rollout: traj.json, meta.json,
// patch.diff, and one results.jsonl per evaluation beside the folders.

func isOpenClaw(v value, _ *fileReader) bool {
	return v.Get("messages").Kind() == jsonscan.Array &&
		(strings.HasPrefix(v.Get("trajectory_format").String(), "slime-mini-swe") || v.Get("step_debug").Kind() == jsonscan.Array)
}

func readOpenClaw(j *fileReader, v value) error {
	info := v.Get("info")
	messages, err := j.chatMessages(v.Get("messages"), "/messages")
	if err != nil {
		return err
	}
	sampleAll(messages, rollout.SampledByPolicy)
	if err := j.objectOrNothing(info.Get("eval_result"), 0, "/info/eval_result"); err != nil {
		return err
	}
	r := &rollout.Rollout{
		Instance:   identifier(info.Get("instance_id")),
		Index:      noIndex,
		Messages:   messages,
		Turns:      turns(messages),
		ExitStatus: info.Get("exit_status").String(),
		Outcome:    rollout.Outcome{Reward: j.reward(info.Get("reward"))},
	}
	r.Status = statusOf(r.ExitStatus)
	if group := info.Get("group_index"); !group.IsNull() {
		r.Group = "group-" + identifier(group)
		r.ID = r.Instance + "__g" + identifier(group) + "__i" + identifier(info.Get("index"))
	}
	if err := j.openClawSteps(r, v.Get("step_debug")); err != nil {
		return err
	}
	if len(r.Turns) > 0 {
		j.note("context_not_stored", 0, "the full history is stored; a run with dynamic history showed the model a head and tail cut of it: run the window again to get each step's context")
	}
	for _, key := range []string{"steps", "patch_source", "index"} {
		if x := info.Get(key); !x.IsNull() {
			keep(&r.Metadata, key, x)
		}
	}
	if !j.r.opt.Alone {
		if err := j.openClawFolder(r); err != nil {
			return err
		}
	}
	j.openClawOutcome(r, info)
	if !j.r.opt.Alone {
		if err := j.openClawResults(r); err != nil {
			return err
		}
	}
	if o := &r.Outcome; o.Verdict == rollout.VerdictUnknown && o.Resolved == nil && o.Reward != nil && *o.Reward == 0 {
		o.Reward = nil
		j.note("reward_unfounded", 0, "the reward 0 is what every run begins with, and nothing says that this one was evaluated; none was taken")
	}
	return j.emit(r)
}

// neighbourBytes bounds a file read beside a trajectory.
const neighbourBytes = 64 << 20

// neighbour reads a file of the folder the trajectory lies in, nil when there is
// none.
func (j *fileReader) neighbour(name string) ([]byte, error) {
	if j.file.Path == "" || j.file.Path != j.file.Name {
		return nil, nil // a stream or an archive member has no neighbours
	}
	path := filepath.Join(filepath.Dir(j.file.Path), name)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	if info.Size() > neighbourBytes {
		return nil, rollout.Errorf(rollout.KindLimit, rollout.Where{File: path}, "%d bytes, at most %d are read beside a trajectory", info.Size(), neighbourBytes)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "cannot be read: %w", err)
	}
	defer f.Close()
	j.r.reads(path)
	b, err := io.ReadAll(io.LimitReader(f, neighbourBytes))
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "cannot be read: %w", err)
	}
	return b, nil
}

// openClawFolder joins patch.diff, meta.json and the row of results.jsonl that
// names this folder.
func (j *fileReader) openClawFolder(r *rollout.Rollout) error {
	patch, err := j.neighbour("patch.diff")
	if err != nil {
		return err
	}
	if patch != nil {
		s := strings.ToValidUTF8(string(patch), "\uFFFD")
		r.Outcome.Submission = &s
		j.note("joined", 0, "the submission comes from patch.diff")
	}
	meta, err := j.neighbourJSON("meta.json")
	if err != nil {
		return err
	}
	if t := temperature(meta.Path("sampling_params", "temperature")); t != nil {
		r.Temperature = t
	}
	for _, key := range []string{"model", "sampling_params", "step_limit", "max_tokens"} {
		if x := meta.Get(key); !x.IsNull() && x.Size() <= metadataBytes {
			keep(&r.Metadata, key, x)
		}
	}
	return nil
}

// openClawResults looks for the row of this folder in results.jsonl, one folder
// up. A row names its folder in run_dir; without that it must be the only one
// of the instance.
func (j *fileReader) openClawResults(r *rollout.Rollout) error {
	results, err := j.neighbour(filepath.Join("..", "results.jsonl"))
	if err != nil || results == nil {
		return err
	}
	dir := filepath.Base(filepath.Dir(j.file.Path))
	var d jsonscan.Doc
	var resolved *bool
	same := 0
	for line := range bytes.Lines(results) {
		row, err := d.Parse(bytes.TrimSpace(line), jsonscan.Options{NonFinite: true})
		if err != nil || !row.Get("instance_id").Is(r.Instance) {
			continue
		}
		run := row.Get("run_dir").String()
		if run != "" && filepath.Base(filepath.FromSlash(run)) == dir {
			resolved, same = boolean(row.Get("resolved")), 1
			break
		}
		same++
		resolved = boolean(row.Get("resolved"))
	}
	switch have := r.Outcome.Resolved; {
	case same != 1 || resolved == nil:
	case have == nil && *resolved && r.Outcome.Verdict != rollout.VerdictUnknown:
		j.note("outcome_contradicted", 0, "traj.json says %s, results.jsonl says resolved true; traj.json counts", r.Outcome.Verdict)
	case have == nil && !r.Outcome.Verdict.Infra():
		r.Outcome.Resolved = resolved
		j.note("joined", 0, "resolved comes from results.jsonl")
	case have != nil && *have != *resolved:
		j.note("outcome_contradicted", 0, "traj.json says resolved %t, results.jsonl says %t; traj.json counts", *have, *resolved)
	}
	return nil
}
