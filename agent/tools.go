package agent

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// harnesses are the tools that coding harnesses give their models, with the same names and arguments; the
// descriptions are ours. OpenHands@1.0, OpenCode@0.6, Codex CLI@0.40.
var harnesses = map[string]*toolHarness{
	"openhands": {mustFinish: true, list: []tool{
		{"execute_bash", "Run a command in a shell.", fields{"command": str}, []string{"command"}, shellTool("command")},
		{"str_replace_editor", "Show, create or change a file.", fields{"command": `{"type":"string","enum":["view","create","str_replace","insert"]}`, "path": str, "file_text": str, "old_str": str, "new_str": str, "insert_line": num, "view_range": `{"type":"array","items":{"type":"integer"}}`},
			[]string{"command", "path"}, openHandsEdit},
		{"finish", "The work is done.", fields{"message": str}, nil, func(arguments) (work, error) { return work{kind: finish}, nil }},
	}},
	"opencode": {list: []tool{
		{"bash", "Run a command in a shell.", fields{"command": str, "description": str, "timeout": num}, []string{"command", "description"}, shellTool("command")},
		{"read", "Show a file.", fields{"filePath": str, "offset": num, "limit": num}, []string{"filePath"}, func(a arguments) (work, error) {
			return work{kind: edit, path: a.text("filePath"), change: show(a.number("offset", 0)+1, a.number("limit", 2000))}, nil
		}},
		{"write", "Write a file.", fields{"filePath": str, "content": str}, []string{"filePath", "content"}, func(a arguments) (work, error) {
			return work{kind: edit, path: a.text("filePath"), fresh: true, change: create(a.text("content"))}, nil
		}},
		{"edit", "Replace a text of a file.", fields{"filePath": str, "oldString": str, "newString": str, "replaceAll": `{"type":"boolean"}`}, []string{"filePath", "oldString", "newString"}, func(a arguments) (work, error) {
			return work{kind: edit, path: a.text("filePath"), change: replace(a.text("oldString"), a.text("newString"), string(a["replaceAll"]) == "true")}, nil
		}},
	}},
	"codex": {list: []tool{
		{"shell", "Run a command.", fields{"command": `{"type":"array","items":{"type":"string"}}`, "workdir": str, "timeout_ms": num}, []string{"command"}, codexShell},
		{"apply_patch", "Change files by a patch between *** Begin Patch and *** End Patch.", fields{"input": str}, []string{"input"}, func(a arguments) (work, error) {
			return work{kind: edit, patch: a.text("input")}, nil
		}},
	}},
}

// Harnesses returns the valid values of Options.Harness.
func Harnesses() []string { return slices.Sorted(maps.Keys(harnesses)) }

const (
	str = `{"type":"string"}`
	num = `{"type":"integer"}`
)

type fields map[string]string

// tool is one tool of a harness.
type tool struct {
	name, about string
	fields      fields
	required    []string
	means       func(arguments) (work, error)
}

// work is the meaning of a tool call.
type work struct {
	kind
	command string
	path    string // the file to edit
	fresh   bool   // the file may be missing
	change  change
	patch   string // of several files, instead of path and change
}

// arguments are the arguments of a tool call.
type arguments map[string]json.RawMessage

func (a arguments) text(name string) (s string) {
	_ = json.Unmarshal(a[name], &s) // not a string = "", which each tool handles
	return s
}

func (a arguments) number(name string, other int) int {
	n := other
	if json.Unmarshal(a[name], &n) != nil {
		return other
	}
	return n
}

// toolHarness is a harness whose model calls tools.
type toolHarness struct {
	list       []tool
	mustFinish bool // a reply without a call does not end the work
}

