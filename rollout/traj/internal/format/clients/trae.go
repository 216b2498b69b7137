package clients

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// trae reads the trajectories of Trae Agent: each call holds the messages that were new to
// it, and its reply.
func trae() format.Importer {
	return format.Importer{Name: "trae-agent", Stateless: true, Match: func(v format.Value, _ *format.File) bool {
		return v.Get("llm_interactions").Kind() == jsonscan.Array && v.Get("agent_steps").Kind() == jsonscan.Array && v.Get("provider").Kind() == jsonscan.String
	}, Read: readTrae}
}

func readTrae(in *format.File, v format.Value) error {
	t := thread.New(in)
	if v.Get("success").True() {
		t.Rollout.Status = rollout.StatusCompleted
	}
	t.Rollout.Outcome = in.Outcome(v)
	for i, x := range v.Get("llm_interactions").Items() {
		input := x.Get("input_messages")
		in.Need(input, jsonscan.Array, 0, "/llm_interactions/"+strconv.Itoa(i)+"/input_messages", "the messages of a call")
		for _, m := range input.Items() {
			addTrae(t, m, v.Get("provider").Word())
		}
		reply := x.Get("response")
		t.Need(reply, jsonscan.Object, "/llm_interactions/"+strconv.Itoa(i)+"/response", "the reply of a call")
		m := rollout.Message{Role: rollout.RoleAssistant}
		if body := reply.Get("content"); body.Kind() != jsonscan.Null {
			m.Content = t.Words(reply, "content", "/response")
		}
		for _, c := range reply.Get("tool_calls").Items() {
			m.ToolCalls = append(m.ToolCalls, t.Call(cmp.Or(c.Get("call_id").String(), c.Get("id").String()), c.Get("name").Word(), c.Get("arguments")))
		}
		t.End(reply.Get("finish_reason").String())
		t.Say(m)
	}
	if len(t.Rollout.Messages) == 0 {
		return nil
	}
	in.Note("tools_not_recorded", 0, "the trajectory names the tools and does not hold their definitions")
	in.Leftover(t.Rollout, v, "llm_interactions", "agent_steps", "task", "success", "final_result", "reward", "resolved")
	return t.Emit(false)
}

// addTrae adds a message that was sent. The text around an error is that of Trae Agent's
// client of the provider.
func addTrae(t *thread.Thread, v format.Value, provider string) {
	if x := v.Get("tool_result"); x.Kind() == jsonscan.Object {
		if x.Get("result").Kind() == jsonscan.Absent || x.Get("error").Kind() == jsonscan.Absent {
			t.In.Wrong(t.In.Want(x.Get("result"), t.At(), "/tool_result", "a result and an error, one of which may be null"))
		}
		said := x.Get("result").String()
		if s := x.Get("error").String(); s != "" && provider == "openai" {
			said += "\nError: " + s
		} else if s != "" {
			said += "\nTool call failed with error:\n" + s
		}
		if said = strings.TrimSpace(said); said == "" && provider == "anthropic" && !x.Get("success").True() {
			said = "Tool execution failed without providing error details."
		}
		t.Say(rollout.Message{Role: rollout.RoleTool, ToolCallID: cmp.Or(x.Get("call_id").String(), x.Get("id").String()), Content: said})
		return
	}
	role := t.Speaker(v.Get("role").Word())
	m := rollout.Message{Role: role}
	if role == rollout.RoleAssistant { // a reflection that the agent wrote
		m.Sampled = rollout.SampledPrefilled
	}
	m.Content = t.Words(v, "content", "")
	t.Say(m)
}
