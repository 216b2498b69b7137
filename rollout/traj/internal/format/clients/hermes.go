package clients

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// hermes reads trajectories of Hermes Agent. They look like ShareGPT, but the agent wrote
// them: no model saw the system prompt, each reply begins with a block of thoughts, even an
// empty one, and calls and results are in tags.
func hermes() format.Importer {
	return format.Importer{Name: "hermes-agent", Stateless: true, Match: isHermes, Read: readHermes}
}

// hermesPrompt starts every system prompt of the format, which holds the tools.
const hermesPrompt = "You are a function calling AI model. You are provided with function signatures within <tools>"

func isHermes(v format.Value, _ *format.File) bool {
	first := v.Get("conversations").First()
	return v.Get("completed").Kind() == jsonscan.Bool && first.Get("from").Is("system") && strings.HasPrefix(first.Get("value").String(), hermesPrompt)
}

func readHermes(in *format.File, v format.Value) error {
	t := thread.New(in)
	r := t.Rollout
	if n := format.Identifier(v.Get("prompt_index")); n != "" {
		r.Instance = "prompt-" + n
	}
	list := t.Items(v, "conversations", "")
	for i, x := range list {
		text := t.Words(x, "value", "/conversations")
		if slices.ContainsFunc([]string{"[CONTEXT COMPACTION", "[CONTEXT SUMMARY]"}, func(mark string) bool { return strings.Contains(text[:min(len(text), 64)], mark) }) {
			t.Lose("the history was compacted")
		}
		switch from := x.Get("from").Word(); {
		case from == "system" && i == 0:
			hermesTools(t, text)
		case from == "human":
			if r.Instance != "" && in.Task == [16]byte{} {
				in.Task = format.TaskOf(r.Instance, x.Get("value"))
			}
			t.Text(rollout.RoleUser, text)
		case from == "gpt":
			called := i+1 < len(list) && list[i+1].Get("from").Is("tool")
			hermesReply(t, text, called)
		case from == "tool":
			hermesResults(t, text)
		default:
			t.Unknown("/conversations/from", from)
		}
	}
	r.Status = rollout.StatusAborted
	if v.Get("completed").True() {
		r.Status = rollout.StatusCompleted
	}
	in.Note(format.SystemHidden, 0, "the recorded system prompt is not what the model saw; give that where it is known")
	r.Outcome = in.Outcome(v)
	in.Leftover(r, v, "conversations", "prompt_index", "completed", "reward", "resolved")
	return t.Emit(false)
}

func hermesTools(t *thread.Thread, text string) {
	_, rest, _ := strings.Cut(text, "<tools>\n") // the first occurrence only mentions the tag
	defs, _, ok := strings.Cut(rest, "\n</tools>")
	if !ok {
		return
	}
	t.Tools(inTags(t, defs))
}

// inTags parses the JSON between tags.
func inTags(t *thread.Thread, text string) format.Value {
	v, err := t.In.Parse([]byte(text))
	if err != nil {
		t.In.Wrong(t.In.Fail(t.At(), "/conversations/value", "found %.40q between tags, expected JSON: %s", text, err))
	}
	return v
}

// hermesReply splits a reply into thoughts, text and calls. If no results follow, text that
// looks like a call is plain text.
func hermesReply(t *thread.Thread, text string, called bool) {
	m := rollout.Message{Role: rollout.RoleAssistant}
	if rest, ok := strings.CutPrefix(text, "<think>\n"); ok {
		if thoughts, said, ok := strings.Cut(rest, "</think>"); ok {
			m.Reasoning, text = strings.TrimSuffix(thoughts, "\n"), strings.TrimPrefix(said, "\n")
		}
	}
	for called && strings.HasSuffix(text, "\n</tool_call>") {
		at := strings.LastIndex(text, "<tool_call>\n")
		if at < 0 {
			break
		}
		c := inTags(t, strings.TrimSuffix(text[at+len("<tool_call>\n"):], "\n</tool_call>"))
		m.ToolCalls = append(m.ToolCalls, t.Call("", c.Get("name").String(), c.Get("arguments")))
		text = strings.TrimSuffix(text[:at], "\n")
	}
	slices.Reverse(m.ToolCalls)
	m.Content = text
	t.Say(m)
}

// hermesResults adds the results of the previous reply's calls and sets the ids of the
// calls.
func hermesResults(t *thread.Thread, text string) {
	reply := len(t.Rollout.Messages) - 1
	for k := 0; text != ""; k++ {
		one, rest, ok := strings.Cut(strings.TrimPrefix(text, "<tool_response>\n"), "\n</tool_response>")
		if !ok {
			t.In.Wrong(t.In.Fail(t.At(), "/conversations/value", "found %.40q, expected results in tags", text))
			return
		}
		v := inTags(t, one)
		id := v.Get("tool_call_id").String()
		if reply >= 0 && k < len(t.Rollout.Messages[reply].ToolCalls) {
			t.Rollout.Messages[reply].ToolCalls[k].ID = id
		}
		t.Result(id, v.Get("content"))
		text = strings.TrimPrefix(rest, "\n")
	}
}