func (h *toolHarness) tools() []rollout.Tool {
	var out []rollout.Tool
	for _, t := range h.list {
		properties := map[string]json.RawMessage{}
		for name, schema := range t.fields {
			properties[name] = json.RawMessage(schema)
		}
		required := append([]string{}, t.required...) // an empty list is not null
		b, err := json.Marshal(map[string]any{"type": "function", "function": map[string]any{"name": t.name, "description": t.about,
			"parameters": map[string]any{"type": "object", "properties": properties, "required": required}}})
		if err == nil { // the table is JSON
			out = append(out, b)
		}
	}
	return out
}

func (h *toolHarness) read(m *rollout.Message, _ *Config) ([]action, string) {
	if len(m.ToolCalls) == 0 && h.mustFinish {
		return nil, "No tool was called. Go on with a tool, or call finish when the work is done."
	}
	var out []action
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		w, err := h.resolve(c)
		a := action{call: c, work: w, text: c.Name + " " + w.path}
		switch {
		case err != nil:
			a.kind, a.text = refuse, err.Error()
		case w.kind == shell:
			a.text = w.command
		}
		out = append(out, a)
	}
	return out, ""
}

// resolve returns what a call asks for, or why it cannot be done.
func (h *toolHarness) resolve(c *rollout.ToolCall) (work, error) {
	n := slices.IndexFunc(h.list, func(t tool) bool { return t.name == c.Name })
	if n < 0 {
		return work{}, fmt.Errorf("there is no tool %q", c.Name)
	}
	var args arguments
	if json.Unmarshal([]byte(cmp.Or(c.Arguments, "{}")), &args) != nil {
		return work{}, errors.New("the arguments are no JSON object")
	}
	for _, name := range h.list[n].required {
		if _, ok := args[name]; !ok {
			return work{}, fmt.Errorf("%s needs the argument %q", c.Name, name)
		}
	}
	return h.list[n].means(args)
}

func (h *toolHarness) observation(a action, s string) rollout.Message {
	return rollout.Message{Role: rollout.RoleTool, Content: s, ToolCallID: a.call.ID, Name: a.call.Name}
}

func (h *toolHarness) do(ctx context.Context, x *run, a action) (actionResult, error) {
	switch {
	case a.kind == refuse:
		return actionResult{-1, a.text}, nil
	case a.kind == finish:
		return actionResult{}, nil
	case a.kind == shell:
		return x.command(ctx, a.command)
	case a.patch != "":
		return x.applyPatch(ctx, a.patch)
	}
	return x.edit(ctx, a.work)
}

// edit shows or changes one file.
func (x *run) edit(ctx context.Context, w work) (actionResult, error) {
	if w.path == "" {
		return actionResult{-1, "a path is needed"}, nil
	}
	out, err := x.command(ctx, "if [ -d "+quoted(w.path)+" ]; then ls -a "+quoted(w.path)+" >&2; exit 3; fi; test -e "+quoted(w.path)+" || exit 4; base64 < "+quoted(w.path))
	if err != nil {
		return actionResult{}, err
	}
	before := ""
	switch {
	case out.code == 3:
		return actionResult{0, out.output}, nil
	case w.fresh:
	case out.code == 4:
		return actionResult{-1, w.path + " is not there"}, nil
	default:
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(out.output), ""))
		if err != nil || out.code != 0 {
			return actionResult{-1, w.path + " cannot be read"}, nil
		}
		before = string(b)
	}
	after, write, say, err := w.change(w.path, before)
	if err != nil {
		return actionResult{-1, err.Error()}, nil
	}
	if !write {
		return actionResult{0, say}, nil
	}
	out, err = x.command(ctx, "mkdir -p "+quoted(path.Dir(w.path))+" && base64 -d > "+quoted(w.path)+" <<'TURNPACK'\n"+base64.StdEncoding.EncodeToString([]byte(after))+"\nTURNPACK")
	if err == nil && out.code == 0 {
		out.output = say
	}
	return out, err
}

// quoted returns s as one word for a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func shellTool(name string) func(arguments) (work, error) {
	return func(a arguments) (work, error) {
		if strings.TrimSpace(a.text(name)) == "" {
			return work{}, fmt.Errorf("%s is empty", name)
		}
		return work{kind: shell, command: a.text(name)}, nil
	}
}

