package detect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
)

// Fault is a kind of fault of a sampled message: call_in_text, unknown_tool, arguments_not_json,
// arguments_break_schema, recorded_invalid_call or malformed_thinking. All but the last are invalid
// tool calls.
type Fault string

const (
	faultCallInText Fault = "call_in_text"           // the text contains a tool call that the engine's parser did not recognise
	faultTool       Fault = "unknown_tool"           // the call names a tool that was not offered
	faultArguments  Fault = "arguments_not_json"     // the arguments of the call are not a JSON object
	faultSchema     Fault = "arguments_break_schema" // the arguments of the call violate the schema of its tool
	faultRecorded   Fault = "recorded_invalid_call"  // the dump flags the call as invalid
	faultThinking   Fault = "malformed_thinking"     // reasoning markers without a counterpart, or in the wrong place
)

// Finding is one fault found in a message.
type Finding struct {
	Fault  Fault
	Call   int    // index of the tool call, −1 for the text
	Detail string // description of the fault
}

// Flags returns the message flags that a reward.Override applies to.
func Flags(findings []Finding) reward.MessageFlags {
	var m reward.MessageFlags
	for _, f := range findings {
		m.InvalidToolCall = m.InvalidToolCall || f.Fault != faultThinking
		m.MalformedThinking = m.MalformedThinking || f.Fault == faultThinking
	}
	return m
}

// Detector finds sampled messages to which a reward.Override applies. The zero value looks for every
// fault and accepts messages that are only recorded differently: a complete call, or balanced
// reasoning, that the recorder left in the text.
//
// A message that the dump itself flags (is_invalid_tool_call, has_malformed_thinking) is found by
// every Detector.
type Detector struct {
	// Nemotron looks for exactly what NeMo RL (7ea279abf, environments/nemo_gym.py) flags: any call or
	// reasoning marker in a reply's text; in reasoning without text after it, any call marker, or a
	// reasoning marker that occurs twice. Replies with parsed calls are accepted.
	Nemotron bool
	// CallMarks lists the texts that begin and end a tool call, in pairs; nil = <tool_call>,
	// </tool_call>, <function_call>, </function_call>.
	CallMarks []string
	// ThinkingMarks holds the texts that begin and end reasoning; zero = <think>, </think>.
	ThinkingMarks [2]string
}

// Validate reports every fault of d at once.
func (d Detector) Validate() error {
	f := faults.List{Of: "Detector."}
	if len(d.CallMarks)%2 != 0 {
		f.Add("CallMarks", "found %d marks, expected pairs of a beginning and an end", len(d.CallMarks))
	}
	for _, m := range d.CallMarks {
		if m == "" {
			f.Add("CallMarks", "an empty mark is in every text")
		}
	}
	if m := d.ThinkingMarks; (m[0] == "") != (m[1] == "") {
		f.Add("ThinkingMarks", "found the marks %q and %q, expected both or none", m[0], m[1])
	}
	return f.Err()
}

func (d *Detector) callMarks() []string {
	if d.CallMarks == nil {
		return []string{"<tool_call>", "</tool_call>", "<function_call>", "</function_call>"}
	}
	return d.CallMarks
}

func (d *Detector) thinkingMarks() [2]string {
	if d.ThinkingMarks[0] == "" {
		return [2]string{"<think>", "</think>"}
	}
	return d.ThinkingMarks
}

// Find returns the faults of one sampled message. tools are the tools that were offered to the model;
// without tools, names are not checked and arguments need only be JSON objects.
func (d Detector) Find(m *rollout.Message, tools []rollout.Tool) []Finding {
	c := checker{d, newToolset(tools)}
	return c.find(m)
}

// FindAll returns the faults of the messages that turns of r sampled, by message index.
func (d Detector) FindAll(r *rollout.Rollout) map[int][]Finding {
	if r == nil {
		return nil
	}
	c := checker{d, newToolset(r.Tools)}
	out := map[int][]Finding{}
	for _, t := range rollout.TurnsOf(r) {
		if t.Message < 0 || t.Message >= len(r.Messages) {
			continue
		}
		if f := c.find(&r.Messages[t.Message]); f != nil {
			out[t.Message] = f
		}
	}
	return out
}

type checker struct {
	Detector
	tools *toolset
}

