package jsonl_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
)

const full = `{"turnpack_version":1,"id":"r1","group":"g","index":2,"instance":"repo__x-1",` +
	`"messages":[{"role":"system","content":"s"},` +
	`{"role":"user","name":"ann","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u"}},{"type":"input_text","text":"b"}]},` +
	`{"role":"assistant","content":null,"reasoning":"think","tool_calls":[{"id":"c1","function":{"name":"f","arguments":"{\"x\": 1.0}","strict":true},"type":"function"},{"name":"g","arguments":{"b":1.50,"a":[1e3]}}],"sampled":"sampled","x":[1, 2]},` +
	`{"role":"tool","content":"","tool_call_id":"c1","name":null},` +
	`{"role":"assistant","content":"done","sampled":"unknown"}],` +
	`"tools":[{"type":"function","function":{"name":"f"}}],` +
	`"turns":[{"id":"resp","message":2,"step":0,"prompt_ids":{"add":[1,2,3]},"output_ids":[4,5],"logprobs":[-0.1,-2.5],"finish_reason":"tool_calls","stop_string":"END","version":7,"agent":"main","z":null},` +
	`{"message":4,"step":1,"context":[{"from":0,"to":2},{"from":2,"to":4,"message":{"role":"user","content":"cut"}}],"prompt_ids":{"base":0,"keep":5,"add":[6]},"output_ids":[7,8],"version":[[0,7],[1,8]],"sampling":{"temperature":0.5,"top_p":0.9,"min_p":0.1,"top_k":-1,"seed":3,"penalty":1},"incomplete":"usage counts 3"}],` +
	`"outcome":{"resolved":true,"reward":0.1,"verdict":"resolved","reason":"tests pass","submission":"","more":1},` +
	`"status":"truncated","exit_status":"LimitsExceeded","failure":{"reason":"infra_error","detail":"d"},` +
	`"steps":[{"step":0,"score":0.5,"votes":[{"text":"1","score":1,"latency_ms":3,"tokens":4},{"error":"e"}],"reason":"mean","k":{}}],` +
	`"temperature":0.7,"template_kwargs":{"enable_thinking":false},"metadata":{"m":"n"},"notes":[{"code":"c","message":1,"text":"t"}],` +
	`"origin":{"file":"f","line":3,"index":2,"format":"atif"},"unknown":{"kept": true}}`

func readAll(t *testing.T, text string, opt jsonl.Options) ([]*rollout.Rollout, []error) {
	t.Helper()
	var out []*rollout.Rollout
	var errs []error
	for r, err := range jsonl.Read(strings.NewReader(text), opt) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, r)
	}
	return out, errs
}

func one(t *testing.T, line string) *rollout.Rollout {
	t.Helper()
	out, errs := readAll(t, line, jsonl.Options{})
	require.Empty(t, errs)
	require.Len(t, out, 1)
	return out[0]
}

func TestRoundTripIsByteExact(t *testing.T) {
	r := one(t, full)
	b, err := jsonl.Append(nil, r)
	require.NoError(t, err)
	require.Equal(t, full, string(b))
	require.Empty(t, cmp.Diff(r, one(t, string(b))))
}

func TestMessageShapesAreKept(t *testing.T) {
	r := one(t, full)
	m := r.Messages
	require.True(t, m[2].NoContent)
	require.False(t, m[3].NoContent, "an empty string is not an absent content")
	require.Equal(t, "ab", m[1].Content, "text parts join without a separator")
	require.Equal(t, `{"x": 1.0}`, m[2].ToolCalls[0].Arguments)
	require.True(t, m[2].ToolCalls[0].ArgumentsText)
	require.Equal(t, `{"b":1.50,"a":[1e3]}`, m[2].ToolCalls[1].Arguments, "number literals and key order")
	require.True(t, m[2].ToolCalls[1].Flat)
	require.Equal(t, `{"strict":true}`, string(m[2].ToolCalls[0].Extra["function"]))
	require.Equal(t, `null`, string(m[3].Extra["name"]))
	require.Equal(t, []rollout.TokenID{1, 2, 3, 4, 5, 6}, prompt(t, r, 1))
}

