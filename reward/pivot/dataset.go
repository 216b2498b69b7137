package pivot

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/turnpack/turnpack/rollout"
)

// AgentRef names the NeMo-Gym agent of a data row.
type AgentRef struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

// SWEPivotAgent names the agent of the environment swe_pivot (NeMo-Gym@07d6b0d
// resources_servers/swe_pivot/configs/swe_pivot.yaml).
var SWEPivotAgent = AgentRef{"responses_api_agents", "swe_pivot_tool_simulation_agent"}

// DataRow is a line of a NeMo-Gym pivot data set: the request and the expected step.
type DataRow struct {
	UUID           string          `json:"uuid"`
	AgentRef       AgentRef        `json:"agent_ref"`
	Request        Request         `json:"responses_create_params"`
	ExpectedAction json.RawMessage `json:"expected_action"`
	Patch          string          `json:"ref_patch,omitempty"` // the patch of the whole trajectory
	Tags           []string        `json:"pivot_tags,omitempty"`
	Metadata       RowMetadata     `json:"metadata"`
}

// Request is the request to the policy.
type Request struct {
	Input             []Item            `json:"input"`
	Tools             []json.RawMessage `json:"tools,omitempty"`
	ParallelToolCalls bool              `json:"parallel_tool_calls"`
}

