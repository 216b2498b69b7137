package write

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// atifVersion is the version that ATIF writes: the first one with all the features used.
const atifVersion = "ATIF-v1.7"

// ATIF appends r as one ATIF trajectory on one line, without the newline.
// An assistant message and the tool results that follow it are one step; token
// ids and log probabilities go into its metrics. The notes name what ATIF
// cannot hold.
func ATIF(dst []byte, r *rollout.Rollout) ([]byte, []rollout.Note, error) {
	if r == nil {
		return dst, nil, r.Validate()
	}
	w := atifWriter{r: r, turn: map[int]int{}}
	for i := range r.Turns {
		if w.turn[r.Turns[i].Message] = i; r.Turns[i].Message < 0 {
			w.lost = append(w.lost, lossNote("tokens", 0, "turn %d is known by its token ids alone, which no step of ATIF can hold; it is left out", i))
		}
	}
	for i := range r.Messages {
		if err := w.message(i); err != nil {
			return dst, nil, err
		}
	}
	w.close()
	var o, agent format.Object
	o.Text("schema_version", atifVersion)
	o.Text("session_id", r.ID)
	agent.Text("name", metadataText(r, "agent_name", "unknown"))
	agent.Text("version", metadataText(r, "agent_version", "unknown"))
	agent.Some("model_name", metadataText(r, "agent_model_name", metadataText(r, "model", "")))
	if len(r.Tools) > 0 {
		agent.Raw("tool_definitions", toolList(r))
	}
	var settings, extra format.Object
	if t := r.Temperature; t != nil {
		settings.Any("temperature", *t)
	}
	putTemplateKwargs(&settings, r)
	agent.Inner("extra", &settings)
	o.Inner("agent", &agent)
	o.Raw("steps", format.Array(w.steps))
	extra.Some("instance_id", r.Instance)
	putOutcome(&extra, r)
	o.Inner("extra", &extra)
	if err := o.Err(); err != nil {
		return dst, nil, err
	}
	return append(dst, o.End()...), w.lost, nil
}

func metadataText(r *rollout.Rollout, key, otherwise string) string {
	var s string
	if json.Unmarshal(r.Metadata[key], &s) != nil || s == "" {
		return otherwise
	}
	return s
}

type atifWriter struct {
	r       *rollout.Rollout
	turn    map[int]int // message → turn
	steps   [][]byte
	step    *format.Object // the step that receives tool results
	results [][]byte
	lost    []rollout.Note
}

func (w *atifWriter) close() {
	if w.step == nil {
		return
	}
	if len(w.results) > 0 {
		var o format.Object
		o.Raw("results", format.Array(w.results))
		w.step.Raw("observation", o.End())
	}
	w.steps = append(w.steps, w.step.End())
	w.step, w.results = nil, nil
}

func (w *atifWriter) begin(source string) *format.Object {
	w.close()
	w.step = &format.Object{}
	w.step.Raw("step_id", fmt.Appendf(nil, "%d", len(w.steps)+1))
	w.step.Text("source", source)
	return w.step
}

func (w *atifWriter) message(i int) error {
	m := &w.r.Messages[i]
	switch m.Role {
	case rollout.RoleSystem, rollout.RoleDeveloper:
		w.begin("system").Raw("message", w.content(i))
	case rollout.RoleAssistant:
		return w.assistant(i)
	case rollout.RoleTool:
		if w.step == nil {
			w.begin("system").Text("message", "")
		}
		var o format.Object
		o.Some("source_call_id", m.ToolCallID)
		o.Raw("content", w.content(i))
		w.results = append(w.results, o.End())
	case rollout.RoleExit:
		w.lost = append(w.lost, lossNote("exit_message", rollout.At(i), "ATIF knows no exit message; it is left out"))
	default:
		w.begin("user").Raw("message", w.content(i))
	}
	return nil
}

// content returns the message body; an absent content is null only where ATIF allows it.
func (w *atifWriter) content(i int) []byte {
	m := &w.r.Messages[i]
	if m.NoContent && m.Role != rollout.RoleTool {
		return format.Quote("")
	}
	return contentJSON(m)
}

func (w *atifWriter) assistant(i int) error {
	m := &w.r.Messages[i]
	o := w.begin("agent")
	o.Raw("message", w.content(i))
	o.Some("reasoning_content", m.Reasoning)
	if len(m.ToolCalls) > 0 {
		var calls [][]byte
		for k, c := range m.ToolCalls {
			var call format.Object
			call.Text("tool_call_id", cmp.Or(c.ID, fmt.Sprintf("call_%d_%d", i, k)))
			call.Text("function_name", c.Name)
			arguments := []byte(c.Arguments)
			if c.Arguments == "" || c.Arguments == "null" { // a call without arguments
				arguments = []byte("{}")
			}
			var d jsonscan.Doc
			if v, err := d.Parse(arguments, jsonscan.Options{}); err != nil || v.Kind() != jsonscan.Object {
				w.lost = append(w.lost, lossNote("arguments", rollout.At(i), "the arguments of call %d are no object; their text is under the key \"text\"", k))
				var wrap format.Object
				wrap.Text("text", c.Arguments)
				arguments = wrap.End()
			}
			call.Raw("arguments", oneLine(arguments))
			calls = append(calls, call.End())
		}
		o.Raw("tool_calls", format.Array(calls))
	}
	switch m.Sampled {
	case rollout.SampledByPolicy:
	case rollout.SampledCopied, rollout.SampledPrefilled, rollout.SampledDemonstration:
		o.Raw("is_copied_context", []byte("true"))
		if m.Sampled != rollout.SampledCopied {
			w.lost = append(w.lost, lossNote("sampled_mark", rollout.At(i), "the message was %s; it is written as copied context", m.Sampled))
		}
	default:
		o.Raw("llm_call_count", []byte("0"))
		if m.Sampled != rollout.SampledScripted {
			w.lost = append(w.lost, lossNote("sampled_mark", rollout.At(i), "the message was %s; it is written as not from a model", m.Sampled))
		}
	}
	return w.metrics(o, i)
}

func (w *atifWriter) metrics(o *format.Object, i int) error {
	k, ok := w.turn[i]
	if !ok {
		return nil
	}
	t := &w.r.Turns[k]
	if t.Context.Unknown || t.Context.Parts != nil {
		w.lost = append(w.lost, lossNote("context", rollout.At(i), "turn %d saw something else than the history", k))
	}
	if t.Output == nil && !t.Prompt.Captured() {
		return nil
	}
	prompt, err := w.r.PromptTokens(nil, k)
	if err != nil {
		return err
	}
	var m format.Object
	for _, f := range []struct {
		key string
		v   any
		n   int
	}{{"prompt_token_ids", prompt, len(prompt)}, {"completion_token_ids", t.Output, len(t.Output)}, {"logprobs", t.Logprobs, len(t.Logprobs)}} {
		if f.n > 0 {
			m.Any(f.key, f.v)
		}
	}
	o.Raw("metrics", m.End())
	return m.Err()
}