func codexShell(a arguments) (work, error) {
	var words []string
	if err := json.Unmarshal(a["command"], &words); err != nil || len(words) == 0 {
		return work{}, fmt.Errorf("command is no list of words")
	}
	command := ""
	if len(words) == 3 && (words[0] == "bash" || words[0] == "sh") && (words[1] == "-lc" || words[1] == "-c") {
		command = words[2]
	} else {
		for i, w := range words {
			words[i] = quoted(w)
		}
		command = strings.Join(words, " ")
	}
	if dir := a.text("workdir"); dir != "" {
		command = "cd " + quoted(dir) + " && " + command
	}
	return work{kind: shell, command: command}, nil
}

func openHandsEdit(a arguments) (work, error) {
	w := work{kind: edit, path: a.text("path")}
	switch a.text("command") {
	case "view":
		from, lines := 1, 2000
		var r []int
		if json.Unmarshal(a["view_range"], &r) == nil && len(r) == 2 {
			if from, lines = r[0], r[1]-r[0]+1; r[1] < 0 {
				lines = 1 << 30
			}
		}
		w.change = show(from, lines)
	case "create":
		w.fresh, w.change = true, create(a.text("file_text"))
	case "str_replace":
		w.change = replace(a.text("old_str"), a.text("new_str"), false)
	case "insert":
		at, text := a.number("insert_line", 0), a.text("new_str")
		w.change = func(path, before string) (string, bool, string, error) {
			lines := strings.SplitAfter(before, "\n")
			if at < 0 || at > len(lines) {
				return "", false, "", fmt.Errorf("%s has no line %d", path, at)
			}
			head := strings.Join(lines[:at], "")
			if head != "" && !strings.HasSuffix(head, "\n") { // the last line has no line end
				head += "\n"
			}
			after := head + strings.TrimSuffix(text, "\n") + "\n" + strings.Join(lines[at:], "")
			return after, true, "inserted into " + path, nil
		}
	default:
		return w, fmt.Errorf("there is no command %q", a.text("command"))
	}
	return w, nil
}

type change = func(path, before string) (after string, write bool, say string, err error)

func show(from, most int) change {
	return func(_, before string) (string, bool, string, error) {
		var b strings.Builder
		for i, line := range strings.Split(strings.TrimSuffix(before, "\n"), "\n") {
			if n := i + 1; n >= from && n-from < most {
				fmt.Fprintf(&b, "%6d\t%s\n", n, line)
			}
		}
		return "", false, b.String(), nil
	}
}

func create(text string) change {
	return func(path, _ string) (string, bool, string, error) { return text, true, "wrote " + path, nil }
}

func replace(old, with string, all bool) change {
	return func(path, before string) (string, bool, string, error) {
		n := strings.Count(before, old)
		switch {
		case old == "" || old == with:
			return "", false, "", fmt.Errorf("the text to be replaced is empty, or the same as the new one")
		case n == 0:
			return "", false, "", fmt.Errorf("%s does not hold the text to be replaced", path)
		case n > 1 && !all:
			return "", false, "", fmt.Errorf("%s holds the text to be replaced %d times: give more of its surroundings", path, n)
		}
		return strings.ReplaceAll(before, old, with), true, "changed " + path, nil
	}
}

