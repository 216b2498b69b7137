package agent

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// harness is how a model says what to do, and how it is told what came of it.
type harness interface {
	tools() []rollout.Tool
	// read finds the actions of a reply, or says what is wrong with it. Neither is the
	// end of the work.
	read(m *rollout.Message, c *Config) (actions []action, fault string)
	do(ctx context.Context, x *run, a action) (done, error)
	observation(a action, text string) rollout.Message
}

// kind is what an action does.
type kind uint8

const (
	shell  kind = iota
	edit        // a file changes, or is shown
	finish      // the work is handed in, without a patch of its own
	refuse      // it cannot be done, and is answered so
)

// action is one thing to do.
type action struct {
	work
	text string // the command, or what stands for it in records
	call *rollout.ToolCall
}

func (a action) submits() bool {
	return a.kind == finish || a.kind == shell && strings.Contains(a.text, SubmitMark)
}

// done is what came of an action.
type done struct {
	code   int
	output string
}

// blocks is the harness without tools: commands stand in the reply.
type blocks struct{}

var block = regexp.MustCompile("(?s)```bash[ \\t\\r\\f\\v]*\\n(.*?)```")

func (blocks) tools() []rollout.Tool { return nil }

func (blocks) read(m *rollout.Message, c *Config) ([]action, string) {
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

func (blocks) do(ctx context.Context, x *run, a action) (done, error) { return x.command(ctx, a.text) }

func (blocks) observation(_ action, s string) rollout.Message {
	return rollout.Message{Role: rollout.RoleUser, Content: s}
}
