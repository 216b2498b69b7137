package frameworks

import (
	"cmp"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// contents reads the contents of Gemini's API: records with contents, and lists of them.
func contents() []format.Importer {
	return thread.Dialect{Name: "gemini-contents", Is: isContent, Add: addContent, List: "contents", Call: contentsCall}.Importers()
}

// contentsCall recognizes a request beside its response, as in batches of Vertex AI, and a
// request to which the response or its candidates were added.
func contentsCall(v format.Value) (c thread.Call, is bool) {
	response := v
	if c.Request = v; v.Get("response").Kind() == jsonscan.Object {
		response = v.Get("response")
	}
	if v.Get("request").Kind() == jsonscan.Object {
		c.Request = v.Get("request")
	}
	list := response.Get("candidates")
	if list.Kind() != jsonscan.Array || c.Request.Get("contents").Kind() != jsonscan.Array {
		return c, false
	}
	x := list.First()
	c.Reply, c.End = x.Get("content"), strings.ToLower(cmp.Or(x.Get("finishReason").String(), x.Get("finish_reason").String()))
	c.Others = list.Len() - 1
	return c, true
}

// isContent reports whether v is a content: its parts have no type, but a key that names
// their kind.
func isContent(v format.Value) bool {
	role := v.Get("role")
	if v.Get("parts").Kind() != jsonscan.Array || !role.Is("user") && !role.Is("model") && !role.Is("function") && !role.IsNull() {
		return false
	}
	p := v.Get("parts").First()
	return p.Get("type").Kind() == jsonscan.Absent && p.Get("part_kind").Kind() == jsonscan.Absent && (v.Get("parts").Len() > 0 || !role.IsNull())
}

func addContent(t *thread.Thread, v format.Value) {
	if v.Get("role").IsNull() && len(t.Rollout.Messages) > 0 && t.Rollout.Messages[len(t.Rollout.Messages)-1].Role != rollout.RoleSystem {
		t.In.Wrong(t.In.Want(v.Get("role"), t.At(), "/role", "who speaks: only the first content may leave it out"))
	}
	m := rollout.Message{Role: rollout.RoleUser}
	if v.Get("role").Is("model") {
		m.Role = rollout.RoleAssistant
	}
	thread.ContentParts(t, m, v.Get("parts"))
}