// applyPatch applies a Codex patch: *** Begin Patch, then files, which are added, deleted or updated by hunks
// of lines that begin with ' ', '-' and '+'.
func (x *run) applyPatch(ctx context.Context, text string) (actionResult, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) < 2 || lines[0] != "*** Begin Patch" || lines[len(lines)-1] != "*** End Patch" {
		return actionResult{-1, "a patch stands between *** Begin Patch and *** End Patch"}, nil
	}
	lines = lines[1 : len(lines)-1]
	var said []string
	for len(lines) > 0 {
		verb, name, ok := strings.Cut(lines[0], " File: ")
		if !ok {
			return actionResult{-1, fmt.Sprintf("a file is expected, found %q", lines[0])}, nil
		}
		end := 1
		for end < len(lines) && !(strings.HasPrefix(lines[end], "*** ") && strings.Contains(lines[end], " File: ")) {
			end++
		}
		body := lines[1:end]
		lines = lines[end:]
		var out actionResult
		var err error
		switch verb {
		case "*** Delete":
			out, err = x.command(ctx, "rm -- "+quoted(name))
		case "*** Add":
			var b strings.Builder
			for _, l := range body {
				b.WriteString(strings.TrimPrefix(l, "+") + "\n")
			}
			out, err = x.edit(ctx, work{path: name, fresh: true, change: create(b.String())})
		case "*** Update":
			to, moves := "", false
			if len(body) > 0 {
				if to, moves = strings.CutPrefix(body[0], "*** Move to: "); moves {
					body = body[1:]
				}
			}
			out, err = x.edit(ctx, work{path: name, change: hunks(body)})
			if moves && err == nil && out.code == 0 {
				out, err = x.command(ctx, "mkdir -p "+quoted(path.Dir(to))+" && mv -f -- "+quoted(name)+" "+quoted(to))
				name += " to " + to
			}
		default:
			out = actionResult{-1, fmt.Sprintf("%q is not known", verb)}
		}
		if err != nil || out.code != 0 {
			return out, err
		}
		said = append(said, strings.TrimPrefix(verb, "*** ")+" "+name)
	}
	return actionResult{0, strings.Join(said, "\n")}, nil
}

// hunks returns a change that applies each hunk where its old lines are: after the previous hunk, after the
// line that @@ names, and at the end of the file if *** End of File says so or the hunk has no old lines.
func hunks(body []string) change {
	return func(path, before string) (string, bool, string, error) {
		have, at := strings.Split(before, "\n"), 0
		for len(body) > 0 {
			if anchor, ok := strings.CutPrefix(body[0], "@@"); ok {
				body = body[1:]
				if anchor = strings.TrimSpace(anchor); anchor != "" && !strings.Contains(anchor, "@@") { // otherwise as in a diff
					n := seek(have, []string{anchor}, at)
					if n < 0 {
						return "", false, "", fmt.Errorf("%s does not hold the line %.200q", path, anchor)
					}
					at = n + 1
				}
				continue
			}
			var old, with []string
			last := false
			for len(body) > 0 && !strings.HasPrefix(body[0], "@@") {
				l := body[0]
				body = body[1:]
				switch {
				case strings.HasPrefix(l, "*** "):
					last = true
				case strings.HasPrefix(l, "-"):
					old = append(old, l[1:])
				case strings.HasPrefix(l, "+"):
					with = append(with, l[1:])
				default:
					l = strings.TrimPrefix(l, " ")
					old, with = append(old, l), append(with, l)
				}
			}
			end := len(have)
			if have[end-1] == "" { // after the last line
				end--
			}
			n := seek(have, old, at)
			if last || len(old) == 0 {
				if from := end - len(old); from >= at && seek(have[:end], old, from) == from {
					n = from
				}
			}
			if n < 0 {
				return "", false, "", fmt.Errorf("%s does not hold the lines %.200q", path, strings.Join(old, "\n"))
			}
			have = slices.Concat(have[:n], with, have[n+len(old):])
			at = n + len(with)
		}
		return strings.Join(have, "\n"), true, "changed " + path, nil
	}
}

// seek returns the first index from from on where the lines match, −1 if there is none: exactly, else without
// trailing white space, else without white space on both sides.
func seek(have, lines []string, from int) int {
	for _, as := range []func(string) string{func(s string) string { return s }, func(s string) string { return strings.TrimRight(s, " \t\r") }, strings.TrimSpace} {
		for n := from; n+len(lines) <= len(have); n++ {
			if slices.EqualFunc(have[n:n+len(lines)], lines, func(a, b string) bool { return as(a) == as(b) }) {
				return n
			}
		}
	}
	return -1
}
