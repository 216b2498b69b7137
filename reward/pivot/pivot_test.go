package pivot_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/reward/pivot"
	"github.com/turnpack/turnpack/rollout"
)

func call(name, arguments string) pivot.Action {
	return pivot.Action{Kind: "function_call", Calls: []pivot.Call{{Name: name, Arguments: arguments}}}
}

func batch(calls ...pivot.Action) pivot.Action {
	a := pivot.Action{Kind: "function_call_batch"}
	for _, c := range calls {
		a.Calls = append(a.Calls, c.Calls...)
	}
	return a
}

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		reason, want, got string
		threshold         float64
		category          string
	}{
		{"equal", `{"a":1}`, `{"a":1}`, 0, "EXPECTED_TOOL_CALL"},
		{"key order is free", `{"a":1,"b":2}`, `{"b":2,"a":1}`, 0, "EXPECTED_TOOL_CALL"},
		{"the last of two keys counts", `{"a":2}`, `{"a":1,"a":2}`, 0, "EXPECTED_TOOL_CALL"},
		{"a missing key", `{"a":1}`, `{}`, 0, "ARGUMENT_OBJECT_KEYS_DIFFERENT"},
		{"a surplus key", `{}`, `{"a":1}`, 0, "ARGUMENT_OBJECT_KEYS_DIFFERENT"},
		{"an integer is no float", `{"a":1}`, `{"a":1.0}`, 0, "ARGUMENT_VALUE_TYPE_DIFFERENT"},
		{"a float is no integer", `{"a":1.0}`, `{"a":1}`, 0, "ARGUMENT_VALUE_TYPE_DIFFERENT"},
		{"true is an integer", `{"a":1}`, `{"a":true}`, 0, "EXPECTED_TOOL_CALL"},
		{"true is not 2", `{"a":2}`, `{"a":true}`, 0, "ARGUMENT_VALUE_DIFFERENT"},
		{"an integer is no boolean", `{"a":true}`, `{"a":1}`, 0, "ARGUMENT_VALUE_TYPE_DIFFERENT"},
		{"integers of any size", `{"a":100000000000000000000001}`, `{"a":100000000000000000000002}`, 0, "ARGUMENT_VALUE_DIFFERENT"},
		{"floats within tolerance", `{"a":0.5}`, `{"a":0.5000009}`, 0, "EXPECTED_TOOL_CALL"},
		{"floats outside", `{"a":0.5}`, `{"a":0.5000011}`, 0, "ARGUMENT_VALUE_DIFFERENT"},
		{"NaN equals nothing", `{"a":NaN}`, `{"a":NaN}`, 0, "ARGUMENT_VALUE_DIFFERENT"},
		{"nor does infinity", `{"a":1e400}`, `{"a":1e400}`, 0, "ARGUMENT_VALUE_DIFFERENT"},
		{"null is null", `{"a":null}`, `{"a":null}`, 0, "EXPECTED_TOOL_CALL"},
		{"one word is compared raw", `{"a":"Ls"}`, `{"a":"ls"}`, 0, "ARGUMENT_VALUE_DIFFERENT"},
		{"blanks included", `{"a":"ls"}`, `{"a":"ls "}`, 0, "ARGUMENT_VALUE_DIFFERENT"},
		{"several words match at threshold 0", `{"a":"one two"}`, `{"a":"three four"}`, 0, "EXPECTED_TOOL_CALL"},
		{"but not at 0.1", `{"a":"one two"}`, `{"a":"three four"}`, 0.1, "ARGUMENT_VALUE_DIFFERENT"},
		{"equal texts reach 0.5", `{"a":"one two"}`, `{"a":"TWO one"}`, 0.5, "EXPECTED_TOOL_CALL"},
		{"words are counted", `{"a":"a a b"}`, `{"a":"a b b"}`, 0.34, "ARGUMENT_VALUE_DIFFERENT"},
		{"Greek final sigma is a sigma", `{"a":"ΟΔΟΣ x"}`, `{"a":"οδος x"}`, 0.5, "EXPECTED_TOOL_CALL"},
		{"list length", `{"a":[1,2]}`, `{"a":[1]}`, 0, "ARGUMENT_LIST_LENGTH_DIFFERENT"},
		{"list order", `{"a":[1,2]}`, `{"a":[2,1]}`, 0, "ARGUMENT_VALUE_DIFFERENT"},
		{"answer that is no JSON", `{}`, `{`, 0, "ARGUMENTS_DECODE_ERROR"},
		{"control characters in strings", `{"a":"x"}`, "{\"a\":\"\n\"}", 0, "ARGUMENTS_DECODE_ERROR"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			r, err := pivot.Comparator{WordThreshold: c.threshold}.Compare(call("f", c.want), call("f", c.got))
			require.NoError(t, err)
			require.Equal(t, c.category, r.Category)
			require.Equal(t, c.category == "EXPECTED_TOOL_CALL", r.Reward == 1)
		})
	}
	_, err := pivot.Comparator{}.Compare(call("f", "{"), call("f", "{}"))
	require.ErrorIs(t, err, rollout.KindFormat, "broken expected arguments are the data set's fault")
	r, err := pivot.Comparator{}.Compare(call("f", "{"), call("g", "{}"))
	require.NoError(t, err, "unless the tool differs anyway")
	require.Equal(t, "UNEXPECTED_TOOL", r.Category)
}

