package parse

import (
	"strings"

	"github.com/turnpack/turnpack/internal/enum"
	"github.com/turnpack/turnpack/rollout"
)

// Family is a way of writing reasoning and calls.
type Family uint8

// The families. Unknown has no parser; Plain writes no calls.
const (
	Unknown     Family = iota
	Plain              // text, perhaps after <think>…</think>
	Hermes             // <tool_call>{"name": …, "arguments": {…}}</tool_call>: Hermes, Qwen 2.5, Qwen3
	Qwen3Coder         // <tool_call><function=f><parameter=k>…: Qwen3-Coder, Qwen 3.5 and later, Nemotron 3
	GLM                // <tool_call>f<arg_key>k</arg_key><arg_value>…: GLM 4.5 to 4.7
	KimiK2             // <|tool_calls_section_begin|>…
	DeepSeek           // <｜tool▁calls▁begin｜>…: V3, V3.1, R1
	DeepSeekV32        // <｜DSML｜function_calls>…
	GPTOSS             // harmony channels
	Llama              // {"name": …, "parameters": {…}}, <|python_tag|>…: Llama 3.1 and later 3.x
	Pythonic           // [f(k=1)], or objects as of Llama: Llama 4
	LFM2               // <|tool_call_start|>[f(k=1)]<|tool_call_end|>
	MiniMaxM1          // <tool_calls>{…}\n{…}</tool_calls>
	MiniMaxM2          // <minimax:tool_call><invoke name="f"><parameter name="k">…
	Nemotron           // <TOOLCALL>[{…}]</TOOLCALL>: Nemotron Nano 2 and the Llama Nemotrons
	Mistral            // [TOOL_CALLS]…, [THINK]…[/THINK]
	Gemma4             // <|tool_call>call:f{k:…}<tool_call|>, <|channel>thought…<channel|>
)

var familyNames = []string{"unknown", "plain", "hermes", "qwen3_coder", "glm", "kimi_k2", "deepseek", "deepseek_v32", "gpt_oss", "llama", "pythonic", "lfm2", "minimax_m1", "minimax_m2", "nemotron", "mistral", "gemma4"}

// String returns the name used in options and reports.
func (f Family) String() string { return enum.Name(familyNames, f, "family") }

// Families lists the families that have a parser.
func Families() []Family {
	out := make([]Family, 0, len(familyNames)-1)
	for i := range familyNames[1:] {
		out = append(out, Family(i+1))
	}
	return out
}

// FamilyOf returns the family of a name, as written by String.
func FamilyOf(name string) (Family, error) {
	for i, n := range familyNames {
		if n == name && i > 0 {
			return Family(i), nil
		}
	}
	return Unknown, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "family"}, "found %q, expected one of %s", name, strings.Join(familyNames[1:], ", "))
}

// format is how a family writes.
type format struct {
	think  [2]string // around reasoning
	marks  []string  // what begins a call
	enter  func(p *Parser, mark string) (int, state)
	end    string // what ends one
	list   bool   // calls can stand in a JSON list
	many   bool   // calls can follow each other within the marks
	loose  bool   // the end mark can be missing
	params *parameters
	header *header
	ends   []string // what ends a parameter without its mark

	another string   // what begins a further call of a block, read by block
	block   state    // nil = calls have no block
	begins  []string // marks and another, nil = marks

	textAfter bool  // templates write the content after the calls
	first     state // where reading begins, nil = begin
	whole     func(string) Reply
}

var thinkMarks = [2]string{"<think>", "</think>"}

func parameterFormat(x *parameters) *format {
	f := &format{think: thinkMarks, marks: []string{x.outer}, enter: enterParameters, params: x, end: x.outerEnd}
	if x.lenient {
		f.ends = []string{x.callEnd}
	}
	if f.end == "" {
		f.end = x.callEnd
		return f
	}
	return f.inBlocks(x.name, paramCall)
}

// inBlocks completes f: another mark begins a further call of a block.
func (f *format) inBlocks(another string, block state) *format {
	f.another, f.block = another, block
	f.begins = append(f.marks[:len(f.marks):len(f.marks)], another)
	return f
}

