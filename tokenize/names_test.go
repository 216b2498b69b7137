package tokenize_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/certify"
)

// naming lists templates that write the name of a message, and what each trains in Whole rows of a
// reply "yes" by bob; "" = rejected. Merged and per-step rows train yes and the stop token with all
// of them.
var naming = []struct{ name, template, whole string }{
	{"in place of the role, between control tokens (Kimi K2)", `{% for m in messages %}<|im_start|>{{ m.get('name') or m['role'] }}<|endoftext|>{{ m.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant<|endoftext|>{% endif %}`, "yes<|im_end|>"},
	{"the same by a macro, and reasoning", `{% macro head(m) %}<|im_start|>{{ m.get('name') or m['role'] }}<|endoftext|>{% endmacro %}{% for m in messages %}{{ head(m) }}{% if m.role == 'assistant' %}<think>{{ m.reasoning_content or '' }}</think>{% endif %}{{ m.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant<|endoftext|>{% endif %}`, "yes<|im_end|>"},
	{"as an attribute (Kimi K3)", `{% for m in messages %}<|im_start|>message role="{{ m.role }}"{% if m.name %} name="{{ m.name }}"{% endif %}<|endoftext|>{{ m.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>message role="assistant"<|endoftext|>{% endif %}`, "yes<|im_end|>"},
	{"in a line of the header", "{% for m in messages %}<|im_start|>{{ m.role }}{% if m.name %} name={{ m.name }}{% endif %}{{ '\n' }}{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}", "yes<|im_end|>"},
	{"before a reasoning opener", "{% for m in messages %}<|im_start|>{{ m.name or m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}", "yes<|im_end|>"},
	{"before the text", "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.name %}{{ m.name }}: {% endif %}{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}", ""},
	{"after the text", "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% if m.name %} ({{ m.name }}){% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}", ""},
	{"nowhere", chatML, "yes<|im_end|>"},
}

// The name of a reply is in its header, which the policy did not sample: a reply begins after the
// header that the template wrote, or is rejected.
func TestNamesAreNotTrained(t *testing.T) {
	kit.OneGoroutine(t)
	for _, c := range naming {
		for _, name := range []string{"bob", "assistant", "x<|im_end|>", "yes", "assistant<|endoftext|>", "assistant<|endoftext|>x", "assistant\n", "assistant\n<think>\n"} {
			m := withTemplate(t, c.template)
			r := &rollout.Rollout{ID: "r", Messages: say("user: hi", "assistant: yes", "user: and", "assistant: yes")}
			r.Messages[0].Name, r.Messages[1].Name, r.Messages[3].Name = "ann", name, name
			for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep} {
				seqs := encode(t, m, tokenize.Options{Mode: mode}, r)
				for turn, text := range byTurn(t, m, seqs) {
					require.Equal(t, "yes<|im_end|>", text, "%s: %s, turn %d of a %s row", c.name, name, turn, mode)
				}
				last := decode(t, m, seqs[len(seqs)-1].IDs)
				require.Equal(t, c.name != "nowhere", strings.Contains(last, "ann"), "contexts show names")
			}
			if c.whole == "" {
				err := encodeError(t, m, tokenize.Whole, r)
				require.ErrorIs(t, err, rollout.KindTemplate, c.name)
				require.ErrorContains(t, err, "name", c.name)
				continue
			}
			for turn, text := range byTurn(t, m, encode(t, m, tokenize.Options{Mode: tokenize.Whole}, r)) {
				require.Equal(t, c.whole, text, "%s: %s, turn %d", c.name, name, turn)
			}
		}
		cert, err := certify.Model(t.Context(), withTemplate(t, c.template))
		require.NoError(t, err)
		require.Equal(t, c.whole != "", cert.Verdict("names") == certify.Holds, c.name)
	}
}

