package frameworks

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// converse reads the messages of Bedrock's Converse API.
func converse() []format.Importer {
	return dialect{name: "bedrock-converse", is: isConverse, add: addConverse, list: "messages", all: true}.importers()
}

// isConverse knows a message: its blocks have no type, but a key for what they are.
func isConverse(v format.Value) bool {
	for _, b := range v.Get("content").Items() {
		if b.Kind() != jsonscan.Object || b.Get("type").Kind() != jsonscan.Absent {
			return false
		}
		for key, x := range b.Members() {
			switch key {
			case "text":
				return b.Len() == 1 && x.Kind() == jsonscan.String
			case "toolUse", "toolResult", "reasoningContent", "cachePoint", "image", "document":
				return x.Kind() == jsonscan.Object
			}
			return false
		}
	}
	return false
}

func addConverse(t *thread, v format.Value) error {
	if s, ok := v.Get("content").Text(); ok { // not of the API, but of what is built on it
		role, err := t.in.Speaker(v.Get("role").Word(), len(t.r.Messages), "/role")
		t.text(role, s)
		return err
	}
	role, err := t.in.Speaker(v.Get("role").Word(), len(t.r.Messages), "/role")
	if err != nil {
		return err
	}
	m := rollout.Message{Role: role}
	var texts, thoughts []string
	results := 0
	for _, b := range v.Get("content").Items() {
		for key, x := range b.Members() {
			switch key {
			case "text":
				texts = append(texts, x.String())
			case "toolUse":
				m.ToolCalls = append(m.ToolCalls, call(x.Get("toolUseId").String(), x.Get("name").Word(), x.Get("input")))
			case "toolResult":
				results++
				if err := converseResult(t, x); err != nil {
					return err
				}
			case "reasoningContent":
				if s, ok := x.Path("reasoningText", "text").Text(); ok {
					thoughts = append(thoughts, s)
				} else {
					t.in.NoteRedacted(len(t.r.Messages))
				}
			case "cachePoint":
			default:
				return t.unknown("/content/"+key, key)
			}
		}
	}
	m.Content, m.Reasoning = strings.Join(texts, ""), strings.Join(thoughts, "\n")
	if results == 0 || texts != nil {
		t.say(m)
	}
	return nil
}

func converseResult(t *thread, v format.Value) error {
	var texts []string
	for _, b := range v.Get("content").Items() {
		switch s, ok := b.Get("text").Text(); {
		case ok:
			texts = append(texts, s)
		case b.Get("json").Kind() != jsonscan.Absent:
			texts = append(texts, string(b.Get("json").Raw()))
		default:
			return t.unknown("/content/toolResult", format.Shape(b))
		}
	}
	t.say(rollout.Message{Role: rollout.RoleTool, ToolCallID: v.Get("toolUseId").String(), Content: strings.Join(texts, "\n")})
	return nil
}
