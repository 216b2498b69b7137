package data

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/turnpack/turnpack/prm/openai"
	"github.com/turnpack/turnpack/reward/patch"
	"github.com/turnpack/turnpack/reward/pivot"
	"github.com/turnpack/turnpack/reward/swebench"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// pivotFlags are the flags of "data pivot".
type pivotFlags struct {
	in                   []string
	dir                  string
	minFiles, minLines   int
	instances, rewards   paths
	judge, model         string
	votes, most, perRoll int
	validation           float64
	seed                 string
	batches, text, force bool
	agent                string
}

// manifest is manifest.json: what was read, what was left out and why, and what was
// written.
type manifest struct {
	Trajectories int            `json:"trajectories"`
	Unread       int            `json:"unread"` // of unknown format, or damaged
	LeftOut      map[string]int `json:"left_out"`
	Kept         int            `json:"kept"` // trajectories
	Turns        int            `json:"turns"`
	Candidates   int            `json:"candidates"`
	Protocols    map[string]int `json:"protocols"`
	Categories   map[string]int `json:"categories"`
	Selection    string         `json:"selection"`         // all, judge or rewards
	Dropped      map[string]int `json:"dropped,omitempty"` // candidates, by reason
	JudgePrompt  string         `json:"judge_prompt,omitempty"`
	JudgeErrors  int            `json:"judge_errors,omitempty"`
	MinFiles     int            `json:"min_files"`
	MinLines     int            `json:"min_lines"`
	Seed         string         `json:"seed"`
	Validation   float64        `json:"validation"`
	Files        []madeFile     `json:"files"`
}

type madeFile struct {
	Name      string `json:"name"`
	Rows      int    `json:"rows"`
	Instances int    `json:"instances"`
	SHA256    string `json:"sha256"`
}

// step is a candidate step and its data row.
type step struct {
	pivot.Candidate
	row      pivot.DataRow
	instance string
}

// pivots writes the data rows for pivot training to train.jsonl and validation.jsonl,
// which share no instance, and manifest.json.
func pivots(ctx context.Context, args []string, out io.Writer) error {
	var f pivotFlags
	fs := flag.NewFlagSet("swerl data pivot", flag.ContinueOnError)
	fs.IntVar(&f.minFiles, "min-files", 2, "least files that a trajectory's patch changes; 0 with --min-lines 0 takes those without a patch too")
	fs.IntVar(&f.minLines, "min-lines", 26, "least lines that it adds and removes")
	fs.Var(&f.instances, "instances", "`rows` of SWE-Gym or SWE-bench, for patches of trajectories that hold none")
	fs.StringVar(&f.judge, "judge", "", "base `URL` of a model that says which steps are pivots")
	fs.StringVar(&f.model, "judge-model", "", "`name` of that model")
	fs.IntVar(&f.votes, "votes", 3, "votes of the judge on each step; the majority decides")
	fs.Var(&f.rewards, "rewards", "`file` of answers to these rows, as turnpack pivot score writes it: steps whose rewards differ are kept")
	fs.IntVar(&f.most, "total", 0, "with --rewards, most steps; 0 = any")
	fs.IntVar(&f.perRoll, "per-trajectory", 0, "with --rewards, most steps of a trajectory; 0 = any")
	fs.Float64Var(&f.validation, "validation", 0.05, "share of instances in validation.jsonl")
	fs.StringVar(&f.seed, "seed", "0", "seed of the split")
	fs.BoolVar(&f.batches, "batches", false, "keep steps of several calls, which swe_pivot does not score")
	fs.BoolVar(&f.text, "keep-text", false, "leave calls in text where they were recorded so; turnpack pivot score reads such answers, NeMo-Gym does not")
	fs.StringVar(&f.agent, "agent", pivot.SWEPivotAgent.Name, "`name` of NeMo-Gym's agent")
	fs.BoolVar(&f.force, "force", false, "replace files that are there")
	var err error
	if f.in, f.dir, err = parse(fs, args, out); err != nil {
		return err
	}
	switch {
	case f.judge != "" && len(f.rewards) > 0:
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--rewards"}, "steps are selected by a judge or by rewards, not by both")
	case f.judge != "" && (f.model == "" || f.votes < 1):
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--judge"}, "a judge needs --judge-model and at least one vote")
	case !(f.validation >= 0 && f.validation <= 1):
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--validation"}, "expected a share from 0 to 1, found %v", f.validation)
	}
	m := manifest{LeftOut: map[string]int{}, Protocols: map[string]int{}, Categories: map[string]int{}, Selection: "all", MinFiles: f.minFiles, MinLines: f.minLines, Seed: f.seed, Validation: f.validation}
	steps, err := f.read(ctx, &m)
	if err != nil {
		return err
	}
	switch {
	case f.judge != "":
		steps, err = f.judged(ctx, steps, &m)
	case len(f.rewards) > 0:
		steps, err = f.rewarded(ctx, steps, &m)
	}
	if err != nil {
		return err
	}
	made, err := f.split(steps, &m)
	if err != nil {
		return err
	}
	if made["manifest.json"], err = json.MarshalIndent(m, "", "  "); err != nil {
		return err
	}
	made["manifest.json"] = append(made["manifest.json"], '\n')
	if err := made.write(f.dir, f.force); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d trajectories, %d kept; %d candidates, %d rows\n", m.Trajectories, m.Kept, m.Candidates, len(steps))
	return nil
}