func TestParallel(t *testing.T) {
	a, b, c := call("f", `{"x":1}`), call("f", `{"x":2}`), call("g", `{}`)
	for _, row := range []struct {
		reason         string
		comparator     pivot.Comparator
		expected, real pivot.Action
		reward         float64
		category       string
	}{
		{"order is free", pivot.Comparator{}, batch(a, b), batch(b, a), 1, "EXPECTED_TOOL_CALL_BATCH"},
		{"surplus is free when calls are not counted", pivot.Comparator{}, a, batch(c, a), 1, "EXPECTED_TOOL_CALL"},
		{"a missing call is not", pivot.Comparator{}, batch(a, b), a, 0, "FUNCTION_CALL_BATCH_LENGTH_DIFFERENT"},
		{"each actual call serves once", pivot.Comparator{}, batch(a, a), batch(a, b), 0, "ARGUMENT_VALUE_DIFFERENT"},
		{"counted, surplus", pivot.Comparator{CountCalls: true}, a, batch(c, a), 0, "FUNCTION_CALL_BATCH_LENGTH_DIFFERENT"},
		{"counted, surplus allowed", pivot.Comparator{CountCalls: true, AllowSuperset: true}, a, batch(c, a), 1, "EXPECTED_TOOL_CALL"},
		{"counted, subset allowed", pivot.Comparator{CountCalls: true, AllowSubset: true}, batch(a, b), a, 1, "EXPECTED_TOOL_CALL_BATCH"},
		{"fractional", pivot.Comparator{CountCalls: true, Mode: "fractional"}, batch(a, b), batch(a, c), 0.5, "ARGUMENT_VALUE_DIFFERENT"},
		{"f1", pivot.Comparator{CountCalls: true, AllowSuperset: true, Mode: "f1"}, a, batch(a, b, c), 0.5, "FUNCTION_CALL_BATCH_LENGTH_DIFFERENT"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			r, err := row.comparator.Compare(row.expected, row.real)
			require.NoError(t, err)
			require.Equal(t, pivot.Comparison{Reward: row.reward, Category: row.category}, r)
		})
	}
}

// TestMatchingIsMaximum: with fuzzy matches, a greedy pairing can be suboptimal; the reward must be
// that of the best pairing, found here by trying all.
func TestMatchingIsMaximum(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 3))
	words := []string{"red", "green", "blue", "black"}
	text := func() string {
		var w []string
		for range 2 + rng.IntN(2) {
			w = append(w, words[rng.IntN(len(words))])
		}
		return strings.Join(w, " ")
	}
	compare := pivot.Comparator{WordThreshold: 0.3, CountCalls: true, AllowSubset: true, AllowSuperset: true, Mode: "f1"}
	for range 300 {
		n, k := 2+rng.IntN(3), 2+rng.IntN(3)
		var expected, actual []pivot.Action
		for range n {
			expected = append(expected, call("f", fmt.Sprintf(`{"q":%q}`, text())))
		}
		for range k {
			actual = append(actual, call("f", fmt.Sprintf(`{"q":%q}`, text())))
		}
		fits := func(i, j int) bool {
			r, err := compare.Compare(expected[i], actual[j])
			require.NoError(t, err)
			return r.Reward == 1
		}
		var best func(i int, used int) int
		best = func(i, used int) int {
			if i == n {
				return 0
			}
			most := best(i+1, used)
			for j := range k {
				if used&(1<<j) == 0 && fits(i, j) {
					most = max(most, 1+best(i+1, used|1<<j))
				}
			}
			return most
		}
		r, err := compare.Compare(batch(expected...), batch(actual...))
		require.NoError(t, err)
		require.InDelta(t, 2*float64(best(0, 0))/float64(n+k), r.Reward, 1e-15, "seed %d", seed)
	}
}

