package traj

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// ATIF, the agent trajectory interchange format of harbor, versions 1.0 to 1.8:
// an agent, a list of steps, token ids and log probabilities in the metrics of a
// step, sub-agents by reference or (from 1.7) embedded.

func isATIF(v value, _ *fileReader) bool {
	if strings.HasPrefix(v.Get("schema_version").String(), "ATIF-v") {
		return v.Get("steps").Kind() == jsonscan.Array
	}
	if v.Get("steps").Kind() != jsonscan.Array || v.Get("agent").Kind() != jsonscan.Object {
		return false
	}
	for _, s := range v.Get("steps").Items() {
		return s.Get("source").Kind() == jsonscan.String && s.Get("step_id").Kind() == jsonscan.Number
	}
	return false
}

func readATIF(j *fileReader, v value) error {
	if err := j.wantList(v.Get("steps"), "/steps"); err != nil {
		return err
	}
	return j.atif(v, "", 0)
}

// maxSubagents bounds the nesting of embedded trajectories.
const maxSubagents = 16

// atif reads one trajectory and then those embedded in it; parent is the id of
// the one it is embedded in.
func (j *fileReader) atif(v value, parent string, depth int) error {
	if depth > maxSubagents {
		return j.fail(0, "/subagent_trajectories", "sub-agents nested deeper than %d", maxSubagents)
	}
	agent := v.Get("agent")
	r := &rollout.Rollout{
		ID:          firstID(v, "trajectory_id", "session_id"),
		Index:       noIndex,
		Turns:       []rollout.Turn{},
		Tools:       tools(agent.Get("tool_definitions")),
		Temperature: temperature(agent.Path("extra", "temperature")),
	}
	if err := j.templateKwargs(r, agent.Get("extra")); err != nil {
		return err
	}
	a := atifRun{j: j, r: r}
	for i, s := range v.Get("steps").Items() {
		if err := a.step(i, s); err != nil {
			return err
		}
	}
	if parent != "" {
		keepText(&r.Metadata, "parent_trajectory", parent)
	}
	for _, key := range []string{"name", "version", "model_name"} {
		if x := agent.Get(key); !x.IsNull() {
			keep(&r.Metadata, "agent_"+key, x)
		}
	}
	j.leftover(r, v, "schema_version", "trajectory_id", "session_id", "agent", "steps", "subagent_trajectories")
	if ref, ok := v.Get("continued_trajectory_ref").Text(); ok && ref != "" {
		j.note("continued", 0, "the run goes on in %s", ref)
	}
	j.noteParts(r)
	j.orphans(r)
	if parent == "" {
		if err := j.harborTrial(r); err != nil {
			return err
		}
	}
	id := r.ID
	if err := j.emit(r); err != nil {
		return err
	}
	for _, sub := range v.Get("subagent_trajectories").Items() {
		if sub.Get("steps").Kind() != jsonscan.Array {
			continue // a reference, not a trajectory
		}
		if err := j.atif(sub, id, depth+1); err != nil {
			return err
		}
	}
	return nil
}

type atifRun struct {
	j *fileReader
	r *rollout.Rollout
	// reset is true once a sub-agent summarised the history: what the next calls saw
	// is then not the steps before them.
	reset bool
}

func (a *atifRun) step(i int, s value) error {
	at := rollout.At(len(a.r.Messages))
	m := rollout.Message{}
	copied, _ := s.Get("is_copied_context").Bool()
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
			a.j.note("several_calls", at, "the step stands for %d model calls", n)
		}
		if copied {
			m.Sampled = rollout.SampledCopied
		}
	default:
		return a.j.fail(at, "/source", "step %d has source %q, expected system, user or agent", i, source)
	}
	if err := a.j.content(&m, s.Get("message"), len(a.r.Messages)); err != nil {
		return err
	}
	m.Reasoning = s.Get("reasoning_content").String()
	if err := a.j.listOrNothing(s.Get("tool_calls"), at, "/tool_calls"); err != nil {
		return err
	}
	for k, c := range s.Get("tool_calls").Items() {
		call, err := a.toolCall(c, k)
		if err != nil {
			return err
		}
		m.ToolCalls = append(m.ToolCalls, call)
	}
	if m.Sampled == rollout.SampledByPolicy {
		t := rollout.Turn{Message: len(a.r.Messages), Step: len(a.r.Turns), Context: rollout.Context{Unknown: a.reset}}
		a.j.capture(&t, s.Get("metrics"), t.Message)
		a.r.Turns = append(a.r.Turns, t)
	}
	a.r.Messages = append(a.r.Messages, m)
	return a.observation(s.Get("observation"), source, copied)
}

func (a *atifRun) toolCall(v value, k int) (rollout.ToolCall, error) {
	c := rollout.ToolCall{ID: v.Get("tool_call_id").String(), Name: v.Get("function_name").String()}
	if c.Name == "" {
		return c, a.j.fail(rollout.At(len(a.r.Messages)), "/tool_calls/function_name", "tool call %d has no function name", k)
	}
	setArguments(&c, v.Get("arguments"))
	return c, nil
}

// observation adds one tool message per result.
func (a *atifRun) observation(v value, source string, copied bool) error {
	if err := a.j.listOrNothing(v.Get("results"), rollout.At(len(a.r.Messages)-1), "/observation/results"); err != nil {
		return err
	}
	for _, x := range v.Get("results").Items() {
		i := len(a.r.Messages)
		m := rollout.Message{Role: rollout.RoleTool, ToolCallID: x.Get("source_call_id").String()}
		if err := a.j.content(&m, x.Get("content"), i); err != nil {
			return err
		}
		a.r.Messages = append(a.r.Messages, m)
		refs := x.Get("subagent_trajectory_ref")
		if refs.IsNull() {
			continue
		}
		for _, ref := range refs.Items() {
			a.j.note("subagent", rollout.At(i), "a sub-agent ran here: %s %s", firstID(ref, "trajectory_id", "session_id"), ref.Get("trajectory_path").String())
		}
		if source == "system" && !copied {
			a.reset = true
			a.j.note("context_reset", rollout.At(i), "the history was summarised here: what the model saw afterwards is not the messages before")
		}
	}
	return nil
}