func TestReasoningHasThreeSpellings(t *testing.T) {
	for _, keys := range []string{`"reasoning":"r"`, `"reasoning_content":"r"`, `"thinking":"r"`, `"thinking":"r","reasoning_content":null`, `"reasoning":"","thinking":"r"`, `"reasoning_content":"r","reasoning":null`} {
		r := one(t, `{"id":"a","messages":[{"role":"assistant","content":"x",`+keys+`}]}`)
		require.Equal(t, "r", r.Messages[0].Reasoning, keys)
		_, err := jsonl.Append(nil, r)
		require.NoError(t, err, keys)
	}
	r := one(t, `{"id":"a","messages":[{"role":"assistant","content":"x","thinking":{"budget":1}}]}`)
	require.Empty(t, r.Messages[0].Reasoning, "a setting is no text")
	require.Equal(t, `{"budget":1}`, string(r.Messages[0].Extra["thinking"]))
}

func prompt(t *testing.T, r *rollout.Rollout, turn int) []rollout.TokenID {
	t.Helper()
	ids, err := r.PromptTokens(nil, turn)
	require.NoError(t, err)
	return ids
}

func TestPlainPromptsAreCompacted(t *testing.T) {
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, 1))
	random := func(n int) []rollout.TokenID {
		out := make([]rollout.TokenID, n)
		for i := range out {
			out[i] = rollout.TokenID(rng.IntN(1000))
		}
		return out
	}
	type call struct {
		Message int               `json:"message"`
		Prompt  []rollout.TokenID `json:"prompt_ids"`
		Output  []rollout.TokenID `json:"output_ids"`
	}
	// Two lineages alternate, so that the best base is not the previous turn.
	var calls []call
	heads := [2][]rollout.TokenID{random(300), random(500)}
	var messages []map[string]string
	for i := range 40 {
		h := &heads[i%2]
		out := random(20)
		calls = append(calls, call{i, *h, out})
		*h = append(append(append([]rollout.TokenID{}, *h...), out...), random(30)...)
		messages = append(messages, map[string]string{"role": "assistant", "content": "x"})
	}
	line, err := json.Marshal(map[string]any{"id": "a", "messages": messages, "turns": calls})
	require.NoError(t, err)
	r := one(t, string(line))
	stored := 0
	for i, c := range calls {
		require.Equal(t, c.Prompt, prompt(t, r, i), "seed %d turn %d", seed, i)
		stored += len(r.Turns[i].Prompt.Add)
	}
	distinct := 300 + 500 + 38*30
	require.LessOrEqual(t, stored, distinct+40*64, "ids are stored once, give or take a block a turn")
	require.NoError(t, r.Validate())
}