func TestMessages(t *testing.T) {
	message, silence := pivot.Action{Kind: "message", Content: "hi"}, pivot.Action{}
	for _, c := range []struct {
		expected, actual pivot.Action
		want             pivot.Comparison
	}{
		{message, pivot.Action{Kind: "message", Content: "other"}, pivot.Comparison{Reward: 1, Category: "EXPECTED_CHAT_MESSAGE_FOUND"}},
		{message, call("f", "{}"), pivot.Comparison{Reward: 0, Category: "NO_EXPECTED_CHAT_MESSAGE"}},
		{call("f", "{}"), message, pivot.Comparison{Reward: 0, Category: "NO_EXPECTED_TOOL_CALL"}},
		{call("f", "{}"), silence, pivot.Comparison{Reward: 0, Category: "NO_ACTION_FOUND"}},
	} {
		r, err := pivot.Comparator{}.Compare(c.expected, c.actual)
		require.NoError(t, err)
		require.Equal(t, c.want, r)
	}
	_, err := pivot.Comparator{}.Compare(silence, message)
	require.ErrorIs(t, err, rollout.KindInput)
}

func TestActionOf(t *testing.T) {
	read := func(text string) pivot.Action {
		var items []pivot.OutputItem
		require.NoError(t, json.Unmarshal([]byte(text), &items))
		return pivot.ActionOf(items)
	}
	require.Equal(t, "message", read(`[{"type":"reasoning"},{"type":"message","role":"assistant","content":[{"type":"refusal"},{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]}]`).Kind)
	require.Equal(t, "a", read(`[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]}]`).Content)
	require.Equal(t, "", read(`[{"type":"message","role":"user","content":[{"type":"output_text","text":"a"}]}]`).Kind)
	require.Equal(t, call("f", "{}"), read(`[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},{"type":"function_call","name":"f","arguments":"{}"}]`))
	require.Equal(t, batch(call("f", "1"), call("g", "2")), read(`[{"type":"function_call","name":"f","arguments":"1"},{"type":"function_call","name":"g","arguments":"2"}]`))

	for _, bad := range []string{`{}`, `{"type":"message"}`, `{"type":"function_call","name":"f"}`, `{"type":"function_call_batch","calls":[]}`, `7`} {
		var a pivot.Action
		require.ErrorIs(t, a.UnmarshalJSON([]byte(bad)), rollout.KindFormat, bad)
	}
}

