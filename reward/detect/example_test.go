package detect_test

import (
	"fmt"

	"github.com/turnpack/turnpack/reward/detect"
	"github.com/turnpack/turnpack/rollout"
)

// A call lacks a required argument of its tool, and the reasoning never ends.
func Example() {
	tools := []rollout.Tool{rollout.Tool(`{"name": "bash", "parameters": {"type": "object", "required": ["command"]}}`)}
	m := rollout.Message{
		Role:      rollout.RoleAssistant,
		Content:   "<think>list the files",
		ToolCalls: []rollout.ToolCall{{Name: "bash", Arguments: `{}`}},
	}
	found := detect.Detector{}.Find(&m, tools)
	for _, f := range found {
		fmt.Println(f.Fault, "-", f.Detail)
	}
	fmt.Printf("%+v\n", detect.Flags(found))
	// Output:
	// arguments_break_schema - "bash": arguments.command is missing
	// malformed_thinking - "<think>" has no "</think>"
	// {InvalidToolCall:true MalformedThinking:true}
}
