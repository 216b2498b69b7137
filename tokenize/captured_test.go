package tokenize_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// recordings returns r with recorded ids in two forms: with prompts as full lists, which are
// compared from their start, and with prompts stored relative to earlier turns. Some turns stay
// text, and some prompts differ from the template's, or from the encoder's spelling.
func recordings(t *testing.T, m *tokenize.Model, rng *rand.Rand, r *rollout.Rollout, rows []rollout.Sequence) (plain, compact *rollout.Rollout) {
	t.Helper()
	a, b := *r, *r
	a.Turns, b.Turns = slices.Clone(r.Turns), slices.Clone(r.Turns)
	full := map[int][]rollout.TokenID{}
	wrong, some := 1<<30, rng.IntN(10)
	for k := range rows {
		i, n := rows[k].FirstTurn, rows[k].Len()-completionLen(&rows[k])
		prompt := slices.Clone(rows[k].IDs[:n])
		if rng.IntN(4) > 0 {
			prompt = respelled(t, m, prompt, some)
			n = len(prompt)
		}
		switch rng.IntN(6) {
		case 0:
			continue
		case 1: // from this turn on
			wrong = min(wrong, rng.IntN(n))
		case 2:
			prompt[rng.IntN(n)] = 0
		case 3:
			copy(prompt, full[i-1]) // the template has since rewritten this history
		}
		if wrong < n {
			prompt[wrong] = 0
		}
		a.Turns[i].Prompt = rollout.PromptIDs{Add: prompt}
		b.Turns[i].Prompt = a.Turns[i].Prompt
		if base := i - 1 - rng.IntN(3)/2; full[base] != nil {
			keep := 0
			for keep < min(n, len(full[base])) && full[base][keep] == prompt[keep] {
				keep++
			}
			if keep > 0 {
				b.Turns[i].Prompt = rollout.PromptIDs{Base: rollout.At(base), Keep: keep, Add: prompt[keep:]}
			}
		}
		output := rows[k].IDs[rows[k].Len()-completionLen(&rows[k]):]
		a.Turns[i].Output, b.Turns[i].Output = output, output
		full[i] = slices.Concat(prompt, output)
	}
	return &a, &b
}

func TestStoredPromptsAreComparedAsPlainOnes(t *testing.T) {
	kit.OneGoroutine(t)
	const seed = 63
	m := qwen3(t)
	unattributed, attributed := 0, 0
	for k := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, k))
		r := randomRollout(rng, k%2 == 0)
		if k%3 == 0 {
			window(rng, r)
		}
		own, failure := rows(t, m, tokenize.Options{Mode: tokenize.PerStep}, r)
		require.Empty(t, failure)
		plain, compact := recordings(t, m, rng, r, own)
		unlike := 0
		for i := range own {
			prompt := plain.Turns[own[i].FirstTurn].Prompt
			if shown := own[i].IDs[:own[i].Len()-completionLen(&own[i])]; prompt.Captured() && decode(t, m, prompt.Add) != decode(t, m, shown) {
				unlike++
			}
		}
		for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep} {
			enc, err := tokenize.NewEncoder(m, tokenize.Options{Mode: mode})
			require.NoError(t, err)
			want, told, err := enc.Encode(t.Context(), plain)
			require.NoError(t, err, "seed %d %d", seed, k)
			got, report, err := enc.Encode(t.Context(), compact)
			require.NoError(t, err, "seed %d %d", seed, k)
			require.Equal(t, want, got, "seed %d %d", seed, k)
			require.Equal(t, told, report, "seed %d %d", seed, k)
			require.Equal(t, unlike, report.Unattributed, "seed %d %d", seed, k)
			unattributed += report.Unattributed
			attributed += report.Turns - report.Unattributed
		}
	}
	require.Greater(t, unattributed, 40)
	require.Greater(t, attributed, 200)
}

