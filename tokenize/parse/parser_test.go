package parse

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/reward/detect"
	"github.com/turnpack/turnpack/rollout"
)

var testTools = []rollout.Tool{
	rollout.Tool(`{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"n":{"type":"integer"},"x":{"type":"number"},"s":{"type":"string"},"b":{"type":"boolean"},"o":{"type":"object"},"a":{"type":"array"},"u":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}}}`),
	rollout.Tool(`{"name":"g","input_schema":{"type":"object","properties":{}}}`),
}

// samples are replies of each family with their expected result.
var samples = []struct {
	family  Family
	name    string
	text    string
	options Options
	want    string // reasoning|content|calls|faults
}{
	{plain, "text", "Hello\n", Options{}, "|Hello\n||"},
	{plain, "reasoning", "<think>\nhm\n</think>\n\nHello", Options{}, "hm|Hello||"},
	{plain, "no end", "hm", Options{InReasoning: true}, "hm|||malformed_thinking"},
	{plain, "an end too many", "hm</think>a", Options{}, "|hm</think>a||malformed_thinking"},
	{plain, "marks kept", "<think>a</think>b", Options{KeepReasoning: true}, "|<think>a</think>b||"},
	{plain, "a stop text", "a<|im_end|>", Options{Stop: []string{"<|im_end|>"}}, "|a||"},
	{plain, "a stop text within", "a<|im_end|>b<|im_", Options{Stop: []string{"<|im_end|>"}}, "|a<|im_end|>b<|im_||"},
	{hermes, "one", "<think>\nhm\n</think>\n\nI look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"s\": \"}</tool_call>\\\"\", \"n\": 1.50}}\n</tool_call>", Options{}, `hm|I look.|f{"s": "}</tool_call>\"", "n": 1.50}|`},
	{hermes, "two", "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n<tool_call>{\"arguments\": {\"n\":1}, \"name\": \"g\"}</tool_call>", Options{}, `||f{} g{"n":1}|`},
	{hermes, "no end mark", `<tool_call>{"name": "f", "arguments": {}}`, Options{}, `||f{}|`},
	{hermes, "no arguments", `<tool_call>{"name": "f"}</tool_call>`, Options{}, `||f{}|`},
	{hermes, "arguments as text", `<tool_call>{"name": "f", "arguments": "{\"n\": 1}"}</tool_call>`, Options{}, `||f{"n": 1}|`},
	{hermes, "cut", `a <tool_call>{"name": "f", "arguments": {"n"`, Options{}, `|a <tool_call>{"name": "f", "arguments": {"n"||malformed_call`},
	{hermes, "malformed, then a call", "<tool_call>{\"name\": \"f\", \"arguments\": {\"s\": \"a\"b\"}}</tool_call>\n<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>", Options{}, `|<tool_call>{"name": "f", "arguments": {"s": "a"b"}}</tool_call>|g{}|malformed_call`},
	{hermes, "another tool", `<tool_call>{"name": "h", "arguments": {}}</tool_call>`, Options{Tools: testTools}, `||h{}|unknown_tool`},
	{hermes, "text after", "a<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\nb", Options{}, "|a\nb|f{}|text_after_call"},
	{hermes, "a call ends reasoning", `x <tool_call>{"name": "f", "arguments": {}}</tool_call>`, Options{InReasoning: true}, `x||f{}|`},
	{hermes, "a mention within reasoning", `use <tool_call> well</think>a`, Options{InReasoning: true}, `use <tool_call> well|a||`},
	{hermes, "streamed", `<tool_call>{"name": "f", "arguments": {"n": 1}}</tool_call>`, Options{Stream: true}, `||f{"n": 1}|`},
	{hermes, "streamed and cut", `<tool_call>{"name": "f", "arguments": {"n": 1`, Options{Stream: true}, `||f{"n": 1|malformed_call`},
	{qwen3Coder, "types", "<tool_call>\n<function=f>\n<parameter=n>\n007\n</parameter>\n<parameter=x>\n2.50\n</parameter>\n<parameter=s>\n a\n\"b\"\n\n</parameter>\n<parameter=b>True</parameter><parameter=o>{\"k\": 1.0}</parameter><parameter=u>null</parameter><parameter=z>1</parameter>\n</function>\n</tool_call>", Options{Tools: testTools}, `||f{"n": 7, "x": 2.50, "s": " a\n\"b\"\n", "b": true, "o": {"k": 1.0}, "u": null, "z": "1"}|`},
	{qwen3Coder, "two, one without the outer mark", "a\n<tool_call>\n<function=f>\n</function>\n</tool_call>\n<function=g></function>", Options{}, `|a|f{} g{}|`},
	{qwen3Coder, "a missing end mark", "<tool_call>\n<function=f>\n<parameter=s>\na\n<parameter=n>\n1\n</function>\n</tool_call>", Options{Tools: testTools}, `||f{"s": "a", "n": 1}|`},
	{qwen3Coder, "cut", "<tool_call>\n<function=f>\n<parameter=s>\na", Options{}, "|<tool_call>\n<function=f>\n<parameter=s>\na||malformed_call"},
	{qwen3Coder, "streamed and cut", "<tool_call>\n<function=f>\n<parameter=s>\na\n", Options{Stream: true}, `||f{"s": "a|malformed_call`},
	{qwen3Coder, "JSON instead", "<tool_call>\n{\"name\": \"f\"}\n</tool_call>", Options{}, "|<tool_call>\n{\"name\": \"f\"}\n</tool_call>||malformed_call"},
	{glm, "two", "\n<think>hm</think>\na\n<tool_call>f\n<arg_key>n</arg_key>\n<arg_value>1</arg_value>\n<arg_key>s</arg_key>\n<arg_value>x y</arg_value>\n</tool_call>\n<tool_call>g</tool_call>", Options{Tools: testTools}, `hm|a|f{"n": 1, "s": "x y"} g{}|`},
	{kimiK2, "two", "a<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"n\": 1}<|tool_call_end|><|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>", Options{}, `|a|f{"n": 1} g{}|`},
	{kimiK2, "malformed arguments", "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{n}<|tool_call_end|><|tool_calls_section_end|>", Options{}, "|<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{n}<|tool_call_end|><|tool_calls_section_end|>||malformed_call"},
	{deepSeek, "V3", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"n\": 1}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", Options{}, `||f{"n": 1} g{}|`},
	{deepSeek, "V3.1", "a<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"n\": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", Options{}, `|a|f{"n": 1}|`},
	{deepSeekV32, "two", "a\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"s\" string=\"true\">1</｜DSML｜parameter>\n<｜DSML｜parameter name=\"k\" string=\"false\">[1, 2]</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"g\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>", Options{}, `|a|f{"s": "1", "k": [1, 2]} g{}|`},
	{deepSeekV4, "two", "a\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"s\" string=\"true\">1</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"g\">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>", Options{}, `|a|f{"s": "1"} g{}|`},
	{gptOSS, "channels", "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"n\": 1}<|call|>", Options{}, `hm|I look.|f{"n": 1}|`},
	{gptOSS, "final", "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hello<|return|>", Options{}, `hm|Hello||`},
	{gptOSS, "recipient first", "<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{}<|call|>", Options{}, `||f{}|`},
	{gptOSS, "malformed", "<|channel|>commentary to=functions.f<|message|>{n}<|call|>", Options{}, `|<|channel|>commentary to=functions.f<|message|>{n}||malformed_call`},
	{llama, "one", `{"name": "f", "parameters": {"n": 1}}`, Options{}, `||f{"n": 1}|`},
	{llama, "two", `<|python_tag|>{"name": "f", "parameters": {"n": 1}}; {"name": "g", "parameters": {}}`, Options{}, `||f{"n": 1} g{}|`},
	{llama, "an answer in JSON", `{"answer": 5}`, Options{}, `|{"answer": 5}||`},
	{llama, "a built-in tool", `<|python_tag|>brave_search.call(query="a \"b\"")`, Options{}, `||brave_search{"query": "a \"b\""}|`},
	{llama, "a program", "<|python_tag|>print(1)\nprint(2)", Options{}, "|<|python_tag|>print(1)\nprint(2)||"},
	{pythonic, "two", `[f(n=1, s='it\'s', a=[1, {"k": None}]), g()]`, Options{}, `||f{"n": 1, "s": "it's", "a": [1, {"k": null}]} g{}|`},
	{pythonic, "a list", "[1, 2]", Options{}, "|[1, 2]||"},
	{pythonic, "malformed", "[f(n=)]", Options{}, "|[f(n=)]||malformed_call"},
	{pythonic, "marks", "<|python_start|>[f(n=-1.5)]<|python_end|>", Options{}, `||f{"n": -1.5}|`},
	{pythonic, "within text", `I look: [f(n=1)] done [1].`, Options{}, `|I look: done [1].|f{"n": 1}|text_after_call`},
	{pythonic, "an object", `<|python_start|>{"name": "f", "parameters": {"n": 1}}<|python_end|>`, Options{}, `||f{"n": 1}|`},
	{pythonic, "text between marks", `<|python_start|>I look.<|python_end|>{"name": "f", "parameters": {"n": 1}}{"name": "g", "parameters": {}}`, Options{}, `|I look.|f{"n": 1} g{}|`},
	{pythonic, "nothing between marks", `<|python_start|> <|python_end|>{"name": "f", "parameters": {}}`, Options{}, `||f{}|`},
	{pythonic, "an object after text between marks", `<|python_start|>I look. {"name": "f", "parameters": {}}<|python_end|>`, Options{}, "|<|python_start|>I look.|f{}|malformed_call"},
	{pythonic, "a mark without its end", "<|python_start|>Bonn", Options{}, "|<|python_start|>Bonn||malformed_call"},
	{pythonic, "malformed between marks", "<|python_start|>[f(n=)]<|python_end|>", Options{}, "|<|python_start|>[f(n=)]<|python_end|>||malformed_call"},
	{pythonic, "a bare object", `{"name": "f", "parameters": {}}`, Options{}, `||f{}|`},
	{llama, "within text", `I look: {"name": "f", "parameters": {}} {x}`, Options{}, `|I look: {x}|f{}|text_after_call`},
	{llama, "a semicolon after", `{"name": "f", "parameters": {}}; then`, Options{}, `|; then|f{}|text_after_call`},
	{llama, "a semicolon at the end", `{"name": "f", "parameters": {}};`, Options{}, `|;|f{}|text_after_call`},
	{llama, "an answer with a name", `{"name": "Bonn", "size": 3}`, Options{Stream: true}, `|{"name": "Bonn", "size": 3}||`},
	{kimiK2, "malformed, then a call", "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{n}<|tool_call_end|><|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>", Options{}, "|<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{n}<|tool_call_end|>|g{}|malformed_call"},
	{lfm2, "one", `a<|tool_call_start|>[f(s="x")]<|tool_call_end|>`, Options{}, `|a|f{"s": "x"}|`},
	{miniMaxM1, "two", "<think>hm</think>\n<tool_calls>\n{\"name\": \"f\", \"arguments\": {\"n\": 1}}\n{\"name\": \"g\", \"arguments\": {}}\n</tool_calls>", Options{}, `hm||f{"n": 1} g{}|`},
	{miniMaxM1, "a list", "a<tool_calls>[\n    {\"name\": \"f\", \"arguments\": {\"n\": 1}},\n    {\"name\": \"g\", \"arguments\": {}}\n]</tool_calls>", Options{}, `|a|f{"n": 1} g{}|`},
	{miniMaxM2, "two", "a\n<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"n\">1</parameter>\n<parameter name=\"s\"> x\n</parameter>\n</invoke>\n<invoke name=\"g\">\n</invoke>\n</minimax:tool_call>", Options{Tools: testTools}, `|a|f{"n": 1, "s": " x\n"} g{}|`},
	{nemotron, "two", `<think>hm</think><TOOLCALL>[{"name": "f", "arguments": {"n": 1}}, {"name": "g", "arguments": {}}]</TOOLCALL>`, Options{}, `hm||f{"n": 1} g{}|`},
	{mistralFamily, "a list", `a[TOOL_CALLS][{"name": "f", "arguments": {"n": 1}, "id": "abcdefghi"}]`, Options{}, `|a|f{"n": 1}|`},
	{mistralFamily, "names", `[THINK]hm[/THINK]a[TOOL_CALLS]f[ARGS]{"n": 1}[TOOL_CALLS]g{}`, Options{}, `hm|a|f{"n": 1} g{}|`},
	{gemma4, "one", `<|channel>thought` + "\nhm\n" + `<channel|>a<|tool_call>call:f{a:[1,true,{k:null}],s:<|"|>x, "y"}<tool_call|><|"|>}<tool_call|>`, Options{}, `hm|a|f{"a": [1, true, {"k": null}], "s": "x, \"y\"}<tool_call|>"}|`},
}

func summary(r Reply) string {
	var calls, faults []string
	for _, c := range r.Message.ToolCalls {
		calls = append(calls, c.Name+c.Arguments)
	}
	for _, f := range r.Faults {
		faults = append(faults, string(f.Kind))
	}
	return r.Message.Reasoning + "|" + r.Message.Content + "|" + strings.Join(calls, " ") + "|" + strings.Join(faults, " ")
}

// joined concatenates deltas.
func joined(events []Event) string {
	var reasoning, content string
	var calls []string
	open := -1
	for _, e := range events {
		switch e.Kind {
		case EventReasoning:
			reasoning += e.Text
		case EventContent:
			content += e.Text
		case EventCall:
			calls = append(calls, e.Name)
			open = e.Call
		case EventArguments:
			if e.Call != open {
				return "arguments of a call that is not open"
			}
			calls[e.Call] += e.Text
		case EventCallEnd:
			open = -1
		}
	}
	return reasoning + "|" + content + "|" + strings.Join(calls, " ")
}

// read pushes text cut at the given offsets.
func read(t testing.TB, f Family, o Options, text string, cuts ...int) (Reply, []Event) {
	t.Helper()
	p, err := New(f, o)
	require.NoError(t, err)
	var events []Event
	from := 0
	for _, at := range append(cuts, len(text)) {
		events = append(events, p.Push(text[from:at])...)
		from = at
	}
	last, reply := p.Close()
	return reply, append(events, last...)
}

func TestReplies(t *testing.T) {
	for _, s := range samples {
		t.Run(string(s.family)+"/"+s.name, func(t *testing.T) {
			reply, _ := read(t, s.family, s.options, s.text)
			require.Equal(t, s.want, summary(reply), "%v", reply.Faults)
		})
	}
}

// TestCuts parses each sample, and each of its prefixes, with every single cut, byte by byte and
// with random cuts.
func TestCuts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range samples {
		for _, stream := range []bool{false, true} {
			o := s.options
			o.Stream = stream
			for n := 0; n <= len(s.text); n++ {
				text := s.text[:n]
				whole, events := read(t, s.family, o, text)
				require.Equal(t, sum3(whole), joined(events), "%s/%s %q", s.family, s.name, text)
				bytewise := make([]int, n)
				for i := range bytewise {
					bytewise[i] = i
				}
				cuts := [][]int{bytewise}
				if n == len(s.text) {
					for at := range n {
						cuts = append(cuts, []int{at})
					}
				} else {
					a, b := rng.IntN(n+1), rng.IntN(n+1)
					cuts = append(cuts, []int{min(a, b), max(a, b)})
				}
				for _, c := range cuts {
					reply, events := read(t, s.family, o, text, c...)
					require.Equal(t, whole, reply, "%s/%s %q %v", s.family, s.name, text, c)
					require.Equal(t, sum3(whole), joined(events), "%s/%s %q %v", s.family, s.name, text, c)
				}
			}
		}
	}
}