func TestSWE(t *testing.T) {
	c := func(name, arguments string) *pivot.Call { return &pivot.Call{Name: name, Arguments: arguments} }
	edit := func(path, old, new string) *pivot.Call {
		b, err := json.Marshal(map[string]string{"command": "str_replace", "path": path, "old_str": old, "new_str": new})
		require.NoError(t, err)
		return c("str_replace_editor", string(b))
	}
	for _, row := range []struct {
		reason           string
		expected, actual *pivot.Call
		failure          string
	}{
		{"no expected call", nil, c("bash", `{}`), "expected_action_invalid"},
		{"no call", c("bash", `{}`), nil, "model_output_invalid"},
		{"tools of one family match", c("bash", `{"command":"ls -la src"}`), c("execute_bash", `{"cmd":"ls -la src"}`), "none"},
		{"camel case too", edit("a/b.py", "x", "y"), c("StrReplaceEditor", edit("a/b.py", "x", "y").Arguments), "none"},
		{"unknown tools match by name only", c("foo", `{}`), c("bar", `{}`), "tool_name_mismatch"},
		{"families differ", c("bash", `{}`), c("edit", `{}`), "tool_name_mismatch"},
		{"another root is the same file", edit("/repo/a/b.py", "x", "y"), edit("/src/a/b.py", "x", "y"), "none"},
		{"another directory is not", edit("/repo/a/b.py", "x", "y"), edit("/repo/c/b.py", "x", "y"), "target_mismatch"},
		{"another editor command", edit("a.py", "x", "y"), c("str_replace_editor", `{"command":"create","path":"a.py"}`), "target_mismatch"},
		{"another program", c("bash", `{"command":"ls src"}`), c("bash", `{"command":"cat src"}`), "target_mismatch"},
		{"the program's directory is free", c("bash", `{"command":"/usr/bin/ls src"}`), c("bash", `{"command":"ls src"}`), "similarity_below_threshold"},
		{"no shared path", c("bash", `{"command":"cat a/b.py"}`), c("bash", `{"command":"cat c/d.py"}`), "target_mismatch"},
		{"another place in the file", edit("a.py", "alpha beta", "y"), edit("a.py", "12345 6789", "y"), "similarity_below_threshold"},
		{"too little of the view", c("editor", `{}`), c("editor", `{}`), "none"},
		{"view covers 80 %", c("file_editor", `{"command":"view","path":"a","view_range":[0,100]}`), c("file_editor", `{"command":"view","path":"a","view_range":[20,200]}`), "none"},
		{"view covers less", c("file_editor", `{"command":"view","path":"a","view_range":[0,100]}`), c("file_editor", `{"command":"view","path":"a","view_range":[21,200]}`), "target_mismatch"},
		{"numbers in any form", c("file_editor", `{"command":"view","path":"a","view_range":[true,"1_0"]}`), c("file_editor", `{"command":"view","path":"a","view_range":"[1.9, 9.2]"}`), "none"},
		{"a form that is no number", c("file_editor", `{"command":"view","path":"a","view_range":[1,9]}`), c("file_editor", `{"command":"view","path":"a","view_range":[50,"9_"]}`), "none"},
		{"infinity is no number", c("file_editor", `{"command":"view","view_range":[1,9]}`), c("file_editor", `{"command":"view","view_range":[1,1e400]}`), "unknown_error"},
		// What Python's str() makes of a value that is no text.
		{"content that is an object", c("write_file", `{"content":{"a":[1,2.0,true,null,false],"it's":"say \"hi\"\n\t\r\\","b":"it's","é\u200b\u0001\ue000\ud83d\ude00\udbff\udfff":1e16,"c":[1e-5,0.0001,-0.0,NaN,Infinity,-Infinity]}}`),
			c("write_file", `{"content":"{'a': [1, 2.0, True, None, False], \"it's\": 'say \"hi\"\\n\\t\\r\\\\', 'b': \"it's\", 'é\\u200b\\x01\\ue000😀\\U0010ffff': 1e+16, 'c': [1e-05, 0.0001, -0.0, nan, inf, -inf]}"}`), "none"},
		{"arguments that are no object", c("bash", `{"command":"ls"}`), c("bash", `5`), "unknown_error"},
		{"arguments that are no JSON count as none", c("bash", `{"command":"ls"}`), c("bash", `oops`), "none"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			s, err := pivot.SWE{FullCredit: new(1.0)}.Verify(row.expected, row.actual)
			require.NoError(t, err)
			require.Equal(t, row.failure, s.Failure)
			require.Equal(t, row.failure == "none", s.Reward == 1)
		})
	}

	half := 0.6
	s, err := pivot.SWE{Mode: "continuous", SkipDiffSize: true, Threshold: &half}.Verify(c("bash", `{"command":"ls abcd efgh"}`), c("bash", `{"command":"ls abcd wxyz"}`))
	require.NoError(t, err)
	require.Greater(t, s.Reward, 0.5)
	require.Less(t, s.Reward, 1.0)
	s, err = pivot.SWE{Mode: "continuous"}.Verify(edit("a.py", "", strings.Repeat("x", 600)), edit("a.py", "", strings.Repeat("x", 600)))
	require.NoError(t, err)
	require.InDelta(t, 0.9, s.Reward, 1e-12, "a long edit costs the whole penalty")
	_, err = pivot.SWE{Mode: "both"}.Verify(nil, nil)
	require.ErrorIs(t, err, rollout.KindInput)
}