func headerFormat(h *header) *format {
	f := &format{think: thinkMarks, marks: []string{h.section}, enter: enterSection, header: h, end: h.sectionEnd}
	return f.inBlocks(h.call, section)
}

var formats = [...]*format{
	Plain:  {think: thinkMarks},
	Hermes: {think: thinkMarks, marks: []string{"<tool_call>"}, enter: enterTagged, end: "</tool_call>"},
	Qwen3Coder: func() *format {
		f := parameterFormat(qwen3CoderParameters)
		f.marks = append(f.marks, f.params.name) // models leave the outer mark out
		return f
	}(),
	GLM:         parameterFormat(glmParameters),
	KimiK2:      headerFormat(kimiHeader),
	DeepSeek:    headerFormat(deepseekHeader),
	DeepSeekV32: parameterFormat(deepseekV32Parameters),
	GPTOSS:      {first: harmonyFirst},
	Llama:       {marks: []string{"<|python_tag|>", "{"}, enter: enterLlama, many: true},
	Pythonic:    {marks: []string{"<|python_start|>", "[", "{"}, enter: enterPythonic, end: "<|python_end|>", many: true, loose: true},
	LFM2:        {think: thinkMarks, marks: []string{"<|tool_call_start|>"}, enter: enterPythonic, end: "<|tool_call_end|>"},
	MiniMaxM1:   {think: thinkMarks, marks: []string{"<tool_calls>"}, enter: enterTagged, end: "</tool_calls>", many: true},
	MiniMaxM2:   parameterFormat(minimaxM2Parameters),
	Nemotron:    {think: thinkMarks, marks: []string{"<TOOLCALL>"}, enter: enterTagged, end: "</TOOLCALL>", list: true},
	Mistral:     {think: [2]string{"[THINK]", "[/THINK]"}, marks: []string{mistralCalls}, enter: enterMistral, list: true},
	Gemma4:      {think: [2]string{"<|channel>thought", "<channel|>"}, marks: []string{"<|tool_call>"}, enter: enterGemma, end: "<tool_call|>", textAfter: true},
}

// InReasoning reports whether a prompt ends with reasoning that it opened, so that the
// reply begins within it ([Options.InReasoning]).
func (f Family) InReasoning(prompt string) bool {
	prompt = trimRight(prompt)
	switch {
	case f == GPTOSS:
		return strings.HasSuffix(prompt, harmonyChannel+"analysis"+harmonyMessage)
	case f == Unknown || int(f) >= len(formats) || formats[f].think[0] == "":
		return false
	}
	return strings.HasSuffix(prompt, formats[f].think[0])
}

// Detect names the family that a chat template writes, by the marks in its text:
// Unknown for a template that writes calls of no known family, Plain for one that
// writes none.
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
		return Unknown
	}
	return Plain
}

// detections stand from the marks that say most to those that say least.
var detections = []struct {
	family Family
	marks  []string
}{
	{GPTOSS, []string{"<|channel|>", "functions."}},
	{KimiK2, []string{"<|tool_calls_section_begin|>"}},
	{DeepSeekV32, []string{"｜DSML｜"}},
	{DeepSeek, []string{"<｜tool▁calls▁begin｜>"}},
	{MiniMaxM2, []string{"<minimax:tool_call>"}},
	{MiniMaxM1, []string{"<tool_calls>", "</tool_calls>"}},
	{GLM, []string{"<arg_key>", "<arg_value>"}},
	{Qwen3Coder, []string{"<function=", "<parameter=", "<tool_call>"}},
	{Gemma4, []string{"<|tool_call>call:"}},
	{LFM2, []string{"<|tool_call_start|>"}},
	{Nemotron, []string{"<TOOLCALL>"}},
	{Mistral, []string{"[TOOL_CALLS]"}},
	{Hermes, []string{"<tool_call>", "</tool_call>", "arguments"}},
	{Pythonic, []string{"<|python_start|>"}},
	{Llama, []string{"<|eom_id|>", `"parameters": `}},
	{Llama, []string{"<|start_header_id|>ipython", `"parameters": `}},
	{Pythonic, []string{"<|header_start|>", "tool_calls"}},
}