func sum3(r Reply) string {
	r.Faults = nil
	return strings.TrimSuffix(summary(r), "|")
}

// TestNothingLost: text that is not a mark of a call stays in the message.
func TestNothingLost(t *testing.T) {
	for _, f := range Families() {
		if f == gptOSS {
			continue
		}
		for _, mark := range append(formats[f].marks, "{", "[") {
			text := "x " + mark + " lost? "
			reply, _ := read(t, f, Options{}, text)
			require.Equal(t, text, reply.Message.Content, "%s %q", f, mark)
		}
	}
}

func TestLinear(t *testing.T) {
	for _, f := range Families() {
		parts := []string{"<", "[", "{", `{"name":"f","arguments":{"a":"`, "\n", "a"}
		parts = append(parts, formats[f].marks...)
		for _, m := range formats[f].marks {
			parts = append(parts, m[:len(m)-1], m+"{", m+"[{\"name\":", m+"f(")
		}
		for _, part := range parts {
			if part == "" {
				continue
			}
			text := strings.Repeat(part, 1<<15/len(part))
			for _, in := range []bool{false, true} {
				p, err := New(f, Options{InReasoning: in})
				require.NoError(t, err)
				for i := 0; i < len(text); i += 61 {
					p.Push(text[i:min(i+61, len(text))])
					require.Less(t, len(p.in)+len(p.tail), 4096, "%s holds too much of %q…", f, part)
				}
				p.Close()
			}
		}
	}
}

