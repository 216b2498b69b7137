package clients

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// openCode reads the output of opencode export: a session with its messages.
func openCode() format.Importer {
	return format.Importer{Name: "opencode", Match: isOpenCode, Read: readOpenCode, Stateless: true}
}

func isOpenCode(v format.Value, _ *format.File) bool {
	if v.Get("info").Kind() != jsonscan.Object || v.Get("messages").Kind() != jsonscan.Array {
		return false
	}
	first := v.Get("messages").First()
	return first.Path("info", "role").Kind() == jsonscan.String && first.Get("parts").Kind() == jsonscan.Array ||
		v.Get("messages").Len() == 0 && strings.HasPrefix(v.Path("info", "id").String(), "ses_")
}

func readOpenCode(in *format.File, v format.Value) error {
	t := thread.New(in)
	t.Rollout.ID = v.Path("info", "id").String()
	for _, x := range v.Get("messages").Items() {
		if x.Path("info", "role").Is("assistant") {
			openCodeReply(t, x)
		} else {
			openCodePrompt(t, x)
		}
	}
	return t.Emit(true)
}

func openCodePrompt(t *thread.Thread, v format.Value) {
	var texts []string
	for _, p := range t.Items(v, "parts", "") {
		switch kind := p.Get("type").Word(); kind {
		case "text":
			s := t.Words(p, "text", "/parts")
			if !p.Get("ignored").True() && s != "" {
				texts = append(texts, s)
			}
		case "file": // parts of their own show texts and folders
			if mime := p.Get("mime"); !mime.Is("text/plain") && !mime.Is("application/x-directory") {
				t.Unknown("/parts/mime", mime.String())
			}
		case "compaction":
			t.Lose("the session was compacted")
		case "agent", "snapshot", "patch":
		case "subtask":
			t.Lose("a task was given to another agent")
		default:
			t.Unknown("/parts", kind)
		}
	}
	if texts != nil {
		t.SayTexts(rollout.Message{Role: rollout.RoleUser}, texts)
	}
}

func openCodeReply(t *thread.Thread, v format.Value) {
	if v.Path("info", "summary").True() {
		t.Lose("the session was compacted")
	}
	s := thread.NewSteps(t)
	failed := v.Path("info", "error").Kind() == jsonscan.Object
	for _, p := range t.Items(v, "parts", "") {
		if p.Path("metadata", "providerExecuted").True() {
			t.Unknown("/parts/metadata/providerExecuted", p.Get("type").Word())
		}
		switch kind := p.Get("type").Word(); kind {
		case "step-start":
			s.Flush("")
		case "step-finish":
			s.Flush(p.Get("reason").String())
		case "text", "reasoning":
			s.Write(t.Words(p, "text", "/parts"), kind == "reasoning")
		case "tool":
			state := p.Get("state")
			result := state.Get("output")
			switch status := state.Get("status").Word(); status {
			case "completed":
				for _, a := range state.Get("attachments").Items() {
					t.Unknown("/parts/state/attachments", a.Get("mime").Word())
				}
			case "error":
				result = state.Get("error")
				if state.Path("metadata", "interrupted").True() {
					s.Lost = "how a call that was interrupted was shown depends on the version of the client"
				}
			case "pending", "running":
				result = format.Value{}
				s.Lost = "a call without a result was shown with one that the client wrote"
			default:
				t.Unknown("/parts/state/status", status)
			}
			if state.Path("time", "compacted").Kind() == jsonscan.Number {
				t.Lose("old results of tools were cleared")
			}
			t.Need(p.Get("callID"), jsonscan.String, "/parts/callID", "the id of a call")
			s.Call(t.Call(p.Get("callID").String(), p.Get("tool").Word(), state.Get("input")), result)
		case "patch", "snapshot", "retry", "agent":
		case "compaction":
			t.Lose("the session was compacted")
		default:
			t.Unknown("/parts", kind)
		}
	}
	if failed { // a failed reply is not sent again, a stopped one is
		if s.Message.ToolCalls == nil {
			s.Cut = "the reply failed or was stopped"
		}
		if !v.Path("info", "error", "name").Is("MessageAbortedError") {
			s.Lost = "a reply that failed is not shown again"
		}
	}
	s.Flush("")
}