// read returns the rows of all candidates in trajectories whose patch is large enough.
func (f *pivotFlags) read(ctx context.Context, m *manifest) ([]step, error) {
	patches := map[string]string{}
	err := eachRow(ctx, f.instances, func(where rollout.Where, row json.RawMessage) error {
		var in swebench.Instance
		if err := json.Unmarshal(row, &in); err != nil {
			return rollout.Errorf(rollout.KindFormat, where, "no instance: %w", err)
		}
		patches[in.InstanceID] = in.Patch
		return nil
	})
	if err != nil {
		return nil, err
	}
	src, err := traj.Open(f.in, traj.Options{OnError: rollout.OnErrorSkip})
	if err != nil {
		return nil, err
	}
	data := pivot.Data{Agent: pivot.AgentRef{Type: pivot.SWEPivotAgent.Type, Name: f.agent}, Text: f.text}
	var steps []step
	names := map[string]bool{}
	for r, err := range src.All() {
		if err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m.Trajectories++
		if reason := f.tooSmall(r, patches); reason != "" {
			m.LeftOut[reason]++
			continue
		}
		candidates := pivot.Candidates(r, false)
		if len(candidates) == 0 {
			m.LeftOut["no_tool_call"]++
			continue
		}
		m.Kept++
		for i := range r.Messages {
			if r.Messages[i].Role == rollout.RoleAssistant {
				m.Turns++
			}
		}
		for _, c := range candidates {
			if len(c.Action.Calls) > 1 && !f.batches {
				m.drop("several_calls")
				continue
			}
			row, err := data.Row(r, c)
			if err != nil {
				return nil, err
			}
			row.Patch = cmp.Or(row.Patch, patches[r.Instance])
			if len(row.Request.Input) == 0 {
				m.drop("no_prompt")
				continue
			}
			if names[row.UUID] {
				return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: r.Origin.File, Rollout: r.ID}, "two trajectories have this id").WithFix("read them into folders of their own")
			}
			names[row.UUID] = true
			m.Candidates++
			m.Protocols[cmp.Or(string(c.Protocol), "native")]++
			m.Categories[cmp.Or(row.Metadata.Category, "unknown")]++
			steps = append(steps, step{c, row, cmp.Or(r.Instance, r.Group, r.ID)})
		}
	}
	m.Unread = src.Report().Skipped
	return steps, nil
}

func (m *manifest) drop(reason string) {
	if m.Dropped == nil {
		m.Dropped = map[string]int{}
	}
	m.Dropped[reason]++
}