// Item is one element of the input, in the Responses format.
type Item struct {
	Type      string  `json:"type,omitempty"`
	ID        string  `json:"id,omitempty"` // for reasoning
	Role      string  `json:"role,omitempty"`
	Content   *string `json:"content,omitempty"`
	CallID    string  `json:"call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
	Output    *string `json:"output,omitempty"`
	Summary   []Part  `json:"summary,omitempty"` // for reasoning
}

// Part is one text of an item.
type Part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// RowMetadata identifies the recorded step.
type RowMetadata struct {
	Instance string `json:"instance_id,omitempty"`
	Rollout  string `json:"rollout"`
	Turn     int    `json:"turn"`
	Category string `json:"category,omitempty"` // tool family: edit, bash, search …; "" if unknown
	Protocol string `json:"protocol,omitempty"` // protocol of calls in the recorded text, "" for native calls
	// TextPrompt is true if the prompt is as recorded, with calls in text; read the answer with
	// WithTextCalls then.
	TextPrompt bool `json:"text_prompt,omitempty"`
}

// Data defines how data rows are made from rollouts.
type Data struct {
	// Agent is the agent of the rows, zero = SWEPivotAgent.
	Agent AgentRef
	// Text keeps calls that were recorded in text as they are, for prompts whose answers are text. By
	// default the rows hold native calls and tools, which NeMo-Gym's verifiers expect.
	Text bool
}

// Row returns the data row of a candidate of r.
func (d Data) Row(r *rollout.Rollout, c Candidate) (DataRow, error) {
	if r == nil {
		return DataRow{}, rollout.Errorf(rollout.KindInput, rollout.Where{}, "the rollout is nil").WithFix("leave it out")
	}
	where := rollout.Where{Rollout: r.ID, Turn: rollout.At(c.Turn)}
	if c.Message < 0 || c.Message >= len(r.Messages) || len(c.Action.Calls) == 0 {
		return DataRow{}, rollout.Errorf(rollout.KindInput, where, "expected a candidate of this rollout that calls a tool")
	}
	row := DataRow{
		UUID: r.ID + "#" + strconv.Itoa(c.Turn), AgentRef: d.Agent,
		Metadata: RowMetadata{Instance: r.Instance, Rollout: r.ID, Turn: c.Turn, Category: toolFamily(c.Action.Calls[0].Name), Protocol: c.Protocol, TextPrompt: d.Text && c.Protocol != ""},
	}
	if r.Outcome.Submission != nil {
		row.Patch = *r.Outcome.Submission
	}
	if row.AgentRef == (AgentRef{}) {
		row.AgentRef = SWEPivotAgent
	}
	var expected any = struct {
		Type string `json:"type"`
		Call
	}{oneCall, c.Action.Calls[0]}
	if len(c.Action.Calls) > 1 {
		row.Request.ParallelToolCalls = true
		expected = struct {
			Type  string `json:"type"`
			Calls []Call `json:"calls"`
		}{batch, c.Action.Calls}
	}
	var err error
	if row.ExpectedAction, err = json.Marshal(expected); err != nil {
		return DataRow{}, err
	}
	seen := r.Messages[:c.Message]
	row.Request.Input = items(seen, row.Metadata.TextPrompt)
	if row.Metadata.TextPrompt {
		return row, nil
	}
	row.Request.Tools, err = tools(r)
	return row, err
}

// items returns messages as Responses items. Calls without an id get one, and results refer to the
// calls they answer.
func items(messages []rollout.Message, text bool) []Item {
	var out []Item
	var open []string // ids of calls without a result
	say := func(role rollout.Role, content string) {
		out = append(out, Item{Role: string(role), Content: &content})
	}
	for i := range messages {
		m := &messages[i]
		switch m.Role {
		case rollout.RoleAssistant:
			if m.Reasoning != "" {
				out = append(out, Item{Type: "reasoning", ID: "rs_" + strconv.Itoa(i), Summary: []Part{{"summary_text", m.Reasoning}}})
			}
			action, before, protocol := textAction(m)
			if protocol != "" && text || len(action.Calls) == 0 {
				say(m.Role, m.Content)
				open = nil
				continue
			}
			if protocol == "" {
				before = m.Content
			}
			if before != "" {
				say(m.Role, before)
			}
			open = nil
			for k, c := range action.Calls {
				id := ""
				if protocol == "" {
					id = m.ToolCalls[k].ID
				}
				if id == "" {
					id = "call_" + strconv.Itoa(i) + "_" + strconv.Itoa(k)
				}
				open = append(open, id)
				out = append(out, Item{Type: "function_call", CallID: id, Name: c.Name, Arguments: &c.Arguments})
			}
		case rollout.RoleExit:
		default:
			id := m.ToolCallID
			if id == "" && len(open) > 0 && (m.Role == rollout.RoleTool || m.Role == rollout.RoleUser) {
				id = open[0]
			}
			if id == "" {
				say(m.Role, m.Content)
				continue
			}
			if k := slices.Index(open, id); k >= 0 {
				open = slices.Delete(open, k, k+1)
			}
			out = append(out, Item{Type: "function_call_output", CallID: id, Output: &m.Content})
		}
	}
	return out
}

// function is a tool in the Responses format, of which NeMo-Gym requires parameters and strict.
type function struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// tools returns the rollout's tools in the Responses format; tools of the engine itself stay as they
// are. Without recorded tools, they are derived from the rollout's calls, with the argument types seen
// there.
func tools(r *rollout.Rollout) ([]json.RawMessage, error) {
	var out []json.RawMessage
	add := func(f function) error {
		f.Type = "function"
		if len(f.Parameters) == 0 || string(f.Parameters) == "null" {
			f.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		text, err := json.Marshal(f)
		out = append(out, text)
		return err
	}
	for i, raw := range r.Tools {
		var t *struct {
			function
			Function    *function       `json:"function"`
			InputSchema json.RawMessage `json:"input_schema"`
		}
		err := json.Unmarshal(raw, &t)
		if err == nil && t == nil {
			err = errors.New("found null")
		}
		switch {
		case err != nil:
		case t.Function != nil:
			err = add(*t.Function)
		case t.Name != "":
			if t.Parameters == nil {
				t.Parameters = t.InputSchema
			}
			err = add(t.function)
		default:
			out = append(out, raw)
		}
		if err != nil {
			return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{Rollout: r.ID, Field: "tools/" + strconv.Itoa(i)}, "a tool is an object: %w", err)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	type parameter struct {
		Type string `json:"type"`
	}
	type schema struct {
		Type       string               `json:"type"`
		Properties map[string]parameter `json:"properties"`
	}
	shown := map[string]map[string]parameter{}
	for i := range r.Messages {
		if r.Messages[i].Role != rollout.RoleAssistant {
			continue
		}
		action, _, _ := textAction(&r.Messages[i])
		for _, c := range action.Calls {
			if shown[c.Name] == nil {
				shown[c.Name] = map[string]parameter{}
			}
			var arguments map[string]json.RawMessage
			_ = json.Unmarshal([]byte(c.Arguments), &arguments) // arguments that are not an object are ignored
			for key, value := range arguments {
				if _, seen := shown[c.Name][key]; !seen || string(value) != "null" { // a null has no type of its own
					shown[c.Name][key] = parameter{jsonType(value)}
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		text, err := json.Marshal(schema{"object", shown[name]})
		if err = cmp.Or(err, add(function{Name: name, Parameters: text})); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func jsonType(raw json.RawMessage) string {
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case '"', 'n':
		return "string"
	}
	return "number"
}

// textAction returns the action of an assistant message: its native calls, else those in its text with
// the text before them and their protocol.
func textAction(m *rollout.Message) (Action, string, string) {
	action := actionOfMessage(m)
	if action.Kind != message {
		return action, "", ""
	}
	calls, before, protocol := textCalls(m.Content)
	if len(calls) > 0 {
		action = actionOfCalls(calls)
	}
	return action, before, protocol
}
