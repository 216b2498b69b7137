package calls

import (
	"cmp"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// RunState reads the state of a run of OpenAI's Agents SDK (RunState.to_json).
func RunState() format.Importer {
	return format.Importer{Name: "openai-agents", Match: isRunState, Read: readRunState, Stateless: true}
}

func isRunState(v format.Value, _ *format.File) bool {
	return v.Get("$schemaVersion").Kind() == jsonscan.String && v.Get("model_responses").Kind() == jsonscan.Array && v.Get("generated_items").Kind() == jsonscan.Array
}

func readRunState(in *format.File, v format.Value) error {
	r := &rollout.Rollout{Index: format.NoIndex, Turns: []rollout.Turn{}, Outcome: in.Outcome(v)}
	x := format.Items{File: in, Rollout: r, Sampled: rollout.SampledPrefilled}
	switch given := v.Get("original_input"); given.Kind() {
	case jsonscan.String:
		r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleUser, Content: given.String()})
	case jsonscan.Array:
		for _, item := range given.Items() {
			x.Add(item)
		}
	default:
		return in.Want(given, 0, "/original_input", "a text or a list of items")
	}
	items := v.Get("session_items") // all items; generated_items may omit some after a handoff
	if items.Len() == 0 {
		items = v.Get("generated_items")
	}
	lost := items.Len() != v.Get("generated_items").Len() || v.Get("nested_history_owned_session_item_refs").Len() > 0
	runItems(&x, items)
	if x.Left > 0 {
		return in.Fail(0, "/generated_items", "%d items of kinds that are not understood (the last is %q)", x.Left, x.Kind)
	}
	if lost {
		in.Note("context_lost", 0, "the history was changed between agents: what the turns saw is not known")
	}
	for i := range r.Turns {
		r.Turns[i].Context.Unknown = lost
	}
	in.NoteHidden(r)
	in.Leftover(r, v, "$schemaVersion", "original_input", "model_responses", "generated_items", "session_items", "last_processed_response", "last_model_response", "context", "reward", "resolved")
	in.NoteParts(r)
	in.UnlinkResults(r)
	return in.Emit(r)
}

// runItems adds the items of a run. If there are several agents, the first is the policy.
func runItems(x *format.Items, items format.Value) {
	first := ""
	for _, item := range items.Items() {
		kind, raw := item.Get("type").Word(), item.Get("raw_item")
		if kind == "tool_approval_item" { // a pending call, which is already in the list
			continue
		}
		x.File.Need(raw, jsonscan.Object, rollout.At(len(x.Rollout.Messages)), "/generated_items/raw_item", "an item of the Responses API")
		name := item.Path("agent", "name")
		x.File.Need(name, jsonscan.String, rollout.At(len(x.Rollout.Messages)), "/generated_items/agent/name", "the agent whose item it is")
		agent := name.String()
		first = cmp.Or(first, agent)
		who := rollout.SampledByPolicy
		if agent != first {
			who = rollout.SampledOtherAgent
		}
		if kind == "input_item" {
			who = rollout.SampledPrefilled
		}
		x.Open = x.Open && who == x.Sampled
		x.Sampled = who
		x.Add(raw)
	}
}

// AgentsSpan reads spans exported by the Agents SDK. Spans of type generation are calls of
// chat completions; others hold no messages.
func AgentsSpan() format.Importer {
	return format.Importer{Name: "openai-agents", Match: isAgentsSpan, Read: readAgentsSpan, Call: true, Stateless: true}
}

func isAgentsSpan(v format.Value, _ *format.File) bool {
	return v.Get("object").Is("trace.span") && v.Get("span_data").Kind() == jsonscan.Object
}

func readAgentsSpan(in *format.File, v format.Value) error {
	data := v.Get("span_data")
	if kind := data.Get("type"); kind.Is("response") {
		return in.Fail(0, "/span_data", "a span of a response names it and does not hold it: keep the responses themselves, or the items of the session")
	} else if !kind.Is("generation") {
		return nil
	}
	messages := in.ChatMessages(data.Get("input"), "/span_data/input")
	format.MarkReplies(messages, rollout.SampledPrefilled)
	i := len(messages)
	replies := format.Elements(data.Get("output"))
	if len(replies) != 1 {
		return in.Fail(rollout.At(i), "/span_data/output", "found %d replies, expected one", len(replies))
	}
	var m rollout.Message
	var err error
	if items := replies[0].Get("output"); items.Kind() == jsonscan.Array { // a streamed call
		m, err = in.ResponseMessage(items, i)
		m.Role = rollout.RoleAssistant
	} else {
		m, err = in.ChatMessage(replies[0], i)
	}
	in.Wrong(err)
	if format.Silent(&m) {
		return in.Fail(rollout.At(i), "/span_data/output", "the reply says nothing: %s", format.Shape(replies[0]))
	}
	m.Sampled = rollout.SampledByPolicy
	settings := data.Get("model_config")
	r := &rollout.Rollout{ID: v.Get("id").String(), Index: format.NoIndex, Messages: append(messages, m), Temperature: format.Temperature(settings.Get("temperature")),
		Turns: []rollout.Turn{{ID: v.Get("id").String(), Message: i, Sampling: format.SamplingOf(settings)}}}
	requestKwargs(in, r, settings)
	format.KeepAny(&r.Metadata, "model", data.Get("model"))
	in.Note("tools_not_recorded", 0, "a span of the Agents SDK does not hold the definitions of tools")
	in.NoteParts(r)
	return in.Emit(r)
}
