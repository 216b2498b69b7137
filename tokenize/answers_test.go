package tokenize_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/internal/kit/kitmodel"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// A turn trains what the template writes between its prompt and the end of its answer, for all
// kinds of arguments and results, and in one row if the conversation continues from there. These
// are left out:
//   - reasoning markers that a template writes around nothing: no model sampled them;
//   - SmolVLM, Idefics, LLaVA, which need content in parts, and DiffusionGemma, which writes no
//     header into the prompt after a tool result.
func TestTrainedTextIsTheAnswer(t *testing.T) {
	kit.OneGoroutine(t)
	models := templateModels(t)
	const seed = 9
	checked := map[tokenize.Mode]int{}
	clean := func(s string) string {
		return strings.TrimSpace(strings.NewReplacer("<|im_end|>", "", "<think>", "", "</think>", "").Replace(s))
	}
	for k, name := range slices.Sorted(maps.Keys(models)) {
		if strings.Contains(name, "idefics") || strings.Contains(name, "smolvlm") || strings.Contains(name, "llava") || strings.Contains(name, "diffusion") {
			continue
		}
		m := models[name]
		rng := rand.New(rand.NewPCG(seed, uint64(k)))
		in := chat.Input{Now: time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC), Kwargs: map[string]chat.Value{}}
		for token, text := range m.SpecialTokens {
			in.Kwargs[token] = chat.String(text)
		}
		asking := in
		asking.AddGenerationPrompt = true
		for j := range 12 {
			r := randomRollout(rng, j%3 > 0)
			for i := range r.Messages {
				msg := &r.Messages[i]
				msg.Content, msg.Reasoning = clean(msg.Content), ""
				for c := range msg.ToolCalls {
					msg.ToolCalls[c].Arguments = clean(msg.ToolCalls[c].Arguments)
				}
			}
			answers := func(mode tokenize.Mode, turn rollout.Turn) (wants []string) {
				for _, text := range []bool{false, true} {
					c := asUserPasses(t, m, r, text)
					asked, err := m.Template.Render(t.Context(), c.Prefix(turn.Message), asking)
					if err != nil {
						continue
					}
					answered, err := m.Template.Render(t.Context(), c.Prefix(turn.Message+1), in)
					if err != nil {
						continue
					}
					whole, err := m.Template.Render(t.Context(), c, in)
					reply, ok := strings.CutPrefix(strings.TrimRight(answered.Text, "\n "), asked.Text)
					if !ok || mode == tokenize.Whole && (err != nil || !strings.HasPrefix(whole.Text, asked.Text+reply)) {
						continue
					}
					wants = append(wants, strings.TrimSuffix(reply, "\n<|end|>")) // Phi-3's </s>
				}
				return wants
			}
			for _, mode := range []tokenize.Mode{tokenize.PerStep, tokenize.Merged, tokenize.Whole} {
				seqs, fault := rows(t, m, tokenize.Options{Mode: mode, Now: in.Now}, r)
				if fault != "" {
					continue
				}
				trained := map[int32][]rollout.TokenID{}
				for _, s := range seqs {
					for i, turn := range s.Turn {
						if turn >= 0 {
							trained[turn] = append(trained[turn], s.IDs[i])
						}
					}
				}
				for i, turn := range r.Turns {
					wants := answers(mode, turn)
					if wants == nil || strings.Contains(wants[0], "think>") || strings.Contains(wants[0], "THINK]") {
						continue
					}
					got, err := m.Tokenizer.Decode(trained[int32(i)])
					require.NoError(t, err)
					for _, stop := range kitmodel.Stops(name) { // the next header is the stop
						if !strings.HasSuffix(wants[0], stop) {
							got = strings.TrimSuffix(got, stop)
						}
					}
					checked[mode]++
					require.Contains(t, wants, got, "%s, seed %d, rollout %d, turn %d, mode %v", name, seed, j, i, mode)
				}
			}
		}
	}
	for mode, n := range checked {
		require.Greater(t, n, 1000, mode)
	}
	t.Log(checked)
}

// Records may give several calls the same id. A template that looks up the function name of a
// result then writes the name of a later call before the result, which is not part of that call's
// turn.
func TestNameWrittenAheadOfItsCall(t *testing.T) {
	kit.OneGoroutine(t)
	m := templateModels(t)["muse_glimmer"]
	r := &rollout.Rollout{ID: "a", Messages: say("user: one", "assistant: ", "tool: two", "assistant: ", "tool: three")}
	for i, name := range []string{1: "bash", 3: "edit"} {
		if name != "" {
			r.Messages[i].ToolCalls = []rollout.ToolCall{{ID: "a", Name: name, Arguments: `{"n": 1}`}}
			r.Messages[i+1].ToolCallID = "a"
		}
	}
	for _, mode := range []tokenize.Mode{tokenize.Whole, tokenize.Merged, tokenize.PerStep} {
		want := ""
		for _, name := range []string{"bash", "edit"} {
			want += " to=" + name + "<|message|><atem:function_calls>\n<atem:invoke name=\"" + name + "\">\n<atem:parameter name=\"n\">1</atem:parameter>\n</atem:invoke>\n</atem:function_calls><|eot|>"
		}
		require.Equal(t, want, trainedText(t, m, mode, r), mode)
	}
}