// TestFlagged: reward/detect finds what the parser flagged.
func TestFlagged(t *testing.T) {
	for _, s := range samples {
		reply, _ := read(t, s.family, s.options, s.text)
		m := reply.Flagged()
		flags := detect.Flags(detect.Detector{Nemotron: true, CallMarks: []string{"\x00", "\x00"}, ThinkingMarks: [2]string{"\x00", "\x00"}}.Find(&m, nil))
		require.Equal(t, has(reply.Faults, faultCall) || has(reply.Faults, faultTool), flags.InvalidToolCall, "%s/%s", s.family, s.name)
		require.Equal(t, has(reply.Faults, faultThinking), flags.MalformedThinking, "%s/%s", s.family, s.name)
	}
}

func BenchmarkPush(b *testing.B) {
	text := "<think>" + strings.Repeat("I think about it. ", 3000) + "</think>\n\n" +
		strings.Repeat("<tool_call>\n<function=f>\n<parameter=s>\n"+strings.Repeat("line of a file\n", 500)+"</parameter>\n</function>\n</tool_call>\n", 8)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		p, err := New(qwen3Coder, Options{})
		require.NoError(b, err)
		for i := 0; i < len(text); i += 4 {
			p.Push(text[i:min(i+4, len(text))])
		}
		p.Close()
	}
}

