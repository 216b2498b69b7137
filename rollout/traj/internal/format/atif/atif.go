package atif

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Importer reads a trajectory and the trajectories embedded in it.
func Importer() format.Importer {
	return format.Importer{Name: "atif", Match: match, Read: read}
}

func match(v format.Value, _ *format.File) bool {
	if strings.HasPrefix(v.Get("schema_version").String(), "ATIF-v") {
		return v.Get("steps").Kind() == jsonscan.Array
	}
	if v.Get("steps").Kind() != jsonscan.Array || v.Get("agent").Kind() != jsonscan.Object {
		return false
	}
	s := v.Get("steps").First()
	return s.Get("source").Kind() == jsonscan.String && s.Get("step_id").Kind() == jsonscan.Number
}

func read(in *format.File, v format.Value) error {
	in.WantList(v.Get("steps"), "/steps")
	return readTrajectory(in, v, "", 0)
}

// maxSubagents bounds the nesting of embedded trajectories.
const maxSubagents = 16

// readTrajectory reads one trajectory and then its embedded ones; parent is the id of the
// one that contains it.
func readTrajectory(in *format.File, v format.Value, parent string, depth int) error {
	if depth > maxSubagents {
		return in.Fail(0, "/subagent_trajectories", "sub-agents nested deeper than %d", maxSubagents)
	}
	agent := v.Get("agent")
	r := &rollout.Rollout{
		ID:          format.FirstID(v, "trajectory_id", "session_id"),
		Index:       format.NoIndex,
		Turns:       []rollout.Turn{},
		Tools:       format.Tools(agent.Get("tool_definitions")),
		Temperature: format.Temperature(agent.Path("extra", "temperature")),
	}
	in.TemplateKwargs(r, agent.Get("extra"))
	a := trajectory{in: in, r: r}
	for i, s := range v.Get("steps").Items() {
		if err := a.step(i, s); err != nil {
			return err
		}
	}
	if parent != "" {
		format.KeepText(&r.Metadata, "parent_trajectory", parent)
	}
	for _, key := range []string{"name", "version", "model_name"} {
		format.KeepAny(&r.Metadata, "agent_"+key, agent.Get(key))
	}
	in.Leftover(r, v, "schema_version", "trajectory_id", "session_id", "agent", "steps", "subagent_trajectories")
	if ref, ok := v.Get("continued_trajectory_ref").Text(); ok && ref != "" {
		in.Note("continued", 0, "the run goes on in %s", ref)
	}
	in.NoteParts(r)
	in.UnlinkResults(r)
	if parent == "" {
		if err := joinTrial(in, r); err != nil {
			return err
		}
	}
	id := r.ID
	if err := in.Emit(r); err != nil {
		return err
	}
	for _, sub := range v.Get("subagent_trajectories").Items() {
		if sub.Get("steps").Kind() != jsonscan.Array {
			continue // a reference, not a trajectory
		}
		if err := readTrajectory(in, sub, id, depth+1); err != nil {
			return err
		}
	}
	return nil
}

type trajectory struct {
	in *format.File
	r  *rollout.Rollout
	// reset is true once a sub-agent has summarized the history: later calls did not see
	// the earlier steps then.
	reset bool
}

func (a *trajectory) step(i int, s format.Value) error {
	at := rollout.At(len(a.r.Messages))
	m, several := rollout.Message{}, ""
	copied := s.Get("is_copied_context").True()
	source := s.Get("source").String()
	switch source {
	case "system":
		m.Role = rollout.RoleSystem
	case "user":
		m.Role = rollout.RoleUser
	case "agent":
		m.Role = rollout.RoleAssistant
		m.Sampled = rollout.SampledByPolicy
		if n, ok := s.Get("llm_call_count").Int(); ok && n == 0 {
			m.Sampled = rollout.SampledScripted
		} else if ok && n > 1 {
			several = fmt.Sprintf("the step stands for %d model calls", n)
			a.in.Note("several_calls", at, "%s: it is context and never trained", several)
		}
		if copied {
			m.Sampled = rollout.SampledCopied
		}
	default:
		return a.in.Fail(at, "/source", "step %d has source %q, expected system, user or agent", i, source)
	}
	a.in.Wrong(a.in.Content(&m, s.Get("message"), len(a.r.Messages)))
	m.Reasoning = s.Get("reasoning_content").String()
	a.in.ListOrNull(s.Get("tool_calls"), at, "/tool_calls")
	for k, c := range s.Get("tool_calls").Items() {
		m.ToolCalls = append(m.ToolCalls, a.toolCall(c, k))
	}
	if m.Sampled == rollout.SampledByPolicy {
		t := rollout.Turn{Message: len(a.r.Messages), Step: len(a.r.Turns), Context: rollout.Context{Unknown: a.reset}}
		a.in.Capture(&t, s.Get("metrics"), t.Message)
		t.Incomplete = cmp.Or(several, t.Incomplete)
		a.r.Turns = append(a.r.Turns, t)
	}
	a.r.Messages = append(a.r.Messages, m)
	return a.observation(s.Get("observation"), source, copied)
}

func (a *trajectory) toolCall(v format.Value, k int) rollout.ToolCall {
	c := rollout.ToolCall{ID: v.Get("tool_call_id").String(), Name: v.Get("function_name").String()}
	if c.Name == "" {
		a.in.Wrong(a.in.Fail(rollout.At(len(a.r.Messages)), "/tool_calls/function_name", "tool call %d has no function name", k))
	}
	format.SetArguments(&c, v.Get("arguments"))
	return c
}

// observation adds one tool message per result.
func (a *trajectory) observation(v format.Value, source string, copied bool) error {
	a.in.ListOrNull(v.Get("results"), rollout.At(len(a.r.Messages)-1), "/observation/results")
	for _, x := range v.Get("results").Items() {
		i := len(a.r.Messages)
		m := rollout.Message{Role: rollout.RoleTool, ToolCallID: x.Get("source_call_id").String()}
		a.in.Wrong(a.in.Content(&m, x.Get("content"), i))
		a.r.Messages = append(a.r.Messages, m)
		refs := x.Get("subagent_trajectory_ref")
		if refs.IsNull() {
			continue
		}
		for _, ref := range refs.Items() {
			a.in.Note("subagent", rollout.At(i), "a sub-agent ran here: %s %s", format.FirstID(ref, "trajectory_id", "session_id"), ref.Get("trajectory_path").String())
		}
		if source == "system" && !copied {
			a.reset = true
			a.in.Note("context_reset", rollout.At(i), "the history was summarised here: what the model saw afterwards is not the messages before")
		}
	}
	return nil
}
