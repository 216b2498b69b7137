package parse

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Family is a format of reasoning and calls, one of Families. "" is an unknown format, which has no
// parser.
type Family string

// The families. plain has no calls.
const (
	plain         Family = "plain"        // text, perhaps after <think>…</think>
	hermes        Family = "hermes"       // <tool_call>{"name": …, "arguments": {…}}</tool_call>: Hermes, Qwen 2.5, Qwen3
	qwen3Coder    Family = "qwen3_coder"  // <tool_call><function=f><parameter=k>…: Qwen3-Coder, Qwen 3.5 and later, Nemotron 3
	glm           Family = "glm"          // <tool_call>f<arg_key>k</arg_key><arg_value>…: GLM 4.5 to 4.7
	kimiK2        Family = "kimi_k2"      // <|tool_calls_section_begin|>…
	deepSeek      Family = "deepseek"     // <｜tool▁calls▁begin｜>…: V3, V3.1, R1
	deepSeekV32   Family = "deepseek_v32" // <｜DSML｜function_calls>…
	deepSeekV4    Family = "deepseek_v4"  // <｜DSML｜tool_calls>…
	gptOSS        Family = "gpt_oss"      // harmony channels
	llama         Family = "llama"        // {"name": …, "parameters": {…}}, <|python_tag|>…: Llama 3.1 and later 3.x
	pythonic      Family = "pythonic"     // [f(k=1)], or objects as of Llama: Llama 4
	lfm2          Family = "lfm2"         // <|tool_call_start|>[f(k=1)]<|tool_call_end|>
	miniMaxM1     Family = "minimax_m1"   // <tool_calls>{…}\n{…}</tool_calls>, or a list of them: Jamba, Apriel
	miniMaxM2     Family = "minimax_m2"   // <minimax:tool_call><invoke name="f"><parameter name="k">…
	nemotron      Family = "nemotron"     // <TOOLCALL>[{…}]</TOOLCALL>: Nemotron Nano 2 and the Llama Nemotrons
	mistralFamily Family = "mistral"      // [TOOL_CALLS]…, [THINK]…[/THINK]
	gemma4        Family = "gemma4"       // <|tool_call>call:f{k:…}<tool_call|>, <|channel>thought…<channel|>
)

// Families lists the families that have a parser.
func Families() []Family { return slices.Sorted(maps.Keys(formats)) }

// format describes a family.
type format struct {
	think  [2]string // marks around reasoning
	marks  []string  // begin a call
	body   state     // parses a call after its mark; "{" and "[" have their own
	end    string    // ends a call
	list   bool      // calls can be in a JSON list
	many   bool      // several calls can be within the marks
	loose  bool      // the end mark may be missing
	params *parameters
	header *header
	ends   []string // end a parameter that lacks its mark

	another string // begins a further call of a block, parsed by body too; "" = no blocks

	textAfter bool  // templates write the content after the calls
	first     state // the first state, nil = begin
	whole     func(string) Reply
}

var thinkMarks = [2]string{"<think>", "</think>"}

func parameterFormat(x *parameters) *format {
	f := &format{think: thinkMarks, marks: []string{x.outer}, body: paramCall, params: x, end: cmp.Or(x.outerEnd, x.callEnd), another: x.name}
	if x.lenient {
		f.ends = []string{x.callEnd}
	}
	return f
}

func headerFormat(h *header) *format {
	return &format{think: thinkMarks, marks: []string{h.section}, body: section, header: h, end: h.sectionEnd, another: h.call}
}