// TestIDs: token ids give the same as their text, wherever they are cut, also if a token holds a
// part of a character.
func TestIDs(t *testing.T) {
	decode := func(ids []rollout.TokenID) (string, error) {
		b := make([]byte, len(ids))
		for i, id := range ids {
			b[i] = byte(id)
		}
		return string([]rune(string(b))), nil // as tokenizers do: U+FFFD for invalid bytes
	}
	for _, s := range samples {
		text := strings.ReplaceAll(s.text, "hm", "größer 北京 \U0001F600")
		for n := len(text) - 3; n <= len(text); n++ {
			valid := strings.ToValidUTF8(text[:max(n, 0)], "")
			want, _ := read(t, s.family, s.options, valid)
			for _, step := range []int{1, 5, len(text)} {
				p, err := New(s.family, s.options)
				require.NoError(t, err)
				var events []Event
				for i := 0; i < len(valid); i += step {
					var ids []rollout.TokenID
					for _, c := range []byte(valid[i:min(i+step, len(valid))]) {
						ids = append(ids, rollout.TokenID(c))
					}
					more, err := p.PushIDs(ids, decode)
					require.NoError(t, err)
					events = append(events, more...)
				}
				last, reply := p.Close()
				require.Equal(t, want, reply)
				require.Equal(t, sum3(want), joined(append(events, last...)))
			}
		}
	}
	p, err := New(plain, Options{})
	require.NoError(t, err)
	_, err = p.PushIDs([]rollout.TokenID{'a', 0xe5, 0x8c}, decode) // cut within a character
	require.NoError(t, err)
	_, reply := p.Close()
	require.Equal(t, "a\uFFFD\uFFFD", reply.Message.Content)
	_, err = p.PushIDs([]rollout.TokenID{1}, nil)
	require.ErrorContains(t, err, "decode")
}