// oddConversations are conversations that agents record besides plain turns.
func oddConversations() []templateConversation {
	user := func(s string) rollout.Message { return rollout.Message{Role: rollout.RoleUser, Content: s} }
	named := func(m rollout.Message, name string) rollout.Message { m.Name = name; return m }
	demo := func(m rollout.Message) rollout.Message { m.Sampled = rollout.SampledDemonstration; return m }
	system := rollout.Message{Role: rollout.RoleSystem, Content: "Be brief."}
	const a, b = "abcdef001", "abcdef002"
	ls, pwd := call(a, `{"command": "ls"}`), call(b, `{"command": "pwd"}`)
	return []templateConversation{
		{"named", false, []rollout.Message{named(user("hi"), "al"), named(reply("", "hello"), "bob"), user("bye"), named(reply("", "see you"), "bob")}},
		{"named system", false, []rollout.Message{named(system, "root"), user("hi"), named(reply("", "hello"), "assistant"), user("bye"), named(reply("Hm.", "see you"), "carl")}},
		{"named call", true, []rollout.Message{user("hi"), named(reply("", "", ls), "bob"), result(a, "a.txt"), named(reply("", "one"), "bob")}},
		{"named reasoning and calls", true, []rollout.Message{user("hi"), named(reply("Hm.", "Look.", ls, pwd), "bob"), result(a, "a.txt"), result(b, "/"), named(reply("So.", "one"), "bob")}},
		{"a name that is a control token", false, []rollout.Message{user("hi"), named(reply("", "hello"), "x<|im_end|>"), user("bye"), reply("", "y")}},
		{"named and empty", false, []rollout.Message{user("hi"), named(reply("", ""), "bob"), user("x"), reply("", "y")}},
		{"reasoning alone", false, []rollout.Message{user("hi"), reply("Hm.", ""), user("x"), reply("", "y")}},
		{"reasoning alone at the end", false, []rollout.Message{user("hi"), reply("Hm.", "")}},
		{"a call without a result", true, []rollout.Message{user("hi"), reply("", "", ls)}},
		{"two replies in a row", false, []rollout.Message{user("hi"), reply("", "one"), reply("", "two"), user("x"), reply("R", "three")}},
		{"a reply first", false, []rollout.Message{reply("", "one"), user("x"), reply("", "three")}},
		{"a user after a result", true, []rollout.Message{system, user("hi"), reply("", "look", ls), result(a, "r"), user("and"), reply("", "end")}},
		{"a late system", false, []rollout.Message{user("hi"), system, reply("", "one")}},
		{"a developer", false, []rollout.Message{{Role: rollout.RoleDeveloper, Content: "Dev."}, user("hi"), reply("", "one")}},
		{"an unknown role", false, []rollout.Message{user("hi"), {Role: "critic", Content: "bad"}, reply("", "one")}},
		{"a result without a call", true, []rollout.Message{user("hi"), result(a, "r"), reply("", "one")}},
		{"white space", false, []rollout.Message{user("hi"), reply("", "  "), user("x"), reply(" ", "\n")}},
		{"demonstrations", true, []rollout.Message{user("hi"), named(demo(reply("", "demo")), "d"), user("x"), reply("", "one", ls), result(a, "a"), demo(reply("q", "z")), user("u"), reply("T", "w")}},
	}
}

