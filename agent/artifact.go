package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// Artifact configures the folder of an attempt.
type Artifact struct {
	// Evaluation writes the folder of an evaluation, without group and index.
	Evaluation bool
	Group      int // group_index of a training run
	Index      int // over all groups, as in swe-rl
	Meta       any // meta.json: an object
	Time       time.Time
	// Native is a folder for a file named like the attempt's folder with .jsonl, in the native format: the
	// whole attempt, including contexts, ids and log probabilities, which traj.json does not hold. It is
	// written last: if it exists, the attempt is complete. "" = none.
	Native string
}

// Save writes the folder of an attempt below dir, as swe-rl does, and returns its path.
func (a *Attempt) Save(dir string, o Artifact) (string, error) {
	r := a.Rollout
	if r == nil {
		return "", zero.Value("agent.Attempt", "Agent.Run")
	}
	if r.Instance == "" {
		return "", rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID, Field: "Instance.InstanceID"}, "an attempt without the name of its instance has no folder")
	}
	name := folderName(r.Instance)
	x := trajectory{Messages: engine.AppendMessages(nil, r.Messages), Commands: a.Commands, Format: "slime-mini-swe-remote-eval-1",
		Info: info{Instance: r.Instance, ExitStatus: nilIfEmpty(r.ExitStatus), Error: nilIfEmpty(a.Error), Steps: len(r.Turns), PatchSource: nilIfEmpty(a.PatchSource), Evaluation: a.Evaluation}}
	if x.Commands == nil {
		x.Commands = []Command{}
	}
	if a.Evaluation != nil && a.Evaluation.Resolved {
		x.Info.Reward = 1
	}
	if !o.Evaluation {
		x.Format = "slime-mini-swe-remote-1"
		name += "__g" + strconv.Itoa(o.Group) + "__i" + strconv.Itoa(o.Index)
		x.Info.Group, x.Info.Index = &o.Group, &o.Index
	}
	name += "__" + strconv.FormatInt(o.Time.UnixNano(), 10)
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "%w", err)
	}
	traj, err := pythonJSON(x)
	if err != nil {
		return "", err
	}
	meta, err := json.MarshalIndent(o.Meta, "", "  ")
	if err != nil {
		return "", rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Artifact.Meta"}, "%w", err)
	}
	files := map[string][]byte{"meta.json": meta, "traj.json": traj}
	if a.Patch != nil {
		files["patch.diff"] = []byte(*a.Patch)
	}
	for name, text := range files {
		if err := atomic.WriteFile(filepath.Join(path, name), text, true); err != nil {
			return "", err
		}
	}
	if o.Native == "" {
		return path, nil
	}
	native, err := jsonl.Append(nil, r)
	if err != nil {
		return "", err
	}
	return path, atomic.WriteFile(filepath.Join(o.Native, name+".jsonl"), append(native, '\n'), true)
}

// trajectory is the content of traj.json.
type trajectory struct {
	Messages json.RawMessage `json:"messages"`
	Commands []Command       `json:"step_debug"`
	Info     info            `json:"info"`
	Format   string          `json:"trajectory_format"`
}

type info struct {
	Instance    string      `json:"instance_id"`
	ExitStatus  *string     `json:"exit_status"`
	Error       *string     `json:"error"`
	Steps       int         `json:"steps"`
	PatchSource *string     `json:"patch_source"`
	Reward      int         `json:"reward"` // 1 if the evaluation resolved the task
	Evaluation  *Evaluation `json:"eval_result"`
	Group       *int        `json:"group_index,omitempty"`
	Index       *int        `json:"index,omitempty"`
}

// folderName returns a valid folder name for an instance.
func folderName(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, s)
}

func nilIfEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// pythonJSON encodes an object as Python does: indented by two spaces, in ASCII.
func pythonJSON(o any) ([]byte, error) {
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(o); err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{}, "the attempt as JSON: %w", err)
	}
	text := bytes.TrimSuffix(plain.Bytes(), []byte{'\n'})
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case r < 0x7f:
			out = append(out, byte(r))
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out, nil
}
