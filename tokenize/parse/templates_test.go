package parse

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
)

var kitTools = `[{"type":"function","function":{"name":"look_up","description":"d","parameters":{"type":"object","properties":{
"city":{"type":"string","description":"d"},"days":{"type":"integer","description":"d"},"exact":{"type":"boolean","description":"d"},"near":{"type":"array","items":{"type":"string"},"description":"d"}},"required":["city"]}}}]`

// kitReplies are given to every template that writes calls; later ones have fewer features, for
// templates that reject or drop the earlier ones.
var kitReplies = []struct{ name, reply string }{
	{"reasoning, text, two calls", `{"role":"assistant","reasoning":"Two cities.\nBoth now.","content":"I look.","tool_calls":[
		{"id":"abcdefgh0","type":"function","function":{"name":"look_up","arguments":{"city":"Köln \"am\" Rhein","days":3,"exact":true,"near":["a","b\n{c}"]}}},
		{"id":"abcdefgh1","type":"function","function":{"name":"look_up","arguments":{"city":"Ulm"}}}]}`},
	{"reasoning, a call", `{"role":"assistant","reasoning":"One city.","content":"","tool_calls":[
		{"id":"abcdefgh0","type":"function","function":{"name":"look_up","arguments":{"city":"Ulm","days":-2}}}]}`},
	{"a call, no content", `{"role":"assistant","content":null,"tool_calls":[
		{"id":"abcdefgh0","type":"function","function":{"name":"look_up","arguments":{"city":"Ulm","days":7}}}]}`},
	{"a call of texts", `{"role":"assistant","content":"","tool_calls":[
		{"id":"abcdefgh0","type":"function","function":{"name":"look_up","arguments":{"city":"Ulm"}}}]}`},
	{"reasoning, text", `{"role":"assistant","reasoning":"Nothing to look up.","content":"Hello!"}`},
	{"text", `{"role":"assistant","content":"Hello!"}`},
}

var kitStops = []string{"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|eot|>", "<|return|>", "<|user|>", "<|observation|>", "<｜end▁of▁sentence｜>", "</s>", "<turn|>", "<end_of_turn>", "<|tool_response>", "<|END_OF_TURN_TOKEN|>", "<|END_RESPONSE|>", " <end_of_utterance>"}

// written returns what a template writes for a reply after its generation prompt.
func written(t *testing.T, tpl *chat.Template, reply string, kwargs map[string]chat.Value) (prompt, text string, err error) {
	t.Helper()
	value := func(s string) chat.Value {
		v, err := chat.ParseJSON([]byte(s))
		require.NoError(t, err)
		return v
	}
	const user = `{"role":"user","content":"How is the weather?"}`
	render := func(messages string, add bool) (string, error) {
		c, err := chat.NewConversation(value(messages), value(kitTools), chat.Null(), chat.ConversationOptions{})
		require.NoError(t, err)
		r, err := tpl.Render(t.Context(), c, chat.Input{AddGenerationPrompt: add, Kwargs: kwargs, Now: time.Unix(1e9, 0)})
		if err != nil {
			return "", err
		}
		return string(r.Text), nil
	}
	if prompt, err = render("["+user+"]", true); err != nil {
		return "", "", err
	}
	full, err := render("["+user+","+reply+"]", false)
	if err != nil {
		return "", "", err
	}
	// Templates differ in whether the opened reasoning is in the history.
	for _, opened := range []string{"", "<think>\n\n</think>\n\n", "<think></think>", "<think>\n", "<think>"} {
		if p, ok := strings.CutSuffix(prompt, opened); ok && strings.HasPrefix(full, p) && !strings.HasPrefix(full, prompt) {
			rest := full[len(p):]
			return p, rest, nil
		}
	}
	if !strings.HasPrefix(full, prompt) {
		return prompt, "", fmt.Errorf("the reply does not follow its generation prompt: %q, %q", prompt[max(0, len(prompt)-60):], full[max(0, len(full)-200):])
	}
	return prompt, full[len(prompt):], nil
}

func argumentsAsText(t *testing.T, reply string) string {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(reply), &m))
	calls, _ := m["tool_calls"].([]any)
	for _, c := range calls {
		f := c.(map[string]any)["function"].(map[string]any)
		b, err := json.Marshal(f["arguments"])
		require.NoError(t, err)
		f["arguments"] = string(b)
	}
	b, err := json.Marshal(m)
	require.NoError(t, err)
	return string(b)
}

// messageJSON returns a reply as a client sends it back.
func messageJSON(t *testing.T, r Reply) string {
	t.Helper()
	m := map[string]any{"role": "assistant", "content": r.Message.Content}
	if r.Message.Reasoning != "" {
		m["reasoning"] = r.Message.Reasoning
	}
	var calls []any
	for _, c := range r.Message.ToolCalls {
		call := map[string]any{"name": c.Name, "arguments": json.RawMessage(c.Arguments)}
		calls = append(calls, map[string]any{"type": "function", "id": c.ID, "function": call})
	}
	if calls != nil {
		m["tool_calls"] = calls
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(m))
	return b.String()
}

