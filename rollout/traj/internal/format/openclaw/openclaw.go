package openclaw

import (
	"bytes"
	"path/filepath"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Importer reads traj.json and the files beside it.
func Importer() format.Importer {
	return format.Importer{Name: "openclaw-rl", Match: match, Read: read, Stateless: true}
}

func match(v format.Value, _ *format.File) bool {
	return v.Get("messages").Kind() == jsonscan.Array &&
		(strings.HasPrefix(v.Get("trajectory_format").String(), "slime-mini-swe") || v.Get("step_debug").Kind() == jsonscan.Array)
}

func read(in *format.File, v format.Value) error {
	info := v.Get("info")
	messages := in.ChatMessages(v.Get("messages"), "/messages")
	format.MarkReplies(messages, rollout.SampledByPolicy)
	in.ObjectOrNull(info.Get("eval_result"), 0, "/info/eval_result")
	r := &rollout.Rollout{
		Instance:   format.Identifier(info.Get("instance_id")),
		Index:      format.NoIndex,
		Messages:   messages,
		Turns:      format.TurnsOf(messages),
		ExitStatus: info.Get("exit_status").String(),
		Outcome:    rollout.Outcome{Reward: in.Reward(info.Get("reward"))},
	}
	r.Status = format.StatusOf(r.ExitStatus)
	if group := info.Get("group_index"); !group.IsNull() {
		r.Group = "group-" + format.Identifier(group)
		r.ID = r.Instance + "__g" + format.Identifier(group) + "__i" + format.Identifier(info.Get("index"))
	}
	if err := steps(in, r, v.Get("step_debug")); err != nil {
		return err
	}
	if len(r.Turns) > 0 {
		in.Note("context_not_stored", 0, "the full history is stored; a run with dynamic history showed the model a head and tail cut of it: run the window again to get each step's context")
	}
	for _, key := range []string{"steps", "patch_source", "index"} {
		format.KeepAny(&r.Metadata, key, info.Get(key))
	}
	if !in.Settings.Alone {
		if err := joinFolder(in, r); err != nil {
			return err
		}
	}
	outcome(in, r, info)
	if !in.Settings.Alone {
		if err := joinResults(in, r); err != nil {
			return err
		}
	}
	if o := &r.Outcome; o.Verdict == rollout.VerdictUnknown && o.Resolved == nil && o.Reward != nil && *o.Reward == 0 {
		o.Reward = nil
		in.Note("reward_unfounded", 0, "the reward 0 is what every run begins with, and nothing says that this one was evaluated; none was taken")
	}
	return in.Emit(r)
}

// joinFolder adds patch.diff, meta.json and the row of results.jsonl that names this
// folder.
func joinFolder(in *format.File, r *rollout.Rollout) error {
	patch, err := in.Neighbour("patch.diff")
	if err != nil {
		return err
	}
	if patch != nil {
		s := strings.ToValidUTF8(string(patch), "\uFFFD")
		r.Outcome.Submission = &s
		in.Note("joined", 0, "the submission comes from patch.diff")
	}
	meta, err := in.NeighbourJSON("meta.json")
	if err != nil {
		return err
	}
	if t := format.Temperature(meta.Path("sampling_params", "temperature")); t != nil {
		r.Temperature = t
	}
	for _, key := range []string{"model", "sampling_params", "step_limit", "max_tokens"} {
		if x := meta.Get(key); !x.IsNull() && x.Size() <= format.MetadataBytes {
			format.Keep(&r.Metadata, key, x)
		}
	}
	return nil
}

// joinResults adds the row for this folder in results.jsonl, one folder up. A row names its
// folder in run_dir; without run_dir it must be the only row of the instance.
func joinResults(in *format.File, r *rollout.Rollout) error {
	results, err := in.Neighbour(filepath.Join("..", "results.jsonl"))
	if err != nil || results == nil {
		return err
	}
	dir := filepath.Base(filepath.Dir(in.Path))
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
			resolved, same = format.Boolean(row.Get("resolved")), 1
			break
		}
		same++
		resolved = format.Boolean(row.Get("resolved"))
	}
	switch have := r.Outcome.Resolved; {
	case same != 1 || resolved == nil:
	case have == nil && *resolved && r.Outcome.Verdict != rollout.VerdictUnknown:
		in.Note("outcome_contradicted", 0, "traj.json says %s, results.jsonl says resolved true; traj.json counts", r.Outcome.Verdict)
	case have == nil && !r.Outcome.Verdict.Infra():
		r.Outcome.Resolved = resolved
		in.Note("joined", 0, "resolved comes from results.jsonl")
	case have != nil && *have != *resolved:
		in.Note("outcome_contradicted", 0, "traj.json says resolved %t, results.jsonl says %t; traj.json counts", *have, *resolved)
	}
	return nil
}