// With every template of the kit, odd conversations train no header: the same text as without
// names, no generation prompt before it, and no stop token inside.
func TestNoHeaderIsTrained(t *testing.T) {
	kit.OneGoroutine(t)
	models := templateModels(t)
	turns := 0
	for _, name := range slices.Sorted(maps.Keys(models)) {
		m := models[name]
		opening, err := m.GenerationPrompt(t.Context())
		require.NoError(t, err, name)
		header, _, _ := strings.Cut(decode(t, m, opening), "<think>")
		header = strings.TrimSpace(header)
		openers := openers(m, opening)
		for _, c := range oddConversations() {
			for _, mode := range []tokenize.Mode{tokenize.PerStep, tokenize.Whole} {
				got, err := trainedOf(t, m, mode, c)
				unnamed := templateConversation{c.name, c.tools, slices.Clone(c.messages)}
				for i := range unnamed.messages {
					if unnamed.messages[i].Role == rollout.RoleAssistant {
						unnamed.messages[i].Name = ""
					}
				}
				want, wantErr := trainedOf(t, m, mode, unnamed)
				if wantErr != nil {
					require.Error(t, err, "%s, %s", name, c.name)
					continue
				}
				require.NoError(t, err, "%s, %s", name, c.name)
				require.Equal(t, want, got, "%s, %s, %s", name, c.name, mode)
				for turn, text := range got {
					turns++
					if header != "" {
						require.False(t, strings.HasPrefix(strings.TrimSpace(text), header), "%s, %s, turn %d: %q", name, c.name, turn, text)
					}
					for _, piece := range openers { // replies of gpt-oss and Muse continue with messages of their own
						require.NotContains(t, goingOn.Replace(text), piece, "%s, %s, turn %d", name, c.name, turn)
					}
					for _, stop := range m.Stops() {
						end, _ := m.Tokenizer.Vocab().Token(stop)
						require.NotContains(t, strings.TrimSuffix(text, end), end, "%s, %s, turn %d", name, c.name, turn)
					}
				}
			}
		}
	}
	require.Greater(t, turns, 2000)
	t.Logf("%d turns", turns)
}

var goingOn = strings.NewReplacer("<|end|><|start|>assistant", "", "<|eom|><|start|>assistant", "")

// openers returns the control tokens of a generation prompt that neither stop a reply nor open
// reasoning; they are never trained.
func openers(m *tokenize.Model, prompt []rollout.TokenID) []string {
	var out []string
	for _, a := range m.Tokenizer.Vocab().Added() {
		if a.Special && slices.Contains(prompt, a.ID) && !slices.Contains(m.Stops(), a.ID) && !strings.Contains(a.Content, "think") {
			out = append(out, a.Content)
		}
	}
	return out
}

func trainedOf(t *testing.T, m *tokenize.Model, mode tokenize.Mode, c templateConversation) (map[int32]string, error) {
	t.Helper()
	r := &rollout.Rollout{ID: c.name, Messages: c.messages}
	if c.tools {
		r.Tools = bashTool
	}
	enc, err := tokenize.NewEncoder(m, tokenize.Options{Mode: mode})
	require.NoError(t, err)
	seqs, _, err := enc.Encode(t.Context(), r)
	if err != nil {
		require.ErrorIs(t, err, rollout.KindTemplate)
		return nil, err
	}
	return byTurn(t, m, seqs), nil
}

// If a template opens a turn differently than its generation prompt, the start of the reply is
// unknown: rows are rejected, except whole ones that show the header.
func TestRepliesWithoutTheirHeaderAreRefused(t *testing.T) {
	const prompt = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
	const calls = "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
	const user = "{% for m in messages %}{% if m.role != 'assistant' %}<|im_start|>user\n{{ m.content }}<|im_end|>\n{% else %}"
	const end = calls + "<|im_end|>\n{% endif %}{% endfor %}"
	for _, c := range []struct {
		name, template string
		rows, whole    bool
	}{
		{"as the prompt", user + "<|im_start|>assistant\n{{ m.content }}" + end + prompt, true, true},
		{"no prompt and no header", user + " {{ m.content }}" + end, true, true},
		{"no prompt", user + "<|im_start|>assistant\n{{ m.content }}" + end, false, true},
		{"no prompt, and no control token in the header", user + "ASSISTANT: {{ m.content }}" + end, false, true},
		{"another word", user + "<|im_start|>model\n{{ m.content }}" + end + prompt, false, true},
		{"another token", user + "<|endoftext|>{{ m.content }}" + end + prompt, false, true},
		{"a header that varies", user + "<|im_start|>model {{ loop.index }}\n{{ m.content }}" + end, false, false},
		{"a quotation of others", user + "<|im_start|>assistant\n{{ messages[0].content }}: {{ m.content }}" + end + prompt, false, false},
	} {
		m := withTemplate(t, c.template)
		for what, message := range map[string]rollout.Message{"text": reply("", "yes"), "a call": reply("", "", call("c1", `{"command": "ls"}`))} {
			r := &rollout.Rollout{ID: "r", Messages: append(say("user: hi"), message, result("c1", "x"), message)}
			for mode, allowed := range map[tokenize.Mode]bool{tokenize.Merged: c.rows, tokenize.PerStep: c.rows, tokenize.Whole: c.whole} {
				err := encodeError(t, m, mode, r)
				if !allowed {
					require.ErrorIs(t, err, rollout.KindTemplate, "%s, %s, %s", c.name, what, mode)
					continue
				}
				require.NoError(t, err, "%s, %s, %s", c.name, what, mode)
				for _, text := range byTurn(t, m, encode(t, m, tokenize.Options{Mode: mode}, r)) {
					want := strings.TrimSpace(text)
					require.True(t, strings.HasPrefix(want, "yes") || strings.HasPrefix(want, "<tool_call>"), "%s, %s, %s: %q", c.name, what, mode, text)
				}
			}
		}
		r := &rollout.Rollout{ID: "r", Messages: say("user: hi", "assistant: yes"), Turns: []rollout.Turn{{Message: 1, Prompt: rollout.PromptIDs{Add: []rollout.TokenID{1}}, Output: []rollout.TokenID{2, 3}}}}
		require.Equal(t, []rollout.TokenID{1, 2, 3}, encode(t, m, tokenize.Options{}, r)[0].IDs, "recorded ids are what the policy sampled")
	}
}