func unstopped(text string) string {
	for {
		was := text
		text = strings.TrimRight(text, "\n")
		for _, s := range kitStops {
			text = strings.TrimSuffix(text, s)
		}
		if text == was {
			return text
		}
	}
}

func TestTemplates(t *testing.T) {
	kit.OneGoroutine(t)
	files, err := filepath.Glob(filepath.Join(kit.Templates(t), "*.jinja"))
	require.NoError(t, err)
	var tools []rollout.Tool
	require.NoError(t, json.Unmarshal([]byte(kitTools), &tools))
	counts, detected := map[string]int{}, map[Family][]string{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jinja")
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		family := Detect(string(source))
		detected[family] = append(detected[family], name)
		tpl, err := chat.Compile(string(source), chat.Options{Name: name})
		require.NoError(t, err)
		for _, kr := range kitReplies {
			kwargs := map[string]chat.Value{"bos_token": chat.String("<s>"), "eos_token": chat.String("</s>")}
			prompt, text, err := written(t, tpl, kr.reply, kwargs)
			if err != nil { // some templates take arguments as text only
				prompt, text, err = written(t, tpl, argumentsAsText(t, kr.reply), kwargs)
			}
			if err != nil {
				counts["refused by the template"]++
				continue
			}
			if family == "" {
				counts["of an unknown family"]++
				continue
			}
			var want struct {
				Reasoning string
				Content   string
				Calls     []struct {
					Function struct {
						Name      string
						Arguments json.RawMessage
					}
				} `json:"tool_calls"`
			}
			require.NoError(t, json.Unmarshal([]byte(kr.reply), &want))
			text = unstopped(text)
			in := family.InReasoning(prompt)
			got, _ := read(t, family, Options{Tools: tools, InReasoning: in}, text)
			m := got.Message
			var diffs []string
			if m.Reasoning != want.Reasoning && strings.Contains(text, want.Reasoning) {
				diffs = append(diffs, fmt.Sprintf("reasoning %q", m.Reasoning))
			}
			if m.Content != want.Content && strings.Contains(text, want.Content) {
				diffs = append(diffs, fmt.Sprintf("content %q", m.Content))
			}
			want.Calls = want.Calls[:min(len(want.Calls), strings.Count(text, "look_up"))]
			if len(m.ToolCalls) != len(want.Calls) {
				diffs = append(diffs, fmt.Sprintf("%d calls", len(m.ToolCalls)))
			}
			for i := range min(len(want.Calls), len(m.ToolCalls)) {
				w, g := want.Calls[i].Function, m.ToolCalls[i]
				var a, b any
				require.NoError(t, json.Unmarshal(w.Arguments, &a))
				if json.Unmarshal([]byte(g.Arguments), &b) != nil || g.Name != w.Name || fmt.Sprint(a) != fmt.Sprint(b) {
					diffs = append(diffs, fmt.Sprintf("%s %s", g.Name, g.Arguments))
				}
			}
			for _, f := range got.Faults {
				diffs = append(diffs, string(f.Kind)+": "+f.Detail)
			}
			if diffs != nil {
				counts["differs"]++
				t.Errorf("%s (%s), %s: %v\n\t%q in=%v", name, family, kr.name, diffs, text, in)
				continue
			}
			counts["equal"]++
			if len(want.Calls) > 0 {
				counts["with calls"]++
			}
			if family == plain {
				continue // some templates take content as lists only
			}
			_, again, err := written(t, tpl, messageJSON(t, got), kwargs)
			if err != nil {
				_, again, err = written(t, tpl, argumentsAsText(t, messageJSON(t, got)), kwargs)
			}
			require.NoError(t, err, "%s (%s), %s", name, family, kr.name)
			require.Equal(t, text, unstopped(again), "%s (%s), %s: the next prompt would drift from what was sampled", name, family, kr.name)
			counts["written again"]++
		}
	}
	t.Log(counts)
	compareTable(t, detected)
}

// compareTable compares the page's table with what was detected.
func compareTable(t *testing.T, detected map[Family][]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/parsers.md")
	require.NoError(t, err)
	rows := map[string]string{}
	table, _, _ := strings.Cut(string(page), "\n## ")
	for line := range strings.Lines(table) {
		if cells := strings.Split(strings.ReplaceAll(line, `\|`, ""), "|"); len(cells) == 6 && strings.Contains(cells[1], "`") {
			rows[strings.Trim(cells[1], " `")] = strings.TrimSpace(cells[4])
		}
	}
	for _, f := range append(Families(), "") {
		var names []string
		for _, n := range detected[f] {
			if !strings.HasSuffix(n, "_training") {
				names = append(names, n)
			}
		}
		list := strings.Join(names, ", ")
		if f == plain {
			list = strconv.Itoa(len(names)) + " templates that write no calls"
		}
		got, ok := rows[cmp.Or(string(f), "unknown")]
		require.True(t, ok, "docs/parsers.md has no row for %q", f)
		assert.Equal(t, list, got, "docs/parsers.md: %q", f)
	}
}