func TestRow(t *testing.T) {
	action := `{"type":"function_call","name":"bash","arguments":{"command":"ls"}}`
	answer, broken := action, `{"type":"function_call"}`
	for _, c := range []struct {
		reason string
		row    pivot.Row
		found  bool
	}{
		{"expected_action", pivot.Row{ExpectedAction: json.RawMessage(action)}, true},
		{"expected_answer", pivot.Row{ExpectedAction: json.RawMessage("null"), ExpectedAnswer: &answer}, true},
		{"metadata", pivot.Row{ExpectedAnswer: &broken, Metadata: json.RawMessage(`{"expected_action":` + action + `}`)}, true},
		{"nowhere", pivot.Row{ExpectedAction: json.RawMessage(`{"type":"message"}`)}, false},
	} {
		got, err := pivot.Expected(c.row)
		require.NoError(t, err, c.reason)
		require.Equal(t, c.found, got != nil, c.reason)
	}
	for _, unnamed := range []string{broken, `{"type":"function_call","name":null}`, `{"type":"function_call","name":7}`} {
		s, err := pivot.SWE{}.VerifyRow(pivot.Row{ExpectedAction: json.RawMessage(unnamed)}, nil)
		require.NoError(t, err)
		require.Equal(t, "unknown_error", s.Failure, unnamed)
	}
}

// TestRatio compares with CPython's difflib, see testdata/ratio.py.
func TestRatio(t *testing.T) {
	n := 0
	for c := range kit.Lines[struct {
		A, B  string
		Ratio float64
	}](t, "testdata/ratio.jsonl") {
		n++
		require.Equal(t, c.Ratio, pivot.Ratio(c.A, c.B), "%q %q", c.A, c.B)
	}
	require.Equal(t, 64, n)
	x := strings.Repeat("a", 199)
	require.InDelta(t, 2*198.0/398, pivot.Ratio(x, "b"+x[1:]), 1e-15, "below 200 characters nothing is junk")
	require.Equal(t, 0.0, pivot.Ratio(x+"a", "b"+x), "from 200 on the one frequent letter starts no match")
}

func TestSelect(t *testing.T) {
	trial := func(id string, turn int, rewards ...float64) pivot.Trial {
		return pivot.Trial{Candidate: pivot.Candidate{Rollout: id, Turn: turn}, Rewards: rewards}
	}
	trials := []pivot.Trial{
		trial("a", 0, 1, 1, 1, 1), trial("a", 1, 0, 1, 0, 1), trial("a", 2, 0, 0, 0, 1), trial("b", 0, 1, 1, 1, 0),
		trial("b", 1, 1), trial("b", 2, 0.1, 0.1, 0.1), trial("b", 3, 0, 0, 1, 1),
	}
	reasons := func(s pivot.Selection) []string {
		choices, err := s.Select(trials)
		require.NoError(t, err)
		var out []string
		for _, c := range choices {
			require.Equal(t, c.Kept, c.Reason == "")
			out = append(out, c.Reason)
		}
		return out
	}
	require.Equal(t, []string{"no_variance", "", "", "", "too_few_samples", "no_variance", ""}, reasons(pivot.Selection{}))
	require.Equal(t, []string{"no_variance", "", "", "too_easy", "too_few_samples", "no_variance", ""}, reasons(pivot.Selection{MaxMean: 0.6}))
	require.Equal(t, []string{"no_variance", "", "rollout_limit", "rollout_limit", "too_few_samples", "no_variance", ""}, reasons(pivot.Selection{PerRollout: 1}))
	require.Equal(t, []string{"no_variance", "", "total_limit", "total_limit", "too_few_samples", "no_variance", "total_limit"}, reasons(pivot.Selection{Total: 1}))
	require.Equal(t, []string{"no_variance", "", "no_variance", "no_variance", "too_few_samples", "no_variance", ""}, reasons(pivot.Selection{MinVariance: 0.2}))

	_, err := pivot.Selection{MinSamples: -1, MaxMean: -1}.Select(nil)
	require.ErrorContains(t, err, "MinSamples")
	require.ErrorContains(t, err, "MaxMean")
	inf := trial("x", 4, 1, math.Inf(1))
	_, err = pivot.Selection{}.Select([]pivot.Trial{inf})
	var located *rollout.Error
	require.True(t, errors.As(err, &located))
	require.Equal(t, "x", located.Where.Rollout)
}