// The context shows a message changed, but the engine's ids show it unchanged, with the same number
// of tokens. Only a comparison from that message on finds this.
func TestRewrittenHistoryIsComparedAgain(t *testing.T) {
	kit.OneGoroutine(t)
	m := qwen3(t)
	r := &rollout.Rollout{ID: "r", Messages: say("user: cat", "assistant: yes", "user: go on", "assistant: done")}
	r.Turns = []rollout.Turn{{Message: 1}, {Message: 3, Step: 1}}
	rows := encode(t, m, tokenize.Options{Mode: tokenize.PerStep}, r)
	first := rows[0].Len() - completionLen(&rows[0])
	last := rows[1].Len() - completionLen(&rows[1])
	r.Turns[0].Output, r.Turns[1].Output = rows[0].IDs[first:], rows[1].IDs[last:]
	for some := range 8 { // 7: all ids as the encoder spells them
		shown := respelled(t, m, rows[0].IDs[:first], some)
		r.Turns[0].Prompt.Add = shown
		r.Turns[1].Prompt = rollout.PromptIDs{Base: rollout.At(0), Keep: len(shown) + rows[0].Len() - first, Add: rows[1].IDs[rows[0].Len():last]}
		for text, want := range map[string]int{"cat": 0, "dog": 1} {
			r.Turns[1].Context.Parts = []rollout.ContextPart{{From: 0, To: 1, Message: &rollout.Message{Role: rollout.RoleUser, Content: text}}, {From: 1, To: 3}}
			enc, err := tokenize.NewEncoder(m, tokenize.Options{})
			require.NoError(t, err)
			_, report, err := enc.Encode(t.Context(), r)
			require.NoError(t, err)
			require.Equal(t, want, report.Unattributed, text)
		}
	}
}

// Recorded ids get the sources of the text that the template writes, however the engine spelled
// them and whatever white space it wrote between the arguments.
func TestRecordedIDsHoldWhatTheyAreRecordedAs(t *testing.T) {
	kit.OneGoroutine(t)
	m := qwen3(t)
	const head, call, tail = "<think>\nI should look.\n</think>\n\nI look.\n", "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>", "<|im_end|>"
	other := strings.ReplaceAll(strings.ReplaceAll(call, `: `, `:`), "\n", "")
	ids := func(text string) []rollout.TokenID { return plainIDs(t, m, text, nil) }
	for _, row := range []struct {
		why          string
		output       []rollout.TokenID
		unattributed int
	}{
		{"as the encoder spells it", ids(head + call + tail), 0},
		{"letter by letter", slices.Concat(ids("<think>"), spelled(t, m, "\nI should look.\n"), ids("</think>\n\nI look.\n"), ids(call+tail)), 0},
		{"a call without spaces", ids(head + other + tail), 1},
		{"more reasoning", ids("<think>\nWell, " + head[len("<think>\n"):] + call + tail), 1},
	} {
		r := &rollout.Rollout{ID: "a", Tools: bashTool}
		r.Messages = append(say("user: hi"), reply("I should look.", "I look.", rollout.ToolCall{ID: "a", Name: "bash", Arguments: `{"command": "ls"}`}), result("a", "one"), reply("", "two"))
		prompts := encode(t, m, tokenize.Options{Mode: tokenize.PerStep}, r)
		r.Turns = []rollout.Turn{{Message: 1, Output: row.output}, {Message: 3}}
		first := prompts[0].IDs[:slices.Index(prompts[0].Turn, 0)]
		r.Turns[0].Prompt.Add = first
		r.Turns[1].Output = ids("two" + tail)
		r.Turns[1].Prompt.Add = slices.Concat(first, row.output, prompts[1].IDs[len(prompts[0].IDs):slices.Index(prompts[1].Turn, 1)])
		enc, err := tokenize.NewEncoder(m, tokenize.Options{})
		require.NoError(t, err)
		seqs, report, err := enc.Encode(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, row.unattributed, report.Unattributed, row.why)
		text := map[rollout.Flag]string{}
		for i, id := range seqs[0].IDs {
			if seqs[0].Turn[i] == 0 {
				text[seqs[0].Flags[i]&^(rollout.FlagSampled|rollout.FlagSpecial)] += decode(t, m, []rollout.TokenID{id})
			}
		}
		whole := decode(t, m, row.output)
		thought, rest, _ := strings.Cut(whole, "I look.\n")
		require.Equal(t, map[rollout.Flag]string{rollout.FlagReasoning: thought, rollout.FlagContent: "I look.\n", rollout.FlagToolCall: strings.TrimSuffix(rest, tail), rollout.FlagStop: tail}, text, row.why)
	}
}

// Recorded turns with an unknown context, or with token ids only, may come between rendered turns.
func TestRecordedTurnsWithoutTextBetweenRenderedOnes(t *testing.T) {
	kit.OneGoroutine(t)
	m := qwen3(t)
	r := &rollout.Rollout{ID: "a", Messages: say("user: one", "assistant: two", "user: three", "assistant: four", "user: five", "assistant: six")}
	r.Messages[1].Reasoning = "so" // later prompts lack it
	r.Turns = []rollout.Turn{{Message: 1}, {Message: 5}}
	want := encode(t, m, tokenize.Options{Mode: tokenize.PerStep}, r)[1]
	recorded := plainIDs(t, m, "what the engine saw", nil)
	for _, between := range []rollout.Turn{{Message: 3, Context: rollout.Context{Unknown: true}}, {Message: -1}} {
		between.Prompt.Add, between.Output = recorded, recorded
		r.Turns = []rollout.Turn{{Message: 1}, between, {Message: 5}}
		for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep} {
			seqs := encode(t, m, tokenize.Options{Mode: mode}, r)
			last := seqs[len(seqs)-1]
			require.Equal(t, want.IDs, last.IDs, mode)
			require.Equal(t, want.Source, last.Source, mode)
		}
	}
}

