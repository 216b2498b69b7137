package tokenize_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// callOf is what the models of each family write for bash with {"command": "ls", "n": 1.50}; %s is
// the number, which some format differently.
var callOf = []struct{ prefix, text string }{
	{"deepseekv3", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n```json\n{\"command\": \"ls\", \"n\": 1.50}\n```<｜tool▁call▁end｜>"},
	{"diffusion_gemma", `<|tool_call>call:bash{command:<|"|>ls<|"|>,n:1.50}<tool_call|>`},
	{"gemma4", `<|tool_call>call:bash{command:<|"|>ls<|"|>,n:1.50}<tool_call|>`},
	{"glm4moe", "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n<arg_key>n</arg_key>\n<arg_value>1.50</arg_value>\n</tool_call>"},
	{"gptoss", ` to=functions.bash<|channel|>commentary json<|message|>{"command": "ls", "n": 1.50}<|call|>`},
	{"lfm2", `<|tool_call_start|>[bash(command='ls', n=1.50)]<|tool_call_end|>`},
	{"llama3", `{"name": "bash", "parameters": {"command": "ls", "n": 1.50}}`},
	{"muse", "<atem:invoke name=\"bash\">\n<atem:parameter name=\"command\">ls</atem:parameter>\n<atem:parameter name=\"n\">1.50</atem:parameter>\n</atem:invoke>"},
	{"nemotron", "<function=bash>\n<parameter=command>\nls\n</parameter>\n<parameter=n>\n1.50\n</parameter>\n</function>"},
	{"qwen3_5", "<function=bash>\n<parameter=command>\nls\n</parameter>\n<parameter=n>\n1.50\n</parameter>\n</function>"},
	{"qwen3_6", "<function=bash>\n<parameter=command>\nls\n</parameter>\n<parameter=n>\n1.50\n</parameter>\n</function>"},
	{"qwen3_8", "<function=bash>\n<parameter=command>\nls\n</parameter>\n<parameter=n>\n1.50\n</parameter>\n</function>"},
	{"qwen", "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\", \"n\": 1.50}}\n</tool_call>"},
}

// calls is a conversation with two turns of one call each.
func calls(arguments string, text bool) *rollout.Rollout {
	first, second := call("abcdef001", arguments), call("abcdef002", arguments)
	first.ArgumentsText, second.ArgumentsText = text, text
	return &rollout.Rollout{ID: "calls", Tools: bashTool, Messages: []rollout.Message{
		{Role: rollout.RoleUser, Content: "hi"}, reply("", "", first), result("abcdef001", "a.txt"), reply("", "", second), result("abcdef002", "b.txt"), reply("", "done")}}
}

// writesCalls reports whether the template writes calls at all.
func writesCalls(t *testing.T, m *tokenize.Model, r *rollout.Rollout) ([]rollout.Sequence, bool) {
	t.Helper()
	enc, err := tokenize.NewEncoder(m, tokenize.Options{Mode: tokenize.PerStep})
	require.NoError(t, err)
	seqs, _, err := enc.Encode(t.Context(), r)
	if err != nil {
		require.ErrorIs(t, err, rollout.KindTemplate)
		return nil, false
	}
	return seqs, true
}

// With every template a call is trained, and shown in later contexts, as the model writes it,
// whether its arguments were recorded as JSON text or as an object.
func TestArgumentsAreWrittenOnce(t *testing.T) {
	kit.OneGoroutine(t)
	models := templateModels(t)
	written := 0
	for _, name := range slices.Sorted(maps.Keys(models)) {
		m := models[name]
		const arguments = `{"command": "ls", "n": 1.50}`
		rows, ok := writesCalls(t, m, calls(arguments, true))
		if !ok {
			continue
		}
		written++
		k := slices.IndexFunc(callOf, func(f struct{ prefix, text string }) bool { return strings.HasPrefix(name, f.prefix) })
		require.GreaterOrEqual(t, k, 0, name)
		want := callOf[k].text
		for turn := range 2 {
			require.Contains(t, sampled(t, m, &rows[turn])[0], want, name)
			shown := decode(t, m, rows[turn+1].IDs[:rows[turn+1].Len()-len(trained(&rows[turn+1]))])
			assert.Equal(t, turn+1, strings.Count(shown, strings.TrimSuffix(want, "<|call|>")), "%s: the context of turn %d shows\n%s", name, turn+1, shown)
		}
		for what, r := range map[string]*rollout.Rollout{"object": calls(arguments, false), "spaced": calls("{\n \"command\" : \"ls\",\t\"n\":1.50 }", false)} {
			same, _ := writesCalls(t, m, r)
			for turn := range rows {
				require.Equal(t, rows[turn].IDs, same[turn].IDs, "%s: recorded as %s", name, what)
			}
		}
		for _, none := range []*rollout.Rollout{calls("", true), calls(" ", true), calls("null", true), calls("null", false), calls("", false)} {
			empty, _ := writesCalls(t, m, calls("{}", false))
			got, ok := writesCalls(t, m, none)
			require.True(t, ok, name)
			for turn := range empty {
				require.Equal(t, empty[turn].IDs, got[turn].IDs, "%s: no arguments are {}, as in vLLM", name)
			}
		}
	}
	require.Equal(t, 46, written)
}

// trained returns the sampled tokens at the end of a row.
func trained(seq *rollout.Sequence) []rollout.TokenID {
	at := seq.Len()
	for at > 0 && seq.Flags[at-1]&rollout.FlagSampled != 0 {
		at--
	}
	return seq.IDs[at:]
}

// Arguments that are not JSON are never invented. They are trained as sampled if the template
// writes text like objects, and rejected otherwise; recorded ids are trained in any case, and
// contexts show {} as vLLM's do.
func TestArgumentsThatAreNoJSON(t *testing.T) {
	const broken = `{"command": "ls`
	models := templateModels(t)
	for _, name := range []string{"qwen2_5", "gptoss", "llama3_1", "gemma4", "glm4moe"} {
		m := models[name]
		enc, err := tokenize.NewEncoder(m, tokenize.Options{Mode: tokenize.PerStep})
		require.NoError(t, err)
		r := calls(broken, true)
		_, _, err = enc.Encode(t.Context(), r)
		require.ErrorIs(t, err, rollout.KindInput, name)
		require.ErrorContains(t, err, "message 1", name)
		require.ErrorContains(t, err, "not JSON", name)
		for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.Whole} {
			_, err := tokenize.NewEncoder(m, tokenize.Options{Mode: mode})
			require.NoError(t, err)
			require.ErrorContains(t, encodeError(t, m, mode, r), "not JSON", name)
		}
		r.Turns = rollout.TurnsOf(r)
		for i := range r.Turns[:2] {
			r.Turns[i].Prompt, r.Turns[i].Output = rollout.PromptIDs{Add: []rollout.TokenID{1}}, []rollout.TokenID{2, 3}
		}
		seqs, report, err := enc.Encode(t.Context(), r)
		require.NoError(t, err, name)
		require.Equal(t, []rollout.TokenID{1, 2, 3}, seqs[0].IDs, name)
		require.NotContains(t, decode(t, m, seqs[2].IDs), `"ls`, name)

		r = calls(broken, true)
		r.Messages[1].Sampled, r.Messages[3].Sampled = rollout.SampledDemonstration, rollout.SampledDemonstration
		seqs, report, err = enc.Encode(t.Context(), r)
		require.NoError(t, err, name)
		require.Len(t, seqs, 1)
		require.Equal(t, 2, report.Unwritten, name)
		require.Equal(t, tokenize.Unwritten{Rollout: "calls", Message: 1, Role: rollout.RoleAssistant, Part: "arguments"}, report.UnwrittenAt[0], name)
	}
	for _, name := range []string{"qwen3", "qwen3_vl", "deepseekv3"} {
		seqs, ok := writesCalls(t, models[name], calls(broken, true))
		require.True(t, ok)
		require.Contains(t, sampled(t, models[name], &seqs[0])[0], broken, name)
	}
}