func (c *checker) find(m *rollout.Message) []Finding {
	if m == nil {
		return nil
	}
	var out []Finding
	add := func(f Fault, call int, format string, args ...any) {
		out = append(out, Finding{f, call, fmt.Sprintf(format, args...)})
	}
	recorded := func(f Fault, key string) {
		if string(bytes.TrimSpace(m.Extra[key])) == "true" {
			add(f, -1, "%s is recorded", key)
		}
	}
	recorded(faultRecorded, "is_invalid_tool_call")
	recorded(faultThinking, "has_malformed_thinking")
	if c.Nemotron {
		c.nemotron(m, add)
		return out
	}
	for i := range m.ToolCalls {
		call := &m.ToolCalls[i]
		if f, why := c.tools.check(call.Name, call.Arguments); why != "" {
			add(f, i, "%s", why)
		}
	}
	if why := c.callInText(m); why != "" {
		add(faultCallInText, -1, "%s", why)
	}
	if why := c.thinking(m); why != "" {
		add(faultThinking, -1, "%s", why)
	}
	return out
}

// nemotron applies the rule of NeMo RL.
func (c *checker) nemotron(m *rollout.Message, add func(Fault, int, string, ...any)) {
	text, most := m.Content, 0
	switch {
	case len(m.ToolCalls) > 0:
		return // the last item of the reply is a call
	case text == "":
		text, most = m.Reasoning, 1
	}
	for _, mark := range c.callMarks() {
		if strings.Contains(text, mark) {
			add(faultCallInText, -1, "the text holds %q", mark)
			break
		}
	}
	for _, mark := range c.thinkingMarks() {
		if strings.Count(text, mark) > most {
			add(faultThinking, -1, "the text holds %q", mark)
			break
		}
	}
}

// callInText describes the first call marker in the text that does not belong to a complete call left
// there by the recorder; "" if there is none.
func (c *checker) callInText(m *rollout.Message) string {
	text := m.Content
	if text == "" && len(m.ToolCalls) == 0 {
		text = m.Reasoning
	}
	marks := c.callMarks()
	for i := 0; i+1 < len(marks); i += 2 {
		begin, end := marks[i], marks[i+1]
		for rest := text; ; {
			before, after, found := strings.Cut(rest, begin)
			if strings.Contains(before, end) {
				return fmt.Sprintf("%q ends no call", end)
			}
			if !found {
				break
			}
			if len(m.ToolCalls) > 0 {
				return fmt.Sprintf("%q is left in the text beside parsed calls", begin)
			}
			body, tail, closed := strings.Cut(after, end)
			if !closed {
				return fmt.Sprintf("the call after %q has no end", begin)
			}
			if why := c.bodyOfCall(body); why != "" {
				return why
			}
			rest = tail
		}
	}
	return ""
}

// bodyOfCall describes the fault of the text of a call, "" if it has none: the text must be a JSON
// object with name and arguments, or the XML of Qwen3-Coder, of which only the end is checked.
func (c *checker) bodyOfCall(body string) string {
	body = strings.TrimSpace(body)
	if strings.HasPrefix(body, "<function=") {
		if !strings.HasSuffix(body, "</function>") {
			return "the call in the text has no end"
		}
		return ""
	}
	var call struct {
		Name       string          `json:"name"`
		Arguments  json.RawMessage `json:"arguments"`
		Parameters json.RawMessage `json:"parameters"`
	}
	if err := json.Unmarshal([]byte(body), &call); err != nil {
		return fmt.Sprintf("the call in the text is no JSON object: %v", err)
	}
	if call.Arguments == nil {
		call.Arguments = call.Parameters
	}
	_, why := c.tools.check(call.Name, string(call.Arguments))
	return why
}

// thinking describes the fault of the reasoning markers of a message, "" if there is none.
func (c *checker) thinking(m *rollout.Message) string {
	marks := c.thinkingMarks()
	for _, mark := range marks {
		if strings.Count(m.Reasoning, mark) > 1 {
			return fmt.Sprintf("the reasoning holds %q twice", mark)
		}
	}
	text := m.Content
	if m.Reasoning != "" {
		for _, mark := range marks {
			if strings.Contains(text, mark) {
				return fmt.Sprintf("the text after the reasoning holds %q", mark)
			}
		}
		return ""
	}
	open, first := false, true
	for {
		i, j := strings.Index(text, marks[0]), strings.Index(text, marks[1])
		switch {
		case i < 0 && j < 0:
			if open {
				return fmt.Sprintf("%q has no %q", marks[0], marks[1])
			}
			return ""
		case j < 0 || i >= 0 && i < j:
			if open {
				return fmt.Sprintf("%q comes twice without %q between", marks[0], marks[1])
			}
			open, text = true, text[i+len(marks[0]):]
		default:
			if !open && !first { // the first end marker may end reasoning that the prompt began
				return fmt.Sprintf("%q ends no reasoning", marks[1])
			}
			open, text = false, text[j+len(marks[1]):]
		}
		first = false
	}
}
