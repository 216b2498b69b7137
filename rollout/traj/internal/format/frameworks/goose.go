package frameworks

import (
	"path/filepath"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// goose reads the sessions of goose: a message a line after one about the session, or
// what goose session export prints.
func goose() []format.Importer {
	d := dialect{name: "goose", is: isGoose, add: addGoose, list: "conversation", session: true}
	all := d.importers()
	all[1].Match = func(v format.Value, _ *format.File) bool {
		return isGoose(v) || v.Get("working_dir").Kind() == jsonscan.String && v.Get("message_count").Kind() == jsonscan.Number
	}
	return all
}

// isGoose knows a message: created is a number, and contents have types.
func isGoose(v format.Value) bool {
	if v.Get("role").Kind() != jsonscan.String || v.Get("created").Kind() != jsonscan.Number {
		return false
	}
	for _, c := range v.Get("content").Items() {
		return c.Get("type").Kind() == jsonscan.String
	}
	return false
}

func addGoose(t *thread, v format.Value) error {
	if v.Get("working_dir").Kind() == jsonscan.String { // the first line
		t.r.ID = format.FirstID(v, "id")
		return nil
	}
	role, err := t.in.Speaker(v.Get("role").Word(), len(t.r.Messages), "/role")
	if err != nil {
		return err
	}
	if visible, said := v.Path("metadata", "agentVisible").Bool(); said && !visible {
		t.lose("messages were taken out of what the agent sees")
	}
	m := rollout.Message{Role: role}
	said := false
	for _, c := range v.Get("content").Items() {
		switch kind := c.Get("type").Word(); kind {
		case "text":
			m.Content, said = m.Content+c.Get("text").String(), true
		case "thinking":
			m.Reasoning += c.Get("thinking").String()
		case "redactedThinking":
			t.in.NoteRedacted(len(t.r.Messages))
		case "toolRequest", "frontendToolRequest":
			x := c.Path("toolCall", "value")
			if x.Kind() != jsonscan.Object {
				return t.in.Fail(t.at(), "/content/toolCall", "the call could not be read by goose (%s), so that what was sampled is not recorded", c.Path("toolCall", "error").String())
			}
			m.ToolCalls = append(m.ToolCalls, call(c.Get("id").String(), x.Get("name").Word(), x.Get("arguments")))
		case "toolResponse":
			if err := gooseResult(t, c); err != nil {
				return err
			}
		case "toolConfirmationRequest", "actionRequired", "systemNotification": // shown to the user
		case "summarizationRequested", "contextLengthExceeded", "conversationCompacted":
			t.lose("the session was compacted")
		default:
			return t.unknown("/content", kind)
		}
	}
	if said || m.ToolCalls != nil || m.Reasoning != "" {
		t.say(m)
	}
	return nil
}

func gooseResult(t *thread, c format.Value) error {
	v, id := c.Path("toolResult", "value"), c.Get("id").String()
	if why, ok := c.Path("toolResult", "error").Text(); ok {
		t.say(rollout.Message{Role: rollout.RoleTool, ToolCallID: id, Content: why})
		return nil
	}
	if list := v.Get("content"); list.Kind() == jsonscan.Array {
		v = list
	}
	var texts []string
	for _, x := range v.Items() {
		if !x.Get("type").Is("text") {
			return t.unknown("/content/toolResult", x.Get("type").String())
		}
		// What is for the user alone is not sent.
		if audience := x.Path("annotations", "audience"); audience.Len() > 0 && !strings.Contains(string(audience.Raw()), "assistant") {
			continue
		}
		texts = append(texts, x.Get("text").String())
	}
	t.say(rollout.Message{Role: rollout.RoleTool, ToolCallID: id, Content: strings.Join(texts, "\n")})
	return nil
}

// cline reads the api_conversation_history.json of cline and its relatives: the messages
// of the Messages API, without prompt and tools.
func cline() format.Importer {
	return format.Importer{Name: "cline", Match: func(v format.Value, in *format.File) bool {
		return in.InList && filepath.Base(in.Name) == "api_conversation_history.json" && v.Get("role").Kind() == jsonscan.String
	}, Fold: func(in *format.File) format.Folder {
		return &folder{dialect{session: true, add: addCline}, newThread(in)}
	}}
}

func addCline(t *thread, v format.Value) error {
	role, err := t.in.Speaker(v.Get("role").Word(), len(t.r.Messages), "/role")
	if err != nil {
		return err
	}
	if summary, _ := v.Get("isSummary").Bool(); summary || v.Get("condenseParent").Kind() == jsonscan.String || v.Get("truncationParent").Kind() == jsonscan.String {
		t.lose("the conversation was condensed")
	}
	m := rollout.Message{Role: role}
	if role == rollout.RoleAssistant {
		m.Sampled = rollout.SampledByPolicy
		t.unseen[len(t.r.Messages)] = t.lost != ""
	}
	return t.in.Blocks(t.r, m, v.Get("content"))
}