func TestFunc(t *testing.T) {
	p, err := Func(func(text string) Reply {
		return Reply{Message: rollout.Message{Content: strings.ToUpper(text), ToolCalls: []rollout.ToolCall{{Name: "f", Arguments: "{}"}}}}
	}, Options{})
	require.NoError(t, err)
	require.Empty(t, p.Push("a"))
	require.Empty(t, p.Push("b"))
	events, reply := p.Close()
	require.Equal(t, "|AB|f{}|", summary(reply))
	require.Equal(t, "|AB|f{}", joined(events))
	again, same := p.Close()
	require.Empty(t, again)
	require.Equal(t, reply, same)
}

func FuzzCuts(f *testing.F) {
	for _, s := range samples {
		f.Add(uint8(slices.Index(Families(), s.family)), s.text, uint64(7), s.options.InReasoning, s.options.Stream)
	}
	f.Fuzz(func(t *testing.T, family uint8, text string, seed uint64, in, stream bool) {
		all := Families()
		fam, o := all[int(family)%len(all)], Options{InReasoning: in, Stream: stream, Tools: testTools, Stop: []string{"<|im_end|>"}}
		var whole Reply
		var events []Event
		within := func(f func()) { // time and memory are linear in the reply's length
			kit.Within(t, 200*time.Millisecond+time.Duration(len(text))*20*time.Microsecond, 4<<20+4000*uint64(len(text)), f)
		}
		within(func() { whole, events = read(t, fam, o, text) })
		require.Equal(t, sum3(whole), joined(events))
		rng := rand.New(rand.NewPCG(seed, 1))
		var cuts []int
		for at := 0; at < len(text); at += 1 + rng.IntN(9) {
			cuts = append(cuts, at)
		}
		var reply Reply
		within(func() { reply, events = read(t, fam, o, text, cuts...) })
		require.Equal(t, fmt.Sprintf("%#v", whole), fmt.Sprintf("%#v", reply))
		require.Equal(t, sum3(whole), joined(events))
	})
}
