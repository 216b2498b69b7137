package trainers

import (
	"cmp"
	"encoding/hex"
	"slices"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// layout describes how a trainer writes prompts and replies as text decoded from ids.
type layout struct {
	name           string
	prompt, reply  string
	score          string
	needs          []string // other keys that every record has
	instance, stop string
}

var layouts = []layout{
	{name: "verl", prompt: "input", reply: "output", score: "score", needs: []string{"score", "step"}},
	{name: "skyrl", prompt: "input_prompt", reply: "output_response", score: "score", needs: []string{"env_class"}, stop: "stop_reason"},
	{name: "areal", prompt: "prompt", reply: "completion", score: "reward", needs: []string{"prompt_len", "head_version", "tail_version"}, instance: "task_id"},
	{name: "trl", prompt: "prompt", reply: "completion", needs: []string{"advantage", "step"}},
}

func (l *layout) match(v format.Value, _ *format.File) bool {
	return v.Get(l.prompt).Kind() == jsonscan.String && v.Get(l.reply).Kind() == jsonscan.String &&
		!slices.ContainsFunc(l.needs, func(key string) bool { return v.Get(key).Kind() == jsonscan.Absent })
}

// Verl reads JSONL of rollout_data_dir and validation_data_dir.
func Verl() format.Importer { return layouts[0].importer() }

// SkyRL reads dumps of evaluations.
func SkyRL() format.Importer { return layouts[1].importer() }

// AReaL reads dumps of trajectories.
func AReaL() format.Importer { return layouts[2].importer() }

// TRL reads tables of completions.
func TRL() format.Importer { return layouts[3].importer() }

func (l layout) importer() format.Importer {
	return format.Importer{Name: l.name, Match: l.match, Read: l.read, Stateless: true}
}

// read reads a record. It has neither ids nor messages, so nothing of it can be trained.
func (l *layout) read(in *format.File, v format.Value) error {
	for _, key := range []string{l.prompt, l.reply} {
		if v.Get(key).Kind() != jsonscan.String {
			return in.Want(v.Get(key), 0, "/"+key, "a text")
		}
	}
	r := &rollout.Rollout{
		Index:    format.NoIndex,
		Instance: format.Identifier(v.Get(l.instance)),
		Messages: []rollout.Message{
			{Role: rollout.RoleUser, Content: in.Text(v.Get(l.prompt), rollout.At(0), "/"+l.prompt)},
			{Role: rollout.RoleAssistant, Content: in.Text(v.Get(l.reply), rollout.At(1), "/"+l.reply), Sampled: rollout.SampledByPolicy},
		},
		ExitStatus: v.Get(l.stop).String(),
	}
	r.Status = format.StatusOf(r.ExitStatus)
	digest := format.Digest(r.Messages[:1])
	r.Group = cmp.Or(r.Instance, "prompt-"+hex.EncodeToString(digest[:8]))
	t := rollout.Turn{Message: 1, FinishReason: r.ExitStatus, Incomplete: "the text is what ids were decoded to, and the ids are not recorded"}
	t.Context.Unknown = true
	from, to := format.Version(v.Get("head_version")), format.Version(v.Get("tail_version"))
	if from != nil && to != nil && *from == *to {
		t.Version = from
	}
	r.Turns = []rollout.Turn{t}
	in.Note("incomplete", rollout.At(1), "%s writes the text that ids were decoded to: neither the ids nor the messages are recorded, so that the reply is never trained", l.name)
	l.reward(in, r, v)
	in.Leftover(r, v, l.prompt, l.reply, l.score)
	return in.Emit(r)
}

// reward reads the score: a number, or one per token, which are added up. A table of TRL
// has a column per reward function but not their weights.
func (l *layout) reward(in *format.File, r *rollout.Rollout, v format.Value) {
	if l.score != "" {
		x := v.Get(l.score)
		if x.Kind() != jsonscan.Array {
			r.Outcome.Reward = in.Reward(x)
			return
		}
		sum := 0.0
		for _, y := range x.Items() {
			f, ok := y.Float()
			if !ok {
				in.Reward(y)
				return
			}
			sum += f
		}
		r.Outcome.Reward = &sum
		return
	}
	var columns []format.Value
	for key, x := range v.Members() {
		if x.Kind() == jsonscan.Number && key != "step" && key != "advantage" {
			columns = append(columns, x)
		}
	}
	if len(columns) == 1 {
		r.Outcome.Reward = in.Reward(columns[0])
	} else if len(columns) > 1 {
		in.Note("outcome_unreadable", 0, "%d columns of rewards, whose weights the table does not tell; none was taken", len(columns))
	}
}