// Content may begin with the opener of reasoning that the generation prompt wrote, which nobody
// sampled.
func TestOpenerOfThePromptIsNotTrained(t *testing.T) {
	kit.OneGoroutine(t)
	m := templateModels(t)["nemotron_3_ultra"]
	r := &rollout.Rollout{ID: "a", Messages: append(say("user: one", "assistant: <think>\n\nI look.</think>So."), result("call00001", "two"))}
	r.Messages[1].ToolCalls = []rollout.ToolCall{call("call00001", "{}")}
	r.Messages = append(r.Messages, say("assistant: <think>\nI see.</think>three")...)
	for _, mode := range []tokenize.Mode{tokenize.Whole, tokenize.Merged, tokenize.PerStep} {
		require.Equal(t, "\nI look.</think>So.\n<tool_call>\n<function=bash>\n</function>\n</tool_call>\n<|im_end|>I see.</think>three<|im_end|>", trainedText(t, m, mode, r), mode)
	}
	require.Len(t, encode(t, m, tokenize.Options{}, r), 1, "sampled text keeps its tokens in history")
}

// The last header of a reply is found even if the replies and users before it have no text, and
// even if the prompt ends with an opener that this reply lacks.
func TestHeaderBehindMessagesWithoutText(t *testing.T) {
	kit.OneGoroutine(t)
	models := templateModels(t)
	for _, name := range []string{"deepseekv3_training", "deepseek_r1_distill_training"} {
		for _, messages := range [][]string{
			{"user: one", "assistant: two</think>", "assistant: three"},
			{"user: one", "assistant: two</think>", "user: ", "assistant: three"},
		} {
			r := &rollout.Rollout{ID: "a", Messages: say(messages...), Turns: []rollout.Turn{{Message: len(messages) - 1}}}
			for _, mode := range []tokenize.Mode{tokenize.Whole, tokenize.Merged, tokenize.PerStep} {
				require.Equal(t, "three<｜end▁of▁sentence｜>", trainedText(t, models[name], mode, r), "%s %s %q", name, mode, messages)
			}
		}
	}
}

// The header of a message without text is not taken for that of a later reply for which the
// template writes no header.
func TestReplyWithoutHeaderBehindMessagesWithoutText(t *testing.T) {
	kit.OneGoroutine(t)
	m := templateModels(t)["deepseekv3"]
	first, second := reply("", "two", call("call00001", "{}")), reply("", "", call("call00002", "{}"))
	r := &rollout.Rollout{ID: "a", Messages: append(say("user: one"), first, result("call00001", "three"))}
	r.Messages = append(append(r.Messages, say("user: four", "assistant: ", "user: ")...), second)
	r.Turns = []rollout.Turn{{Message: 6}}
	for _, mode := range []tokenize.Mode{tokenize.Whole, tokenize.Merged, tokenize.PerStep} {
		require.Equal(t, "\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>", trainedText(t, m, mode, r), mode)
	}
}

// Text in parts is text: white space at its ends and an empty reply are trained as for plain
// content.
func TestReplyInParts(t *testing.T) {
	kit.OneGoroutine(t)
	models := templateModels(t)
	for _, name := range []string{"qwen3", "llama3_1", "gemma3", "cohere"} {
		for _, text := range []string{"", " \n", "  two\n"} {
			plain := &rollout.Rollout{ID: "a", Messages: append(say("user: one"), reply("", text))}
			parts := &rollout.Rollout{ID: "a", Messages: append(say("user: one"), reply("", text))}
			parts.Messages[1].Parts = []rollout.Part{{Type: "text", Text: text, Raw: []byte("{}")}}
			for _, mode := range []tokenize.Mode{tokenize.Whole, tokenize.Merged, tokenize.PerStep} {
				require.Equal(t, trainedText(t, models[name], mode, plain), trainedText(t, models[name], mode, parts), "%s %s %q", name, mode, text)
			}
		}
	}
}

// A system message that a template moves to the top may come between a result and the reply to it.
func TestReplyBehindHoistedMessage(t *testing.T) {
	m := templateModels(t)["deepseekv3"]
	r := &rollout.Rollout{ID: "a", Messages: append(say("user: one"), reply("", "two", call("call00001", "{}")), result("call00001", ""))}
	r.Messages = append(r.Messages, say("system: three", "assistant: four")...)
	r.Turns = []rollout.Turn{{Message: 4}}
	for _, mode := range []tokenize.Mode{tokenize.Whole, tokenize.Merged, tokenize.PerStep} {
		require.Equal(t, "four<｜end▁of▁sentence｜>", trainedText(t, m, mode, r), mode)
	}
}