// tooSmall returns why a trajectory's patch excludes it, or "".
func (f *pivotFlags) tooSmall(r *rollout.Rollout, patches map[string]string) string {
	if f.minFiles <= 0 && f.minLines <= 0 {
		return ""
	}
	text := patches[r.Instance]
	if r.Outcome.Submission != nil && *r.Outcome.Submission != "" {
		text = *r.Outcome.Submission
	}
	if text == "" {
		return "no_patch"
	}
	p, err := patch.Parse(text)
	if err != nil { // OpenHands reads patches from a terminal, which ends lines with \r\n
		p, err = patch.Parse(strings.ReplaceAll(text, "\r\n", "\n"))
	}
	if err != nil {
		return "patch_unreadable"
	}
	changed, lines := map[string]bool{}, 0
	for _, e := range p.Edits() {
		changed[e.Path] = true
		lines += len(e.Added) + len(e.Deleted)
	}
	switch {
	case len(changed) < f.minFiles:
		return "few_files"
	case lines < f.minLines:
		return "few_lines"
	}
	return ""
}

// judged keeps the steps that most votes call pivots. Steps without a readable vote are
// dropped and counted.
func (f *pivotFlags) judged(ctx context.Context, steps []step, m *manifest) ([]step, error) {
	m.Selection, m.JudgePrompt = "judge", judgePrompt
	client, err := openai.New(openai.Options{Endpoints: []string{f.judge}, Model: f.model})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	keep, failed, err := voteOnSteps(ctx, client, steps, f.votes)
	if err != nil {
		return nil, err
	}
	var kept []step
	for i, tags := range keep {
		switch {
		case failed[i] != nil:
			m.JudgeErrors++
			m.drop("no_vote")
		case tags == nil:
			m.drop("no_pivot")
		default:
			steps[i].row.Tags = tags
			kept = append(kept, steps[i])
		}
	}
	if len(steps) > 0 && m.JudgeErrors == len(steps) {
		return nil, rollout.Errorf(rollout.KindScorer, rollout.Where{Field: "--judge"}, "the judge gave no vote: %w", failed[0])
	}
	return kept, nil
}

// rewarded keeps the steps whose sampled answers differ in reward.
func (f *pivotFlags) rewarded(ctx context.Context, steps []step, m *manifest) ([]step, error) {
	m.Selection = "rewards"
	rewards := map[string][]float64{}
	err := eachRow(ctx, f.rewards, func(where rollout.Where, row json.RawMessage) error {
		var answer struct {
			UUID   string   `json:"uuid"`
			Reward *float64 `json:"reward"`
		}
		if err := json.Unmarshal(row, &answer); err != nil || answer.UUID == "" {
			return rollout.Errorf(rollout.KindFormat, where, "expected the uuid of a row and its reward").WithFix("name what turnpack pivot score wrote")
		}
		if answer.Reward != nil {
			rewards[answer.UUID] = append(rewards[answer.UUID], *answer.Reward)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	trials := make([]pivot.Trial, len(steps))
	for i, s := range steps {
		trials[i] = pivot.Trial{Candidate: s.Candidate, Rewards: rewards[s.row.UUID]}
	}
	choices, err := pivot.Selection{PerRollout: f.perRoll, Total: f.most}.Select(trials)
	if err != nil {
		return nil, err
	}
	var kept []step
	for i, c := range choices {
		if c.Kept {
			kept = append(kept, steps[i])
		} else {
			m.drop(c.Reason)
		}
	}
	return kept, nil
}

// split divides the rows by instance. The side of an instance depends only on the seed,
// not on the other data.
func (f *pivotFlags) split(steps []step, m *manifest) (files, error) {
	made := files{"train.jsonl": nil, "validation.jsonl": nil}
	rows := map[string]int{}
	instances := map[string]map[string]bool{"train.jsonl": {}, "validation.jsonl": {}}
	for _, s := range steps {
		name := "train.jsonl"
		h := sha256.Sum256([]byte(f.seed + "\x00" + s.instance))
		if float64(binary.BigEndian.Uint64(h[:8]))/(1<<64) < f.validation {
			name = "validation.jsonl"
		}
		if err := made.add(name, s.row); err != nil {
			return nil, err
		}
		rows[name]++
		instances[name][s.instance] = true
	}
	for _, name := range []string{"train.jsonl", "validation.jsonl"} {
		sum := sha256.Sum256(made[name])
		m.Files = append(m.Files, madeFile{name, rows[name], len(instances[name]), hex.EncodeToString(sum[:])})
	}
	return made, nil
}
