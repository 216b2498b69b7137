package frameworks

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// converse reads the messages of Bedrock's Converse API.
func converse() []format.Importer {
	return thread.Dialect{Name: "bedrock-converse", Is: isConverse, Add: addConverse, List: "messages", All: true, Call: converseCall}.Importers()
}

// converseCall recognizes a request beside its response, both in one object, and the
// invocation log of Bedrock.
func converseCall(v format.Value) (c thread.Call, is bool) {
	response := v
	switch {
	case v.Get("request").Kind() == jsonscan.Object && v.Get("response").Kind() == jsonscan.Object:
		c.Request, response = v.Get("request"), v.Get("response")
	case v.Path("input", "inputBodyJson").Kind() == jsonscan.Object:
		c.Request, response = v.Path("input", "inputBodyJson"), v.Path("output", "outputBodyJson")
	default:
		c.Request = v
	}
	c.Reply, c.End = response.Path("output", "message"), response.Get("stopReason").String()
	return c, c.Reply.Kind() == jsonscan.Object && c.Request.Get("messages").Kind() == jsonscan.Array
}

// isConverse reports whether v is a message: its blocks have no type, but a key that names
// their kind.
func isConverse(v format.Value) bool {
	for _, b := range v.Get("content").Items() {
		if b.Kind() != jsonscan.Object || b.Get("type").Kind() != jsonscan.Absent {
			return false
		}
		for key, x := range b.Members() {
			if x.IsNull() {
				continue
			}
			switch key {
			case "text":
				return x.Kind() == jsonscan.String && soleMember(b)
			case "toolUse", "toolResult", "reasoningContent", "citationsContent", "guardContent", "searchResult", "cachePoint", "image", "document", "video", "audio", "toolAddition", "toolRemoval":
				return x.Kind() == jsonscan.Object
			}
			return false
		}
	}
	return false
}

// soleMember reports whether exactly one member of a block is not null.
func soleMember(b format.Value) bool {
	n := 0
	for _, x := range b.Members() {
		if !x.IsNull() {
			n++
		}
	}
	return n == 1
}

func addConverse(t *thread.Thread, v format.Value) {
	role := t.Speaker(v.Get("role").Word())
	if s, ok := v.Get("content").Text(); ok { // not part of the API, but of libraries on top of it
		t.Text(role, s)
		return
	}
	m := rollout.Message{Role: role}
	var texts, thoughts []string
	results := 0
	for _, b := range t.Items(v, "content", "") {
		if !soleMember(b) {
			t.Unknown("/content", format.Shape(b))
		}
		for key, x := range b.Members() {
			if x.IsNull() {
				continue
			}
			switch key {
			case "text":
				texts = append(texts, t.Words(b, "text", "/content"))
			case "toolUse":
				t.Need(x.Get("name"), jsonscan.String, "/content/toolUse/name", "the name of a tool")
				m.ToolCalls = append(m.ToolCalls, t.Call(x.Get("toolUseId").String(), x.Get("name").Word(), x.Get("input")))
			case "toolResult":
				results++
				converseResult(t, x)
			case "reasoningContent":
				if s, ok := x.Path("reasoningText", "text").Text(); ok {
					thoughts = append(thoughts, s)
				} else {
					t.In.NoteRedacted(len(t.Rollout.Messages))
				}
			case "guardContent": // text checked by a guardrail, shown unchanged
				texts = append(texts, t.Words(x.Get("text"), "text", "/content/guardContent"))
			case "citationsContent":
				for _, y := range t.Items(x, "content", "/content/citationsContent") {
					texts = append(texts, t.Words(y, "text", "/content/citationsContent"))
				}
			case "cachePoint":
			default:
				t.Unknown("/content/"+key, key)
			}
		}
	}
	m.Content, m.Reasoning = strings.Join(texts, ""), strings.Join(thoughts, "\n")
	if results == 0 || texts != nil {
		t.Say(m)
	}
}

func converseResult(t *thread.Thread, v format.Value) {
	var texts []string
	for _, b := range t.Items(v, "content", "") {
		switch s, ok := b.Get("text").Text(); {
		case ok:
			texts = append(texts, s)
		case b.Get("json").Kind() != jsonscan.Absent:
			texts = append(texts, string(b.Get("json").Raw()))
		default:
			t.Unknown("/content/toolResult", format.Shape(b))
		}
	}
	t.Say(rollout.Message{Role: rollout.RoleTool, ToolCallID: v.Get("toolUseId").String(), Content: strings.Join(texts, "\n")})
}