func TestLineRules(t *testing.T) {
	a, b := `{"id":"a","messages":[]}`, `{"id":"b","messages":[]}`
	for _, c := range []struct {
		reason, text string
		ids          string
		kind         error
		where        string
	}{
		{"a byte order mark is not part of the first line", "\ufeff" + a + "\n" + b + "\n", "a b", nil, ""},
		{"carriage returns and blank lines do not count", a + "\r\n\r\n  \n" + b + "\r\n", "a b", nil, ""},
		{"the last newline may be missing", a + "\n" + b, "a b", nil, ""},
		{"an empty stream is no error", "", "", nil, ""},
		{"a broken line is located and skipped", a + "\n{\"id\":,}\n" + b + "\n", "a b", rollout.KindFormat, "f:2, byte 6"},
		{"a cut last line is an error", a + "\n" + b[:10], "a", rollout.KindFormat, "f:2, byte 10"},
		{"invalid UTF-8 is an error", "{\"id\":\"\xff\",\"messages\":[]}\n" + b, "b", rollout.KindFormat, "f:1, byte 7"},
		{"a newer version is refused", `{"turnpack_version":2,"id":"a","messages":[]}` + "\n" + b, "b", rollout.KindFormat, `f:1, rollout "a", byte 20, /turnpack_version`},
		{"a key written twice is refused", `{"id":"a","messages":[],"messages":[]}` + "\n" + b, "b", rollout.KindFormat, `f:1, rollout "a", byte 24`},
		{"a message without role", `{"id":"a","messages":[{"content":"x"}]}`, "", rollout.KindInput, `f:1, rollout "a", message 0, byte 22, /role`},
		{"a wrong type", `{"id":"a","messages":[{"role":"user","content":5}]}`, "", rollout.KindFormat, `f:1, rollout "a", message 0, byte 47, /content`},
		{"columns of unequal length", `{"id":"a","messages":[],"turns":[{"output_ids":[1,2],"logprobs":[-1]}]}`, "", rollout.KindInput, `f:1, rollout "a", turn 0, byte 64, /logprobs`},
		{"a nesting bomb", `{"id":"a","x":` + strings.Repeat("[", 100000), "", rollout.KindLimit, "f:1, byte 525"},
		{"an id of no turn", `{"id":"a","messages":[],"turns":[{"prompt_ids":{"base":0,"keep":1},"output_ids":[1]}]}`, "", rollout.KindInput, `f:1, rollout "a", turn 0, byte 55, /prompt_ids/base`},
		{"not an object", `[]`, "", rollout.KindFormat, "f:1, byte 0"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			out, errs := readAll(t, c.text, jsonl.Options{File: "f"})
			var ids []string
			for _, r := range out {
				ids = append(ids, r.ID)
			}
			require.Equal(t, c.ids, strings.Join(ids, " "))
			if c.kind == nil {
				require.Empty(t, errs)
				return
			}
			require.Len(t, errs, 1)
			require.ErrorIs(t, errs[0], c.kind)
			e, ok := errors.AsType[*rollout.Error](errs[0])
			require.True(t, ok)
			require.Equal(t, c.where, e.Where.String())
		})
	}
}

func TestLimits(t *testing.T) {
	long := `{"id":"a","messages":[{"role":"user","content":"` + strings.Repeat("x", 300_000) + `"}]}`
	short := `{"id":"b","messages":[]}`
	out, errs := readAll(t, long+"\n"+short+"\n"+long, jsonl.Options{Limits: jsonl.Limits{LineBytes: 1000}})
	require.Len(t, out, 1)
	require.Equal(t, "b", out[0].ID)
	require.Len(t, errs, 2)
	for _, err := range errs {
		require.ErrorIs(t, err, rollout.KindLimit)
	}
	for reason, c := range map[string]struct {
		lim  jsonl.Limits
		line string
	}{
		"messages": {jsonl.Limits{Messages: 1}, `{"id":"a","messages":[{"role":"user"},{"role":"user"}]}`},
		"turns":    {jsonl.Limits{Turns: 1}, `{"id":"a","messages":[],"turns":[{"output_ids":[1]},{"output_ids":[1]}]}`},
		"tokens":   {jsonl.Limits{Tokens: 3}, `{"id":"a","messages":[],"turns":[{"output_ids":[1,1]},{"output_ids":[1,1]}]}`},
		"depth":    {jsonl.Limits{Depth: 2}, `{"id":"a","x":[[1]]}`},
	} {
		_, errs := readAll(t, c.line, jsonl.Options{Limits: c.lim})
		require.Len(t, errs, 1, reason)
		require.ErrorIs(t, errs[0], rollout.KindLimit, reason)
	}
	_, errs = readAll(t, "", jsonl.Options{Limits: jsonl.Limits{Depth: -1, Turns: -2}})
	require.Len(t, errs, 1)
	err := errs[0]
	require.ErrorContains(t, err, "Limits.Depth")
	require.ErrorContains(t, err, "Limits.Turns", "all faults at once")
}

func TestHundredMegabyteLine(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: writes and reads 100 MB; run without -short")
	}
	r := &rollout.Rollout{ID: "big", Messages: []rollout.Message{{Role: rollout.RoleUser, Content: strings.Repeat("0123456789abcde\n", 100<<20/17)}}}
	var buf bytes.Buffer
	require.NoError(t, jsonl.Write(&buf, r))
	require.Greater(t, buf.Len(), 100<<20)
	got := one(t, buf.String())
	require.True(t, r.Messages[0].Content == got.Messages[0].Content)
}