func encodeError(t *testing.T, m *tokenize.Model, mode tokenize.Mode, r *rollout.Rollout) error {
	t.Helper()
	enc, err := tokenize.NewEncoder(m, tokenize.Options{Mode: mode})
	require.NoError(t, err)
	_, _, err = enc.Encode(t.Context(), r)
	return err
}

// With PromptsBy transformers the template gets arguments as they are recorded.
func TestArgumentsAsRecorded(t *testing.T) {
	m := templateModels(t)["qwen2_5"]
	for recorded, want := range map[bool]string{true: `"arguments": "{\"n\": 1.50}"}`, false: `"arguments": {"n": 1.5}}`} {
		seqs := encode(t, m, tokenize.Options{Mode: tokenize.PerStep, PromptsBy: "transformers"}, calls(`{"n": 1.50}`, recorded))
		require.Contains(t, sampled(t, m, &seqs[0])[0], want)
	}
	r := calls(`{"n": 1.50}`, true)
	r.Metadata = map[string]json.RawMessage{"engine": json.RawMessage(`"transformers"`)}
	seqs := encode(t, m, tokenize.Options{Mode: tokenize.PerStep}, r)
	require.Contains(t, sampled(t, m, &seqs[0])[0], `\"n\"`, "the record says so")
}

// Several text parts of a message are joined by the rule of the system that served the model,
// unless the template loops over the parts itself.
func TestTextPartsAreJoinedAsTheEngineDoes(t *testing.T) {
	parts := func(role rollout.Role, texts ...string) rollout.Message {
		m := rollout.Message{Role: role, Content: strings.Join(texts, "")}
		for _, text := range texts {
			m.Parts = append(m.Parts, rollout.Part{Type: "text", Text: text})
		}
		return m
	}
	answered := parts(rollout.RoleAssistant, "so", "far")
	answered.Sampled = rollout.SampledByPolicy
	tool := parts(rollout.RoleTool, "out", "put")
	tool.ToolCallID, tool.Name = "abcdef001", "bash"
	const looping = "{%- set all = messages[0:] -%}{%- for m in all -%}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% else %}{% for c in m['content'] %}({{ c.text }}){% endfor %}{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
	const viaMacro = "{% macro body(c) %}{% if c is string %}{{ c }}{% else %}{% for p in c %}({{ p.text }}){% endfor %}{% endif %}{% endmacro %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ body(m.content) }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
	for _, c := range []struct {
		name, template        string
		by                    string
		metadata              string
		user, reply, observed string
	}{
		{"vLLM, where nothing says otherwise", chatML, "", ``, "one\ntwo", "so\nfar", "out\nput"},
		{"vLLM", chatML, "vllm", `{"engine": "sglang"}`, "one\ntwo", "so\nfar", "out\nput"},
		{"SGLang", chatML, "sglang", ``, "one two", "so far", "out put"},
		{"SGLang by record", chatML, "", `{"engine": "SGLang"}`, "one two", "so far", "out put"},
		{"vLLM by the model's name", chatML, "", `{"model": "hosted_vllm/Qwen/Qwen3-8B"}`, "one\ntwo", "so\nfar", "out\nput"},
		{"SGLang by the model's name", chatML, "", `{"model": "sglang/Qwen3"}`, "one two", "so far", "out put"},
		{"a name that says nothing", chatML, "", `{"engine": 3, "model": "Qwen/Qwen3-8B"}`, "one\ntwo", "so\nfar", "out\nput"},
		{"transformers", chatML, "transformers", ``, "onetwo", "sofar", "output"},
		{"a template that loops, vLLM", looping, "", ``, "(one)(two)", "(so)(far)", "out\nput"},
		{"a template that loops, SGLang", looping, "sglang", ``, "(one)(two)", "(so)(far)", "out put"},
		{"a template that loops, transformers", looping, "transformers", ``, "(one)(two)", "(so)(far)", "(out)(put)"},
		{"a loop that vLLM does not see", viaMacro, "", ``, "one\ntwo", "so\nfar", "out\nput"},
		{"a loop that transformers needs not see", viaMacro, "transformers", ``, "(one)(two)", "(so)(far)", "(out)(put)"},
	} {
		m := withTemplate(t, c.template)
		r := &rollout.Rollout{ID: "parts", Messages: []rollout.Message{parts(rollout.RoleUser, "one", "two"), answered, tool, reply("", "end")}}
		if c.metadata != "" {
			require.NoError(t, json.Unmarshal([]byte(c.metadata), &r.Metadata))
		}
		for _, mode := range []tokenize.Mode{tokenize.PerStep, tokenize.Merged} {
			seqs := encode(t, m, tokenize.Options{Mode: mode, PromptsBy: c.by}, r)
			last := decode(t, m, seqs[len(seqs)-1].IDs)
			require.Equal(t, "<|im_start|>user\n"+c.user+"<|im_end|>\n<|im_start|>assistant\n"+c.reply+"<|im_end|>\n<|im_start|>tool\n"+c.observed+"<|im_end|>\n<|im_start|>assistant\nend<|im_end|>", last, c.name)
			require.Equal(t, "sofar<|im_end|>", sampled(t, m, &seqs[0])[0], "%s: the policy sampled nothing between its parts", c.name)
		}
		whole := encode(t, m, tokenize.Options{Mode: tokenize.Whole, PromptsBy: c.by}, r)
		require.Contains(t, decode(t, m, whole[0].IDs), c.user, c.name)
		require.Equal(t, "sofar<|im_end|>", sampled(t, m, &whole[0])[0], c.name)
	}
}
