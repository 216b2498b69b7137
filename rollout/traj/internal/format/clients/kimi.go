package clients

import (
	"path/filepath"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// kimi reads the contexts of Kimi CLI, ~/.kimi/sessions/*/*/context*.jsonl: the messages as
// sent, the system prompt, and marks between them. Kimi starts a new file when it compacts
// or takes messages back, so a file holds what the last reply saw.
func kimi() format.Importer {
	return format.Importer{Name: "kimi-cli", Match: isKimi, Fold: func(in *format.File) format.Folder {
		return &kimiContext{t: thread.New(in)}
	}}
}

func isKimi(v format.Value, in *format.File) bool {
	switch role := v.Get("role"); role.Word() {
	case "_system_prompt":
		return v.Get("content").Kind() == jsonscan.String
	case "_checkpoint":
		return v.Get("id").Kind() == jsonscan.Number
	case "_usage":
		return v.Get("token_count").Kind() == jsonscan.Number
	default:
		base := filepath.Base(in.Name)
		return role.Kind() == jsonscan.String && strings.HasPrefix(base, "context") && filepath.Ext(base) == ".jsonl" && v.Get("messages").Kind() == jsonscan.Absent
	}
}

type kimiContext struct {
	t    *thread.Thread
	kept bool // after a compaction: the following messages are older
}

// kimiSummary starts the message that a compaction writes; the messages after it, up to the
// next mark, were kept.
const kimiSummary = "<system>Previous context has been compacted"

func (k *kimiContext) Add(v format.Value) error {
	k.add(v)
	return k.t.OrLose()
}

func (k *kimiContext) add(v format.Value) {
	t := k.t
	role := v.Get("role").Word()
	switch role {
	case "_checkpoint", "_usage":
		k.kept = false
		return
	case "_system_prompt":
		t.Text(rollout.RoleSystem, t.Words(v, "content", ""))
		return
	}
	if strings.HasPrefix(role, "_") {
		t.Unknown("/role", role)
	}
	r := t.Speaker(role)
	m := rollout.Message{Role: r, Name: v.Get("name").String(), ToolCallID: v.Get("tool_call_id").String()}
	body := v.Get("content")
	if s, ok := body.Text(); ok {
		m.Content = s
	} else if body.Kind() != jsonscan.Null && body.Kind() != jsonscan.Array {
		t.In.Wrong(t.In.Want(body, t.At(), "/content", "a text or a list of parts"))
	}
	var texts []string
	for _, p := range body.Items() {
		key := "text"
		switch kind := p.Get("type").Word(); kind {
		case "text":
		case "think":
			key = "think"
		default:
			t.Unknown("/content", kind)
		}
		s := t.Words(p, key, "/content")
		if key == "think" {
			m.Reasoning += s
		} else {
			texts = append(texts, s)
		}
	}
	if r != rollout.RoleAssistant && len(texts) > 1 { // sent as parts
		for _, s := range texts {
			format.AddText(&m, s)
		}
	} else if texts != nil {
		m.Content = strings.Join(texts, "")
	}
	for _, c := range v.Get("tool_calls").Items() {
		f := c.Get("function")
		t.Need(f.Get("name"), jsonscan.String, "/tool_calls/function/name", "the name of a tool")
		m.ToolCalls = append(m.ToolCalls, t.Call(c.Get("id").String(), f.Get("name").Word(), f.Get("arguments")))
	}
	if t.In.Broken() {
		return
	}
	if k.kept = k.kept || r == rollout.RoleUser && strings.HasPrefix(m.Content, kimiSummary); k.kept && r == rollout.RoleAssistant {
		m.Sampled = rollout.SampledCopied
	}
	if v.Get("partial").True() && r == rollout.RoleAssistant {
		t.Cut[len(t.Rollout.Messages)] = "the reply is partial"
	}
	// Newer versions send adjacent user messages as one.
	if n := len(t.Rollout.Messages) - 1; r == rollout.RoleUser && n >= 0 && t.Rollout.Messages[n].Role == r && !kimiNotice(t.Rollout.Messages[n]) && !kimiNotice(m) {
		format.AddText(&t.Rollout.Messages[n], m.Content)
		return
	}
	t.Say(m)
}

func kimiNotice(m rollout.Message) bool { return strings.HasPrefix(m.Content, "<notification ") }

// Finish emits the messages. Some versions write the system prompt to the file.
func (k *kimiContext) Finish() error { return k.t.Emit(true) }
