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
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// Artifact says how the folder of an attempt is written.
type Artifact struct {
	// Evaluation writes the folder of an evaluation, without group and index.
	Evaluation bool
	Group      int // group_index of a training run
	Index      int // over all groups, as swe-rl counts
	Meta       any // meta.json: an object
	Time       time.Time
	// Native is a folder that gets a file with the name of the attempt's folder and
	// .jsonl, in the native format: all of the attempt, contexts, ids and log
	// probabilities too, which traj.json does not hold. It is written last: where it is,
	// the attempt is whole. "" = none.
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
	name := clean(r.Instance)
	info := []member{{"instance_id", r.Instance}, {"exit_status", nilOr(r.ExitStatus)}, {"error", nilOr(a.Error)}, {"steps", len(r.Turns)},
		{"patch_source", nilOr(a.PatchSource)}, {"reward", reward(a)}, {"eval_result", a.Evaluation}}
	kind := "slime-mini-swe-remote-eval-1"
	if !o.Evaluation {
		kind = "slime-mini-swe-remote-1"
		name += "__g" + strconv.Itoa(o.Group) + "__i" + strconv.Itoa(o.Index)
		info = append(info, member{"group_index", o.Group}, member{"index", o.Index})
	}
	name += "__" + strconv.FormatInt(o.Time.UnixNano(), 10)
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "%w", err)
	}
	commands := a.Commands
	if commands == nil {
		commands = []Command{}
	}
	traj, err := document([]member{{"messages", json.RawMessage(engine.AppendMessages(nil, r.Messages))}, {"step_debug", commands},
		{"info", object(info)}, {"trajectory_format", kind}})
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

// reward is what swe-rl stores: 1 where an evaluation says resolved, else 0.
func reward(a *Attempt) int {
	if a.Evaluation != nil && a.Evaluation.Resolved {
		return 1
	}
	return 0
}

// clean is a name of a folder of an instance.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, s)
}

func nilOr(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// member is a member of a JSON object whose order stays.
type member struct {
	name  string
	value any
}

type object []member

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		v, err := jsonscan.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b = append(append(strconv.AppendQuote(b, m.name), ':'), v...)
	}
	return append(b, '}'), nil
}

// document is an object as Python writes it: two spaces, and ASCII alone.
func document(o object) ([]byte, error) {
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