func TestInvalidUTF8CanBeReplaced(t *testing.T) {
	out, errs := readAll(t, "{\"id\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"x\xffy\"}]}", jsonl.Options{ReplaceInvalidUTF8: true})
	require.Empty(t, errs)
	require.Equal(t, "x\uFFFDy", out[0].Messages[0].Content)
	require.Equal(t, "invalid_utf8", out[0].Notes[0].Code)
}

func TestEmptyTokenFieldsCountAsAbsent(t *testing.T) {
	r := one(t, `{"id":"a","messages":[{"role":"assistant","content":"x"}],"turns":[{"message":0,"prompt_ids":[],"output_ids":[],"logprobs":[]}]}`)
	require.Nil(t, r.Turns[0].Output)
	require.Nil(t, r.Turns[0].Logprobs)
	require.False(t, r.Turns[0].Prompt.Captured())
	require.Len(t, r.Notes, 3)
	require.Equal(t, rollout.SampledByPolicy, r.Messages[0].Sampled, "a turn's message is the policy's")
}

func TestVersionMinusOneCountsAsAbsent(t *testing.T) {
	r := one(t, `{"id": "a", "messages": [], "turns": [{"output_ids": [1], "version": -1}, {"output_ids": [1], "version": 0}]}`)
	require.Nil(t, r.Turns[0].Version)
	require.Zero(t, *r.Turns[1].Version)
}

func TestSampledIsAssumedOnlyWhereNothingIsSaid(t *testing.T) {
	r := one(t, `{"id":"a","messages":[{"role":"assistant","content":"x"}]}`)
	require.Equal(t, rollout.SampledByPolicy, r.Messages[0].Sampled)
	require.Equal(t, "sampled_assumed", r.Notes[0].Code)
	r = one(t, `{"id":"a","messages":[{"role":"assistant","content":"x"},{"role":"assistant","content":"y","sampled":"sampled"}]}`)
	require.Equal(t, rollout.SampledUnknown, r.Messages[0].Sampled)
	require.Empty(t, r.Notes)
}

func TestLoneSurrogateIsNoted(t *testing.T) {
	r := one(t, `{"id":"a","messages":[{"role":"user","content":"\ud800"}]}`)
	require.Equal(t, "\uFFFD", r.Messages[0].Content)
	require.Equal(t, "lone_surrogate", r.Notes[0].Code)
}

func TestReadFailureEndsTheStream(t *testing.T) {
	boom := errors.New("boom")
	src := io.MultiReader(strings.NewReader(`{"id":"a","messages":[]}`+"\n"+`{"id":`), iotest.ErrReader(boom))
	var errs []error
	n := 0
	for _, err := range jsonl.Read(src, jsonl.Options{}) {
		if n++; err != nil {
			errs = append(errs, err)
		}
	}
	require.Equal(t, 2, n)
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], boom)
}

func TestWriterRefusesWhatJSONCannotHold(t *testing.T) {
	nan := float64(0)
	nan /= nan
	for reason, r := range map[string]*rollout.Rollout{
		"text that is not UTF-8":  {ID: "a", Messages: []rollout.Message{{Role: "user", Content: "\xff"}}},
		"a reward of NaN":         {ID: "a", Outcome: rollout.Outcome{Reward: &nan}},
		"a field named in Extra":  {ID: "a", Extra: map[string]json.RawMessage{"messages": json.RawMessage(`[]`)}},
		"Extra that is not JSON":  {ID: "a", Extra: map[string]json.RawMessage{"x": json.RawMessage(`{`)}},
		"columns of unequal size": {ID: "a", Turns: []rollout.Turn{{Output: []int32{1}, Logprobs: []float32{-1, -2}}}},
	} {
		var buf bytes.Buffer
		err := jsonl.Write(&buf, r)
		require.ErrorIs(t, err, rollout.KindInput, reason)
		require.Zero(t, buf.Len(), reason)
	}
}

