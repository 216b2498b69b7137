// Package command finds the commands in an agent's messages.
package command

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// The forms of a command in harnesses without tool calls, tried in order; the first that occurs
// counts.
var (
	functionTag   = regexp.MustCompile(`(?s)<function=([^<>\s]+)>(.*?)</function>`)
	commandTag    = regexp.MustCompile(`(?s)<(?:command|execute|execute_bash|execute_ipython|action)>(.*?)</(?:command|execute|execute_bash|execute_ipython|action)>`)
	finishTag     = regexp.MustCompile(`(?s)<(?:finish|submit)>.*</(?:finish|submit)>`)
	shellBlock    = regexp.MustCompile("(?s)```(?:bash|sh|shell|console|mswea_bash_command)[^\\S\\n]*\\n(.*?)\\n?```")
	fence         = regexp.MustCompile("(?m)^[^\\S\\n]*```[^\\n]*$")
	submitCommand = regexp.MustCompile(`COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT|MINI_SWE_AGENT_FINAL_OUTPUT|^(?:submit|finish)\b`)
)

// Of returns the commands of an assistant message: its tool calls or, without any, the text marked as
// commands.
func Of(m *rollout.Message) []string {
	out := Calls(m)
	if out != nil {
		return out
	}
	for _, f := range functionTag.FindAllStringSubmatch(m.Content, -1) {
		out = append(out, strings.TrimSpace(f[1]+"\n"+strings.TrimSpace(f[2])))
	}
	out = append(out, inner(commandTag, m.Content)...)
	if finishTag.MatchString(m.Content) {
		out = append(out, "finish")
	}
	if out == nil {
		out = inner(shellBlock, m.Content)
	}
	if out == nil {
		out = closingBlock(m.Content)
	}
	if out == nil {
		out = jsonCommands(m.Content)
	}
	return out
}

// Calls returns the tool calls of an assistant message, nil for none.
func Calls(m *rollout.Message) []string {
	var out []string
	for _, c := range m.ToolCalls {
		out = append(out, c.Name+" "+c.Arguments)
	}
	return out
}

// inner returns the trimmed contents of group 1 for all matches of re, without blank ones.
func inner(re *regexp.Regexp, text string) []string {
	var out []string
	for _, b := range re.FindAllStringSubmatch(text, -1) {
		if cmd := strings.TrimSpace(b[1]); cmd != "" {
			out = append(out, cmd)
		}
	}
	return out
}

// closingBlock returns the fenced block without a language at the end of a text, SWE-agent's form of a
// command. A block elsewhere is an illustration.
func closingBlock(text string) []string {
	text = strings.TrimRight(text, " \t\r\n")
	marks := fence.FindAllStringIndex(text, -1)
	if len(marks) < 2 || len(marks)%2 != 0 || marks[len(marks)-1][1] != len(text) {
		return nil
	}
	open, end := marks[len(marks)-2], marks[len(marks)-1]
	if strings.TrimSpace(text[open[0]:open[1]]) != "```" {
		return nil
	}
	if cmd := strings.TrimSpace(text[open[1]:end[0]]); cmd != "" {
		return []string{cmd}
	}
	return nil
}

// jsonCommands reads the answers of terminal agents: the last JSON object with a list of commands
// (strings or keystrokes) or a mark of completion.
func jsonCommands(text string) []string {
	if !strings.Contains(text, `"commands"`) && !strings.Contains(text, `"task_complete"`) {
		return nil
	}
	var out []string
	EachObject(text, func(obj map[string]any) {
		list, hasList := obj["commands"].([]any)
		complete, _ := obj["task_complete"].(bool)
		if !hasList && !complete {
			return
		}
		out = nil
		for _, c := range list {
			if o, ok := c.(map[string]any); ok {
				c = o["keystrokes"]
			}
			if s, ok := c.(string); ok && strings.TrimSpace(s) != "" {
				out = append(out, strings.TrimSpace(s))
			}
		}
		if complete {
			out = append(out, "finish")
		}
	})
	return out
}

func Submits(command string) bool { return submitCommand.MatchString(command) }

// Limits of the search for JSON objects in a text that is mostly prose.
const (
	jsonTail  = 64 << 10 // bytes from the end
	jsonSpent = 16 << 20 // bytes read after opening braces that begin no object
	jsonLeast = 512      // bytes that each of them counts for at least
)

// EachObject calls visit with the outermost JSON objects of a text, in order.
func EachObject(text string, visit func(map[string]any)) {
	if len(text) > jsonTail {
		text = text[len(text)-jsonTail:]
	}
	for spent := 0; spent < jsonSpent; {
		i := strings.IndexByte(text, '{')
		if i < 0 {
			return
		}
		text = text[i:]
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		var obj map[string]any
		if err := dec.Decode(&obj); err != nil {
			read := len(text)
			if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
				read = int(syntax.Offset)
			}
			spent += max(read, jsonLeast)
			text = text[1:]
			continue
		}
		text = text[dec.InputOffset():]
		visit(obj)
	}
}
