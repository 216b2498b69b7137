package thread

import (
	"cmp"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// ContentParts adds a message of parts, after the results among them.
func ContentParts(t *Thread, m rollout.Message, parts format.Value) {
	var texts, thoughts []string
	said := false
	t.Need(parts, jsonscan.Array, "/parts", "a list of parts")
	for _, p := range parts.Items() {
		known := false
		for key, x := range p.Members() {
			switch key {
			case "text":
				if x.IsNull() {
					continue
				}
				t.Need(x, jsonscan.String, "/parts/text", "a text")
				known = true
				if p.Get("thought").True() {
					thoughts = append(thoughts, x.String())
				} else {
					texts, said = append(texts, x.String()), true
				}
			case "functionCall", "function_call":
				if x.IsNull() {
					continue
				}
				t.Need(x.Get("name"), jsonscan.String, "/parts/"+key+"/name", "the name of a function")
				known, said = true, true
				for _, more := range []string{"partialArgs", "partial_args"} {
					if !x.Get(more).IsNull() {
						t.Unknown("/parts/"+key+"/"+more, more)
					}
				}
				m.ToolCalls = append(m.ToolCalls, t.BareCall(x.Get("id").String(), x.Get("name").Word(), x.Get("args")))
			case "functionResponse", "function_response":
				if x.IsNull() {
					continue
				}
				known = true
				if x.Get("parts").Len() > 0 { // images and files
					t.Unknown("/parts/"+key+"/parts", "parts")
				}
				id, v := cmp.Or(x.Get("id").String(), x.Get("name").String()), x.Get("response")
				if v.Kind() != jsonscan.Object {
					t.Result(id, v)
					continue
				}
				t.Say(rollout.Message{Role: rollout.RoleTool, ToolCallID: id, Content: t.Shown(v)})
			case "thought", "thoughtSignature", "thought_signature", "videoMetadata", "video_metadata", "partMetadata", "part_metadata", "mediaResolution", "media_resolution":
			default:
				if !x.IsNull() {
					t.Unknown("/parts/"+key, key)
				}
			}
		}
		if !known && p.Get("thoughtSignature").Kind() == jsonscan.Absent && p.Get("thought_signature").Kind() == jsonscan.Absent {
			t.Unknown("/parts", format.Shape(p))
		}
	}
	m.Content, m.Reasoning = strings.Join(texts, ""), strings.Join(thoughts, "")
	if said || m.Reasoning != "" || m.Role == rollout.RoleAssistant {
		t.Say(m)
	}
}

// onlyOutput returns a text that is the only output, else the JSON text.
func onlyOutput(response format.Value) string {
	if out := response.Get("output"); response.Len() == 1 && out.Kind() == jsonscan.String {
		return out.String()
	}
	return format.PlainText(response)
}
