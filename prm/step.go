package prm

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/prm/internal/command"
	"github.com/turnpack/turnpack/rollout"
)

// Values of Step.Class.
const (
	classCommand     = "command"
	classCommandLess = "command-less"
	classSubmit      = "submit"
)

// Step is one agent step as shown to a judge. Index is the agent step number and, with the rollout id,
// the stable identifier of the step.
type Step struct {
	Rollout string
	Index   int
	Turns   []int // indices into TurnsOf(r), ascending
	// Response is the assistant text of the step, Calls its tool calls, one per line, and Action its
	// commands, which are the tool calls if there are any; "" for none.
	Response, Calls, Action string
	// Result is the result of the step: the messages up to the next assistant message.
	Result string
	// ReturnCode is the exit status of the command, nil if unknown.
	ReturnCode *int
	// Class is the kind of step: "command", it called a tool or ran a command; "command-less", it did
	// neither: prose, or a command that the harness rejected; "submit", it submitted its work.
	Class string
	// Unrecorded is true if only token ids were recorded, so that there is no text to judge.
	Unrecorded bool
}

// StepOptions selects the steps to judge. The zero value judges every step.
type StepOptions struct {
	// CommandLess and Submit select the treatment of steps of that class: "judge" or "", as any other
	// step; "skip", no score and a reason that starts with "skipped: "; "neutral", score 0 without a
	// judge.
	CommandLess, Submit string
}

func (o StepOptions) validate() error {
	f := faults.List{Of: "StepOptions."}
	faults.Word(&f, "CommandLess", o.CommandLess, "judge", "skip", "neutral")
	faults.Word(&f, "Submit", o.Submit, "judge", "skip", "neutral")
	return f.Err()
}

func (o StepOptions) policy(class string) string {
	switch class {
	case classCommandLess:
		return o.CommandLess
	case classSubmit:
		return o.Submit
	}
	return "judge"
}

// StepsOf returns the steps of the policy, by agent step number: every turn whose message it sampled,
// including command-less and submit turns. Turns that share a step number form one step. The commands
// of a step are its tool calls or, without any, the text that common harnesses mark as commands.
func StepsOf(r *rollout.Rollout) []Step {
	if r == nil {
		return nil
	}
	turns := rollout.TurnsOf(r)
	at := map[int]int{}
	var steps []Step
	for i := range turns {
		t := &turns[i]
		if !takenByPolicy(r, t) {
			continue
		}
		k, ok := at[t.Step]
		if !ok {
			k = len(steps)
			at[t.Step] = k
			steps = append(steps, Step{Rollout: r.ID, Index: t.Step, Class: classCommandLess})
		}
		steps[k].add(r, i, t.Message)
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return a.Index - b.Index })
	return steps
}

// takenByPolicy reports whether the policy took a turn. A recorded turn is a model call, so an unknown origin
// counts as the policy.
func takenByPolicy(r *rollout.Rollout, t *rollout.Turn) bool {
	if t.Message < 0 || t.Message >= len(r.Messages) {
		return true
	}
	s := r.Messages[t.Message].Sampled
	return s == rollout.SampledByPolicy || s == rollout.SampledUnknown
}

func (s *Step) add(r *rollout.Rollout, turn, message int) {
	s.Turns = append(s.Turns, turn)
	if message < 0 || message >= len(r.Messages) {
		s.Unrecorded = s.Unrecorded || len(s.Turns) == 1
		return
	}
	s.Unrecorded = false
	m := &r.Messages[message]
	s.Response = joinLines(s.Response, m.Reasoning, m.Content)
	s.Calls = joinLines(append([]string{s.Calls}, command.Calls(m)...)...)
	for _, c := range command.Of(m) {
		s.Action = joinLines(s.Action, c)
		if command.Submits(c) {
			s.Class = classSubmit
		} else if s.Class == classCommandLess {
			s.Class = classCommand
		}
	}
	for i := message + 1; i < len(r.Messages); i++ {
		reply := &r.Messages[i]
		if reply.Role == rollout.RoleAssistant || reply.Role == rollout.RoleExit {
			break
		}
		s.Result = joinLines(s.Result, reply.Content)
		if code := returnCode(reply); code != nil {
			s.ReturnCode = code
		}
	}
}

// joinLines joins the non-empty parts with line breaks. It changes parts.
func joinLines(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "\n")
}

var returnCodeTag = regexp.MustCompile(`<returncode>\s*(-?\d{1,9})\s*</returncode>`)

// returnCode returns the exit status from the places where harnesses record it: an extra key, or a tag
// in the observation text.
func returnCode(m *rollout.Message) *int {
	for _, raw := range []json.RawMessage{m.Extra["returncode"], member(m.Extra["extra"], "returncode")} {
		var code *int
		if json.Unmarshal(raw, &code) == nil && code != nil {
			return code
		}
	}
	if all := returnCodeTag.FindAllStringSubmatch(m.Content, -1); all != nil {
		if code, err := strconv.Atoi(all[len(all)-1][1]); err == nil {
			return &code
		}
	}
	return nil
}

func member(raw json.RawMessage, key string) json.RawMessage {
	var obj map[string]json.RawMessage
	if json.Unmarshal(raw, &obj) != nil {
		return nil
	}
	return obj[key]
}