// A row made window by window and held as runs equals the row made at once, recorded or not.
func TestRowsOfWindows(t *testing.T) {
	kit.OneGoroutine(t)
	const seed = 65
	m := qwen3(t)
	inRuns := 0
	for k := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, k))
		r := randomRollout(rng, k%2 == 0)
		for i := range r.Messages { // long enough for runs
			if r.Messages[i].Content != "" {
				r.Messages[i].Content = strings.Repeat(r.Messages[i].Content+" ", 30)
			}
		}
		if k%3 == 0 {
			window(rng, r)
		}
		own, failure := rows(t, m, tokenize.Options{Mode: tokenize.PerStep}, r)
		require.Empty(t, failure)
		_, recorded := recordings(t, m, rng, r, own)
		for i := range recorded.Turns {
			turn := &recorded.Turns[i]
			for n := range turn.Output {
				turn.Logprobs = append(turn.Logprobs, -float32(n)/8)
			}
		}
		for _, r := range []*rollout.Rollout{r, recorded} {
			enc, err := tokenize.NewEncoder(m, tokenize.Options{})
			require.NoError(t, err)
			inRuns += tokenize.CheckRuns(t, enc, r)
		}
	}
	t.Logf("%d rows in runs", inRuns)
	require.Greater(t, inRuns, 100)
}

// Recorded ids end with a stop token only if their last one is it: a reply without one may have been cut,
// and other tokens may spell the same text.
func TestRecordedRepliesWithoutAStopToken(t *testing.T) {
	m := embeddedModel(t)
	for text, guard := range map[string]func(engine.AddedMatch) bool{"two": nil, "two<|im_end|>": engine.NoAdded} {
		var out engine.Encoding
		require.NoError(t, m.Tokenizer.Encode(&out, text, engine.EncodeOptions{Added: guard}))
		r := &rollout.Rollout{ID: "r", Messages: say("user: one", "assistant: "+text)}
		r.Turns = []rollout.Turn{{Message: 1, Output: out.IDs}}
		enc, err := tokenize.NewEncoder(m, tokenize.Options{})
		require.NoError(t, err)
		seqs, report, err := enc.Encode(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, []string{text}, sampled(t, m, &seqs[0]))
		require.Zero(t, report.Stops, text)
		require.Zero(t, seqs[0].Flags[seqs[0].Len()-1]&rollout.FlagStop, text)
	}
}

// A reply from text to a prompt that opened reasoning must close it, unless a limit cut it.
func TestOpenReasoningIsCounted(t *testing.T) {
	m := withTemplate(t, `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
<think>
{% endif %}`)
	for content, want := range map[string]int{"no thought": 1, "a thought</think>said": 0} {
		for reason, counts := range map[string]int{"stop": want, "length": 0} {
			r := &rollout.Rollout{ID: "r", Messages: say("user: one", "assistant: "+content), Turns: []rollout.Turn{{Message: 1, FinishReason: reason}}}
			enc, err := tokenize.NewEncoder(m, tokenize.Options{})
			require.NoError(t, err)
			_, report, err := enc.Encode(t.Context(), r)
			require.NoError(t, err)
			require.Equal(t, counts, report.OpenReasoning, "%s, %s", content, reason)
		}
	}
}

// What a template writes around one reply holds for the next only if it reads no more of them than text.
func TestFramesOfRepliesWithKeysOfTheirOwn(t *testing.T) {
	m := withTemplate(t, `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% if m.signed %} (signed){% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`)
	r := &rollout.Rollout{ID: "r", Messages: say("user: one", "assistant: two", "user: one", "assistant: three", "user: one", "assistant: four")}
	r.Messages[3].Extra = map[string]json.RawMessage{"signed": json.RawMessage("true")}
	seqs := encode(t, m, tokenize.Options{}, r)
	require.Equal(t, []string{"two<|im_end|>", "three (signed)<|im_end|>", "four<|im_end|>"}, sampled(t, m, &seqs[0]))
}