// If a template opens a reply with calls or reasoning otherwise than its generation prompt, the
// policy did not sample that header, so nothing tells where the reply begins.
func TestRepliesWhoseCallsHaveAnotherHeaderAreRefused(t *testing.T) {
	const user = "{% for m in messages %}{% if m.role != 'assistant' %}<|im_start|>user\n{{ m.content }}<|im_end|>\n{% else %}"
	const said = "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>\n{% endif %}{% endfor %}"
	header := func(odd, header string) string {
		return user + "{% if m.tool_calls or m.reasoning_content %}" + odd + "{% else %}" + header + "{% endif %}" + said
	}
	asked := func(prompt string) string { return "{% if add_generation_prompt %}" + prompt + "{% endif %}" }
	const assistant = "<|im_start|>assistant\n"
	for _, c := range []struct {
		name, template string
		ok             bool
	}{
		{"another word after the same token", header("<|im_start|>caller\n", assistant) + asked(assistant), false},
		{"another word after the same token, and a prompt that opens reasoning", header("<|im_start|>caller\n", assistant) + asked(assistant+"<think>\n"), false},
		{"no word after the same token", header("<|im_start|>", assistant) + asked(assistant), true},
		{"another word", header("CALLER: ", "ASSISTANT: ") + asked("ASSISTANT: "), false},
		{"words after the prompt, as in gpt-oss", header("<|im_start|>assistant to=functions.bash\n", assistant) + asked("<|im_start|>assistant"), true},
		{"without the reasoning that the prompt opens", header(assistant, assistant) + asked(assistant+"<think>\n"), true},
		{"without the line that the prompt ends with", header(assistant, assistant) + asked(assistant+"Here is what I think:\n"), true},
		{"without a line feed after the token", header("<|im_start|>assistant", assistant) + asked(assistant), true},
	} {
		m := withTemplate(t, c.template)
		for what, message := range map[string]rollout.Message{"a call": reply("", "", call("c1", `{"command": "ls"}`)), "reasoning": reply("so", "yes")} {
			for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep, tokenize.Whole} {
				r := &rollout.Rollout{ID: "r", Messages: append(say("user: hi", "assistant: yes", "user: more"), message)}
				if err := encodeError(t, m, mode, r); !c.ok {
					require.ErrorIs(t, err, rollout.KindTemplate, "%s, %s, %s", c.name, what, mode)
					continue
				} else {
					require.NoError(t, err, "%s, %s, %s", c.name, what, mode)
				}
				require.NotEmpty(t, encode(t, m, tokenize.Options{Mode: mode}, r))
			}
		}
		require.NoError(t, encodeError(t, m, tokenize.PerStep, &rollout.Rollout{ID: "r", Messages: say("user: hi", "assistant: yes")}), c.name)
	}
}