func TestEveryStrictPrefixOfALineIsRefused(t *testing.T) {
	for n := 1; n < len(full); n++ {
		out, errs := readAll(t, full[:n], jsonl.Options{})
		if len(errs) != 1 || len(out) != 0 {
			t.Fatalf("prefix of %d bytes: %d rollouts, %d errors", n, len(out), len(errs))
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("\ufeff{\"id\":1}\r\n\n[]"))
	f.Add([]byte(`{"id":"a","origin":{}}`))
	f.Add([]byte(`{"id":"a","messages":[{"role":"assistant"}],"turns":[{"message":0,"prompt_ids":[1,2],"output_ids":[3]},{"prompt_ids":[1,2,3,4],"output_ids":[5]}]}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		for r, err := range jsonl.Read(bytes.NewReader(src), jsonl.Options{}) {
			if err != nil {
				continue
			}
			_ = r.Validate()
			b, err := jsonl.Append(nil, r)
			if err != nil {
				t.Fatalf("read but not written: %v", err)
			}
			again := one(t, string(b))
			if d := cmp.Diff(r, again); d != "" {
				t.Fatalf("changed by a round trip: %s", d)
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	text := strings.Repeat("def f(x):\n    return \"x\" + x\n", 60)
	r := &rollout.Rollout{ID: "a"}
	for i := range 60 {
		role := []rollout.Role{rollout.RoleUser, rollout.RoleAssistant}[i%2]
		r.Messages = append(r.Messages, rollout.Message{Role: role, Content: text})
	}
	line, err := jsonl.Append(nil, r)
	require.NoError(b, err)
	src := bytes.Repeat(append(line, '\n'), 50)
	b.SetBytes(int64(len(src)))
	for range b.N {
		for _, err := range jsonl.Read(bytes.NewReader(src), jsonl.Options{}) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkWriter(b *testing.B) {
	r := &rollout.Rollout{ID: "a", Messages: []rollout.Message{{Role: "user", Content: strings.Repeat("def f(x):\n    return \"x\" + x\n", 6000)}}}
	line, _ := jsonl.Append(nil, r)
	b.SetBytes(int64(len(line)))
	for range b.N {
		if err := jsonl.Write(io.Discard, r); err != nil {
			b.Fatal(err)
		}
	}
}

func TestVersionRunsAndSampling(t *testing.T) {
	r := one(t, full)
	require.Equal(t, []rollout.VersionRun{{From: 0, Version: 7}, {From: 1, Version: 8}}, r.Turns[1].Versions)
	require.Equal(t, int32(7), *r.Turns[1].Version, "that of the first token")
	require.Equal(t, []int32{-9, 7, 8}, r.Turns[1].AppendVersions([]int32{-9}, 0, 2))
	require.Equal(t, []int32{8}, r.Turns[1].AppendVersions(nil, 1, 1))
	require.Equal(t, []int32{7, 7}, r.Turns[0].AppendVersions(nil, 0, 2))
	require.Equal(t, []int32{-1}, new(rollout.Turn).AppendVersions(nil, 0, 1))
	require.Equal(t, float32(0.7), *r.TemperatureAt(0), "the rollout's")
	require.Equal(t, float32(0.5), *r.TemperatureAt(1), "its own")
	require.Equal(t, float32(0.7), *r.TemperatureAt(9))
	require.Equal(t, int64(3), *r.Turns[1].Sampling.Seed)
	require.JSONEq(t, `{"penalty":1}`, string(r.Turns[1].Extra["sampling"]))
	require.Equal(t, "usage counts 3", r.Turns[1].Incomplete)
	single := one(t, `{"id":"a","messages":[],"turns":[{"output_ids":[1,2],"version":[[0,4]]}]}`)
	require.Equal(t, int32(4), *single.Turns[0].Version)
	require.Nil(t, single.Turns[0].Versions)
	for text, want := range map[string]string{
		`[[1,4]]`:   "begins at output token 1, expected 0",
		`[[0,4],5]`: "expected a pair of output token and version",
		`[[0,"x"]]`: "expected an integer",
		`"seven"`:   "expected an integer",

		`[[0,1,2]]`:        "expected a pair",
		`[[0,4000000000]]`: "does not fit 32 bits",
	} {
		_, errs := readAll(t, `{"id":"a","messages":[],"turns":[{"output_ids":[1,2],"version":`+text+`}]}`, jsonl.Options{})
		require.Len(t, errs, 1, text)
		require.ErrorContains(t, errs[0], want, text)
	}
}