var formats = map[Family]*format{
	plain:  {think: thinkMarks},
	hermes: {think: thinkMarks, marks: []string{"<tool_call>"}, body: taggedBody, end: "</tool_call>"},
	qwen3Coder: func() *format {
		f := parameterFormat(qwen3CoderParameters)
		f.marks = append(f.marks, f.params.name) // models leave the outer mark out
		return f
	}(),
	glm:           parameterFormat(glmParameters),
	kimiK2:        headerFormat(kimiHeader),
	deepSeek:      headerFormat(deepseekHeader),
	deepSeekV32:   parameterFormat(dsmlParameters("function_calls")),
	deepSeekV4:    parameterFormat(dsmlParameters("tool_calls")),
	gptOSS:        {first: harmonyFirst},
	llama:         {marks: []string{"<|python_tag|>", "{"}, body: llamaTag, many: true},
	pythonic:      {marks: []string{"<|python_start|>", "[", "{"}, body: pythonHead, end: "<|python_end|>", many: true, loose: true},
	lfm2:          {think: thinkMarks, marks: []string{"<|tool_call_start|>"}, body: pythonHead, end: "<|tool_call_end|>"},
	miniMaxM1:     {think: thinkMarks, marks: []string{"<tool_calls>"}, body: taggedBody, end: "</tool_calls>", list: true, many: true},
	miniMaxM2:     parameterFormat(minimaxM2Parameters),
	nemotron:      {think: thinkMarks, marks: []string{"<TOOLCALL>"}, body: taggedBody, end: "</TOOLCALL>", list: true},
	mistralFamily: {think: [2]string{"[THINK]", "[/THINK]"}, marks: []string{mistralCalls}, body: mistral, list: true},
	gemma4:        {think: [2]string{"<|channel>thought", "<channel|>"}, marks: []string{"<|tool_call>"}, body: gemmaBody, end: "<tool_call|>", textAfter: true},
}

// InReasoning reports whether a prompt ends with reasoning that it opened, so that the reply begins
// inside it ([Options.InReasoning]).
func (f Family) InReasoning(prompt string) bool {
	prompt = trimRight(prompt)
	switch {
	case f == gptOSS:
		return strings.HasSuffix(prompt, harmonyChannel+"analysis"+harmonyMessage)
	case formats[f] == nil || formats[f].think[0] == "":
		return false
	}
	return strings.HasSuffix(prompt, formats[f].think[0])
}

// Detect returns the family that a chat template writes, by the marks in its text: "" for a
// template that writes calls of an unknown family, "plain" for one that writes none.
func Detect(template string) Family {
	has := func(marks ...string) bool {
		for _, m := range marks {
			if !strings.Contains(template, m) {
				return false
			}
		}
		return true
	}
	for _, d := range detections {
		if has(d.marks...) {
			return d.family
		}
	}
	if has("tool_calls") {
		return ""
	}
	return plain
}

// detections go from the most specific marks to the least specific.
var detections = []struct {
	family Family
	marks  []string
}{
	{gptOSS, []string{"<|channel|>", "functions."}},
	{kimiK2, []string{"<|tool_calls_section_begin|>"}},
	{deepSeekV32, []string{"｜DSML｜", "function_calls>"}},
	{deepSeekV4, []string{"｜DSML｜", "tool_calls>"}},
	{deepSeek, []string{"<｜tool▁calls▁begin｜>"}},
	{miniMaxM2, []string{"<minimax:tool_call>"}},
	{miniMaxM1, []string{"<tool_calls>", "</tool_calls>"}},
	{glm, []string{"<arg_key>", "<arg_value>"}},
	{qwen3Coder, []string{"<function=", "<parameter=", "<tool_call>"}},
	{gemma4, []string{"<|tool_call>call:"}},
	{lfm2, []string{"<|tool_call_start|>"}},
	{nemotron, []string{"<TOOLCALL>"}},
	{mistralFamily, []string{"[TOOL_CALLS]"}},
	{hermes, []string{"<tool_call>", "</tool_call>", "arguments"}},
	{pythonic, []string{"<|python_start|>"}},
	{llama, []string{"<|eom_id|>", `"parameters": `}},
	{llama, []string{"<|start_header_id|>ipython", `"parameters": `}},
	{pythonic, []string{"<|header_start|>", "tool_calls"}},
}
