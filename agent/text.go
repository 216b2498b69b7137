package agent

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// harness defines how a model expresses its actions and receives their results.
type harness interface {
	tools() []rollout.Tool
	// read returns the actions of a reply, or what is wrong with it. If both are empty, the work has ended.
	read(m *rollout.Message, c *Config) (actions []action, fault string)
	do(ctx context.Context, x *run, a action) (actionResult, error)
	observation(a action, text string) rollout.Message
}

// kind is the kind of an action.
type kind uint8

const (
	shell  kind = iota
	edit        // a file is changed or shown
	finish      // the work is submitted, without a patch in the reply
	refuse      // it cannot be performed, and the model is told why
)

// action is one action of a reply.
type action struct {
	work
	text string // the command, or its equivalent in records
	call *rollout.ToolCall
}

func (a action) submits() bool {
	return a.kind == finish || a.kind == shell && strings.Contains(a.text, SubmitMark)
}

// actionResult is the result of an action.
type actionResult struct {
	code   int
	output string
}

// textHarness is the harness without tools: replies contain commands.
type textHarness struct{}

var block = regexp.MustCompile("(?s)```bash[ \\t\\r\\f\\v]*\\n(.*?)```")

func (textHarness) tools() []rollout.Tool { return nil }

func (textHarness) read(m *rollout.Message, c *Config) ([]action, string) {
	var commands []string
	for _, b := range block.FindAllStringSubmatch(m.Content, -1) {
		commands = append(commands, strings.TrimSpace(b[1]))
	}
	if len(commands) > 1 && c.FirstBlock {
		commands = commands[:1]
	}
	if len(commands) != 1 {
		return nil, fmt.Sprint(len(commands))
	}
	if commands[0] == "" {
		return nil, "0"
	}
	return []action{{text: commands[0]}}, ""
}

func (textHarness) do(ctx context.Context, x *run, a action) (actionResult, error) {
	return x.command(ctx, a.text)
}

func (textHarness) observation(_ action, s string) rollout.Message {
	return rollout.Message{Role: rollout.RoleUser, Content: s}
}
