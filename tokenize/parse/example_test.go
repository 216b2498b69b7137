package parse_test

import (
	"fmt"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/tokenize/parse"
)

// reader is a parser with the methods that rollout/proxy needs.
type reader struct{ *parse.Parser }

func (r reader) Push(text string) engine.Choice { return choice(r.Parser.Push(text)) }

func (r reader) Close() engine.Choice {
	events, reply := r.Parser.Close()
	_ = reply.Faults // count them
	return choice(events)
}

func choice(events []parse.Event) (c engine.Choice) {
	for _, e := range events {
		switch e.Kind {
		case parse.EventReasoning:
			c.Reasoning += e.Text
		case parse.EventContent:
			c.Text += e.Text
		case parse.EventCall:
			c.Calls = append(c.Calls, engine.CallDelta{Index: e.Call, ID: e.ID, Name: e.Name})
		case parse.EventArguments:
			c.Calls = append(c.Calls, engine.CallDelta{Index: e.Call, Arguments: e.Text})
		}
	}
	return c
}

func ExampleParser_proxy() {
	p, err := parse.New("hermes", parse.Options{Stream: true})
	if err != nil {
		panic(err)
	}
	var r proxy.Parser = reader{p}
	fmt.Printf("%+v\n", r.Push(`I look.<tool_call>{"name": "ls", "arguments": {"dir": "`).Calls)
	fmt.Printf("%+v\n", r.Push(`/tmp"}}</tool_call>`).Calls)
	// Output:
	// [{Index:0 ID:call_0 Name:ls Arguments:} {Index:0 ID: Name: Arguments:{"dir": "}]
	// [{Index:0 ID: Name: Arguments:/tmp"}}]
}

func Example() {
	tools := []rollout.Tool{rollout.Tool(`{"type": "function", "function": {"name": "sleep", "parameters":
		{"type": "object", "properties": {"seconds": {"type": "number"}, "why": {"type": "string"}}}}}`)}
	p, err := parse.New("qwen3_coder", parse.Options{Tools: tools, InReasoning: true})
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
