package pivot

import (
	"encoding/json"
	"regexp"
	"strings"
)

// The protocols of calls in text, in the order in which they are tried. The empty string means that
// the text contains no call.
const (
	protocolXML    = "xml"    // <function=name><parameter=key>value</parameter></function>
	protocolHermes = "hermes" // <tool_call>{"name": …, "arguments": {…}}</tool_call>
	protocolTag    = "tag"    // <execute_bash>…</execute_bash>, <command>…</command>
	protocolFence  = "fence"  // one block of ```bash
	protocolBlock  = "block"  // a block without a language at the end
)

var (
	xmlCall   = regexp.MustCompile(`(?s)<function=([^>\s]+)>(.*?)</function>`)
	xmlValue  = regexp.MustCompile(`(?s)<parameter=([^>\s]+)>(.*?)</parameter>`)
	jsonCall  = regexp.MustCompile(`(?s)<tool_call>(.*?)</tool_call>`)
	tagCall   = regexp.MustCompile(`(?s)<(execute_bash|command)>(.*?)</(?:execute_bash|command)>`)
	fenceCall = regexp.MustCompile("(?ms)^```(?:bash|sh|shell|mswea_bash_command)[ \t]*\n(.*?)\n?^```[ \t]*$")
	fenceLine = regexp.MustCompile("(?m)^```.*$")
)

// textCalls returns the tool calls in the text of an assistant message, with the text before the first
// call and the protocol. Values are kept unchanged, except for one line end on either side. Shell
// blocks are calls of bash with a command. Several shell blocks in one message are not a call, as in
// the harnesses that use them.
func textCalls(text string) (calls []Call, before string, p string) {
	found := func(at [][]int, protocol string, call func(m []string) (Call, bool)) bool {
		for _, i := range at {
			m := make([]string, len(i)/2)
			for k := range m {
				if i[2*k] >= 0 {
					m[k] = text[i[2*k]:i[2*k+1]]
				}
			}
			c, ok := call(m)
			if !ok {
				calls = nil
				return false
			}
			calls = append(calls, c)
		}
		if len(calls) > 0 {
			before, p = strings.TrimSpace(text[:at[0][0]]), protocol
		}
		return len(calls) > 0
	}
	if found(xmlCall.FindAllStringSubmatchIndex(text, -1), protocolXML, func(m []string) (Call, bool) {
		var arguments []member
		for _, v := range xmlValue.FindAllStringSubmatch(m[2], -1) {
			arguments = append(arguments, member{v[1], trimOneLineEnd(v[2])})
		}
		return Call{m[1], objectOf(arguments)}, true
	}) {
		return calls, before, p
	}
	if found(jsonCall.FindAllStringSubmatchIndex(text, -1), protocolHermes, func(m []string) (Call, bool) {
		var c struct {
			Name      string
			Arguments json.RawMessage
		}
		err := json.Unmarshal([]byte(m[1]), &c)
		arguments := argumentText(c.Arguments)
		return Call{c.Name, arguments}, err == nil && c.Name != "" && arguments != ""
	}) {
		return calls, before, p
	}
	bash := func(m []string) (Call, bool) {
		command := strings.TrimSpace(m[len(m)-1])
		return Call{"bash", objectOf([]member{{"command", command}})}, command != ""
	}
	for _, shell := range []struct {
		pattern  *regexp.Regexp
		protocol string
	}{{tagCall, protocolTag}, {fenceCall, protocolFence}} {
		if at := shell.pattern.FindAllStringSubmatchIndex(text, 2); len(at) == 1 && found(at, shell.protocol, bash) {
			return calls, before, p
		}
	}
	if at := lastBlock(text); at != nil && found([][]int{at}, protocolBlock, bash) {
		return calls, before, p
	}
	return nil, text, ""
}

// lastBlock returns the submatch indices of a block without a language at the end of the text and of
// its content, nil if there is none.
func lastBlock(text string) []int {
	lines := fenceLine.FindAllStringIndex(text, -1)
	n := len(lines)
	if n == 0 || n%2 == 1 || strings.TrimSpace(text[lines[n-1][0]:]) != "```" || strings.TrimSpace(text[lines[n-2][0]:lines[n-2][1]]) != "```" {
		return nil
	}
	return []int{lines[n-2][0], len(text), lines[n-2][1], lines[n-1][0]}
}

type member struct{ key, value string }

// objectOf returns a JSON object with the members in order.
func objectOf(members []member) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	text := func(s string) string {
		b.Reset()
		_ = enc.Encode(s) // encoding a string does not fail
		return strings.TrimSuffix(b.String(), "\n")
	}
	parts := make([]string, len(members))
	for i, m := range members {
		parts[i] = text(m.key) + ": " + text(m.value)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func trimOneLineEnd(s string) string {
	return strings.TrimSuffix(strings.TrimPrefix(s, "\n"), "\n")
}

// WithTextCalls returns the answer of a model that writes its calls into text in the form of native
// calls: if no item is a call, the calls in the text of its messages are appended.
func WithTextCalls(output []OutputItem) []OutputItem {
	var calls []OutputItem
	for _, item := range output {
		if item.Type == "function_call" {
			return output
		}
		if item.Type == "message" && item.Role == "assistant" {
			found, _, _ := textCalls(strings.Join(item.Texts, ""))
			for _, c := range found {
				calls = append(calls, OutputItem{Type: "function_call", Name: c.Name, Arguments: c.Arguments})
			}
		}
	}
	return append(output[:len(output):len(output)], calls...)
}