func TestCandidates(t *testing.T) {
	use := []rollout.ToolCall{{Name: "bash", Arguments: `{"command":"ls"}`}}
	r := &rollout.Rollout{ID: "r", Messages: []rollout.Message{
		{Role: rollout.RoleUser, Content: "go"},
		{Role: rollout.RoleAssistant, ToolCalls: use, Content: "```bash\npwd\n```"},
		{Role: rollout.RoleTool, Content: "a"},
		{Role: rollout.RoleAssistant, Content: "done"},
		{Role: rollout.RoleAssistant, ToolCalls: use, Sampled: rollout.SampledExit},
	}}
	got := pivot.Candidates(r, false)
	require.Equal(t, []pivot.Candidate{{Rollout: "r", Turn: 0, Message: 1, Action: call("bash", `{"command":"ls"}`)}}, got)
	require.Len(t, pivot.Candidates(r, true), 2)
}

// FuzzCompare: no pair of actions causes a panic, rewards lie in 0..1, and valid JSON matches itself
// unless it contains a NaN.
func FuzzCompare(f *testing.F) {
	f.Add(`{"a":[1,2.5,"x y",true,null]}`, `{"a":[1,2.5,"y x",1,null]}`)
	f.Add(`{"path":"a/b","command":"view","view_range":[1,"2"]}`, `"new_str"`)
	f.Add(`{"command":"cat '/a/b c'","old_str":"\ud800"}`, `["command"]`)
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a)+len(b) > 1<<12 {
			return
		}
		r, err := pivot.Comparator{}.Compare(call("f", a), call("f", b))
		if err == nil {
			require.True(t, r.Reward == 0 || r.Reward == 1)
			self, err := pivot.Comparator{}.Compare(call("f", a), call("f", a))
			require.NoError(t, err)
			if !strings.ContainsAny(a, "NIeE") {
				require.Equal(t, 1.0, self.Reward, a)
			}
		} else {
			require.ErrorIs(t, err, rollout.KindFormat)
		}
		for _, tool := range []string{"bash", "edit", "grep", "finish"} {
			s, err := pivot.SWE{Mode: "continuous"}.Verify(&pivot.Call{Name: tool, Arguments: a}, &pivot.Call{Name: tool, Arguments: b})
			require.NoError(t, err)
			require.True(t, s.Reward >= 0 && s.Reward <= 1, s.Reward)
		}
		q := pivot.Ratio(a, b)
		require.True(t, q >= 0 && q <= 1)
	})
}

func BenchmarkSWE(b *testing.B) {
	text := func(seed int) string {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		var s strings.Builder
		for s.Len() < 2000 {
			fmt.Fprintf(&s, "    value_%d = call_%d(x)\n", rng.IntN(50), rng.IntN(50))
		}
		return s.String()
	}
	arguments := func(seed int) string {
		raw, _ := json.Marshal(map[string]string{"command": "str_replace", "path": "a.py", "old_str": text(seed), "new_str": text(seed + 1)})
		return string(raw)
	}
	want, got := &pivot.Call{Name: "str_replace_editor", Arguments: arguments(1)}, &pivot.Call{Name: "str_replace_editor", Arguments: arguments(3)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (pivot.SWE{}).Verify(want, got); err != nil {
			b.Fatal(err)
		}
	}
}

func TestThresholdsOutsideZeroToOneAreRefused(t *testing.T) {
	for _, v := range []pivot.SWE{{Threshold: new(-0.1)}, {FullCredit: new(80.0)}, {DiffSizeAlpha: new(2.0)}} {
		require.ErrorContains(t, v.Validate(), "0 to 1")
	}
}

// A mean at the bound is not above it, in whatever order and number rewards are added.
func TestMeanAtTheBoundIsKept(t *testing.T) {
	for n := 2; n <= 64; n++ {
		for ones := 1; ones < n; ones++ {
			rewards := make([]float64, n)
			for i := range ones {
				rewards[i] = 1
			}
			choices, err := pivot.Selection{MaxMean: float64(ones) / float64(n)}.Select([]pivot.Trial{{Rewards: rewards}})
			require.NoError(t, err)
			require.Empty(t, choices[0].Reason, "%d of %d", ones, n)
		}
	}
}
