package parse_test

import (
	"fmt"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/parse"
)

func Example() {
	tools := []rollout.Tool{rollout.Tool(`{"type": "function", "function": {"name": "sleep", "parameters":
		{"type": "object", "properties": {"seconds": {"type": "number"}, "why": {"type": "string"}}}}}`)}
	p, err := parse.New(parse.Qwen3Coder, parse.Options{Tools: tools, InReasoning: true})
	if err != nil {
		panic(err)
	}
	for _, chunk := range []string{"It is busy.\n</thi", "nk>\n\nI wait.\n\n<tool_call>\n<function=sle", "ep>\n<parameter=seconds>\n2.5\n</parameter>\n",
		"<parameter=why>\nrate limit\n</parameter>\n</function>\n</tool_call>"} {
		for _, e := range p.Push(chunk) {
			fmt.Printf("%d %s %q\n", e.Kind, e.Name, e.Text)
		}
	}
	_, reply := p.Close()
	fmt.Printf("%q %q %s %v\n", reply.Message.Reasoning, reply.Message.Content, reply.Message.ToolCalls[0].Arguments, reply.Faults)
	// Output:
	// 0  "It is busy."
	// 1  "I wait."
	// 2 sleep ""
	// 3  "{\"seconds\": 2.5, \"why\": \"rate limit\"}"
	// 4  ""
	// "It is busy." "I wait." {"seconds": 2.5, "why": "rate limit"} []
}