// Text that a template writes after tool results only once the next message follows is part of that
// message's prompt too: nobody sampled it. The prompt is not cut inside a token that begins both
// the header of a reply and the reply itself.
func TestEndOfResultsIsNotTrained(t *testing.T) {
	const template = `{%% set ns = namespace(open=false) %%}{%% for m in messages %%}{%% if m.role == "tool" %%}{{ "," if ns.open else "[" }}{{ m.content }}{%% set ns.open = true %%}` +
		`{%% else %%}{%% if ns.open %%}%[1]s{%% set ns.open = false %%}{%% elif m.role == "assistant" %%}<|im_start|>{%% endif %%}{%% if m.role == "assistant" and loop.index0 > 1 %%}%[2]s{%% endif %%}{{ m.content }}<|im_end|>{%% endif %%}{%% endfor %%}` +
		`{%% if ns.open %%}%[1]s{%% endif %%}{%% if add_generation_prompt %%}<|im_start|>{%% endif %%}`
	for _, ends := range []string{"]", " ]é"} {
		for _, opens := range []string{"", "<|endoftext|>", "<|im"} {
			m := withTemplate(t, fmt.Sprintf(template, ends, opens))
			r := &rollout.Rollout{ID: "a", Messages: append(say("user: one", "assistant: two"), result("x", "three"), result("y", "four"))}
			r.Messages = append(r.Messages, say("assistant: five")...)
			for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep} {
				if opens != "" { // the prompt has no such text
					require.ErrorIs(t, encodeError(t, m, mode, r), rollout.KindTemplate)
					continue
				}
				got := trainedText(t, m, mode, r)
				require.True(t, strings.HasPrefix(got, "two<|im_end|>") && strings.HasSuffix(got, "five<|im_end|>"), "%q", got)
				require.NotContains(t, got, "]", "%s, %q, %q", mode, ends, opens)
			}
		}
	}
}

// A template may write the end of the results with the reply to them, in one turn with the calls
// (Apertus). That end is none of the reply, in whole rows either.
func TestEndOfResultsBeforeReply(t *testing.T) {
	m := withTemplate(t, `{% set ns = namespace(open=false) %}{% for m in messages %}{% if m.role == 'tool' %}{{ ', ' if ns.open else '[' }}{{ m.content }}{% set ns.open = true %}{% elif m.role == 'user' %}<|im_start|>user
{{ m.content }}<|im_end|>
{% else %}{% if ns.open %}]{% set ns.open = false %}{% else %}<|im_start|>assistant
{% endif %}{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}{% if not m.tool_calls %}<|im_end|>
{% endif %}{% endif %}{% endfor %}{% if ns.open %}]{% endif %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`)
	r := &rollout.Rollout{ID: "r", Messages: say("user: hi")}
	for _, id := range []string{"c1", "c2"} {
		r.Messages = append(r.Messages, reply("", "", call(id, `{"command": "ls"}`)), result(id, "x"))
	}
	r.Messages = append(r.Messages, say("assistant: done")...)
	const calls = `<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>`
	for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep, tokenize.Whole} {
		require.Equal(t, map[int32]string{0: calls, 1: calls, 2: "done<|im_end|>"}, byTurn(t, m, encode(t, m, tokenize.Options{Mode: mode}, r)), mode)
	}
}

// A template may have no generation prompt after a reply, as Reka's. The header of the next reply is
// none of it all the same.
func TestHeaderAfterAReplyIsNotTrained(t *testing.T) {
	m := withTemplate(t, `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt and messages[-1].role != 'assistant' %}<|im_start|>assistant
{% endif %}`)
	r := &rollout.Rollout{ID: "r", Messages: append(say("user: hi", "assistant: one", "assistant: two"), reply("", "", call("c1", `{"command": "ls"}`)))}
	const calls = `<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call><|im_end|>`
	for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep, tokenize.Whole} {
		require.Equal(t, map[int32]string{0: "one<|im_end|>", 1: "two<|im_end|>", 2: calls}, byTurn(t, m, encode(t, m, tokenize.Options{Mode: mode}, r)), mode)
	}
}

// A template may write a reply to a reply without a header. The blanks before it are none of it.
func TestBlanksBeforeAReplyWithoutHeader(t *testing.T) {
	m := withTemplate(t, `{% set ns = namespace(open=false) %}{% for m in messages %}{% if m.role == 'user' %}<|im_start|>user
{{ m.content }}<|im_end|>{% set ns.open = true %}{% else %}{{ '<|im_start|>assistant\n' if ns.open }}{% set ns.open = false %}{{ '    ' + m.content }}<|im_end|>{{ '  ' }}{% endif %}{% endfor %}{{ '<|im_start|>assistant\n    ' if add_generation_prompt }}`)
	r := &rollout.Rollout{ID: "r", Messages: say("user: hi", "assistant: one", "assistant: two", "user: more", "assistant: three")}
	for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep} {
		got := byTurn(t, m, encode(t, m, tokenize.Options{Mode: mode}, r))
		require.Equal(t, map[int32]string{0: "one<|im_end|>", 1: "two<|im_end|>", 2: "three<|im_end|>"}, got, mode)
	}
}
