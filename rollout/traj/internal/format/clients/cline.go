package clients

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// cline reads api_conversation_history.json of cline and its forks: messages of the
// Messages API, without system prompt and tools; and the sessions of cline since version 3
// of its command.
func cline() []format.Importer {
	return []format.Importer{{Name: "cline", Match: isClineSession, Read: clineSession}, {Name: "cline", Match: func(v format.Value, in *format.File) bool {
		return in.InList && filepath.Base(in.Name) == "api_conversation_history.json" && v.Get("role").Kind() == jsonscan.String
	}, Fold: func(in *format.File) format.Folder {
		t := thread.New(in)
		if clineCut(in) {
			t.Lose("the client left messages out of what it sent")
		}
		return thread.Dialect{Session: true, Add: addCline}.Folder(t)
	}}}
}

func addCline(t *thread.Thread, v format.Value) {
	role := t.Speaker(v.Get("role").Word())
	if v.Get("isSummary").True() || v.Get("condenseParent").Kind() == jsonscan.String || v.Get("truncationParent").Kind() == jsonscan.String {
		t.Lose("the conversation was condensed")
	}
	m := rollout.Message{Role: role}
	if role == rollout.RoleAssistant {
		m.Sampled = rollout.SampledByPolicy
		t.Unseen[len(t.Rollout.Messages)] = t.Lost != ""
	}
	t.Blocks(m, v.Get("content"))
}

// clineCut reports whether, according to ui_messages.json, the client left messages out of
// its requests.
func clineCut(in *format.File) bool {
	shown, err := in.Neighbour("ui_messages.json")
	if err != nil || bytes.Contains(shown, []byte(`"conversationHistoryDeletedRange":[`)) || bytes.Contains(shown, []byte(`"conversationHistoryDeletedRange": [`)) {
		return true
	}
	changed, err := in.Neighbour("context_history.json")
	return err != nil || len(bytes.TrimSpace(changed)) > len("[]")
}

// isClineSession reports whether v is a session, *.messages.json, or what a compaction of
// one left beside it, *.compaction.json.
func isClineSession(v format.Value, _ *format.File) bool {
	return v.Get("messages").Kind() == jsonscan.Array &&
		(v.Get("source_message_count").Kind() == jsonscan.Number || v.Get("sessionId").Kind() == jsonscan.String && slices.Contains([]string{"lead", "subagent", "teammate"}, v.Get("agent").Word()))
}

// Cline stores results whole and cuts what it sends.
const (
	clineResult = 8000     // UTF-16 units of a text in a result
	clineFile   = 50000    // UTF-16 units of a file that the user attached
	clineReply  = 12000    // bytes of a reply; of longer ones some are cut
	clineStale  = 64 << 10 // bytes of files that were read again, from which on they are left out
)

// clineThread is a session under construction.
type clineThread struct {
	*thread.Thread
	recent bool           // the version is known to have the limits above
	files  map[string]int // bytes of each file as it was read last
	stale  int            // bytes of files that were read again
}

func clineSession(in *format.File, v format.Value) error {
	if v.Get("source_message_count").Kind() == jsonscan.Number {
		return nil // the session is a file of its own
	}
	t := &clineThread{Thread: thread.New(in), recent: v.Get("origin").Kind() == jsonscan.Object, files: map[string]int{}}
	t.Rollout.ID = v.Get("sessionId").String()
	if s := v.Get("system_prompt").String(); s != "" {
		t.Text(rollout.RoleSystem, s)
	}
	list := format.Elements(v.Get("messages"))
	compacted := slices.ContainsFunc(list, func(m format.Value) bool {
		return strings.HasPrefix(m.Path("metadata", "kind").String(), "compaction") || m.Path("metadata", "compaction").Kind() == jsonscan.String
	})
	stem := strings.TrimSuffix(filepath.Base(in.Name), ".messages.json")
	state, err := in.Neighbour(stem + ".compaction.json")
	_, _ = in.Neighbour(stem + ".json") // tells when and where the session ran
	if compacted || err != nil || state != nil {
		t.Lose("the session was compacted")
	}
	for _, x := range list {
		t.add(x)
	}
	in.Leftover(t.Rollout, v, "messages", "system_prompt", "sessionId")
	return t.Emit(true)
}

func (t *clineThread) add(v format.Value) {
	if v.Path("metadata", "displayOnly").True() {
		return
	}
	role := t.Speaker(v.Get("role").Word())
	m, before := rollout.Message{Role: role}, len(t.Rollout.Messages)
	for _, b := range t.Items(v, "content", "") {
		switch kind := b.Get("type").Word(); kind {
		case "text":
			s := t.Words(b, "text", "/content")
			if role == rollout.RoleUser {
				s = clineInput(s)
			}
			format.AddText(&m, s)
		case "file":
			path, s := t.Words(b, "path", "/content"), clineCutText(t.Words(b, "content", "/content"), clineFile)
			t.reads(path, len(s))
			format.AddText(&m, `<file_content path="`+path+"\">\n"+s+"\n</file_content>")
		case "image":
			m.Parts = append(m.Parts, rollout.Part{Type: kind, Raw: b.Clone()})
		case "thinking":
			m.Reasoning += t.Words(b, "thinking", "/content")
		case "redacted_thinking":
			t.In.NoteRedacted(len(t.Rollout.Messages))
		case "tool_use":
			c := t.Call(b.Get("id").String(), b.Get("name").Word(), b.Get("input"))
			c.Arguments = string(clineJSON(b.Get("input"), math.MaxInt))
			m.ToolCalls = append(m.ToolCalls, c)
		case "tool_result":
			t.result(b)
		default:
			t.Unknown("/content", kind)
		}
	}
	if role == rollout.RoleUser && len(t.Rollout.Messages) > before && m.Parts == nil {
		return // nothing but results
	}
	if t.Unanswered() {
		t.Lose("a call without a result was shown with one that the client wrote")
	}
	if role == rollout.RoleAssistant || len(m.Parts) == 1 && m.Parts[0].IsText() {
		m.Parts = nil // texts are sent as one
	}
	at := len(t.Rollout.Messages)
	t.Say(m)
	if v.Path("metadata", "invalidToolCalls").Len() > 0 {
		t.Cut[at] = "the client replaced arguments that it could not read"
	}
	if strings.TrimSpace(m.Content) == "" && m.Parts == nil && m.ToolCalls == nil && m.Reasoning == "" {
		t.Lose("an empty message was shown in words of the client")
	}
	if role == rollout.RoleAssistant && len(m.Content) > clineReply {
		t.Lose("a long reply may have been cut where it was shown")
	}
}

// result adds the result of a call.
func (t *clineThread) result(b format.Value) {
	m, v := rollout.Message{Role: rollout.RoleTool, ToolCallID: b.Get("tool_use_id").String()}, b.Get("content")
	if !t.recent && len(v.Raw()) > clineResult {
		t.Lose("what the version of the client shows of a long result is not known")
	}
	if m.Content = clineCutText(v.String(), clineResult); v.Kind() != jsonscan.String {
		m.Content = string(clineJSON(v, clineResult))
	}
	kind := v.First().Get("type")
	if v.Kind() != jsonscan.String && (v.Kind() != jsonscan.Array || kind.Is("text") || bytes.Contains(v.Raw(), []byte(`"mediaType"`))) {
		t.Lose("a result of parts was shown as the provider takes it")
	}
	t.Say(m)
	if name := b.Get("name"); name.Is("read_files") || name.Is("read") || !t.recent {
		for _, x := range format.Elements(v) {
			path := x.Get("query").String()
			if k := strings.LastIndexByte(path, ':'); k > 0 && strings.Trim(path[k+1:], "-0123456789EOF") == "" {
				path = path[:k] // a range of lines
			}
			t.reads(path, len(clineJSON(x, clineResult)))
		}
	}
}

// reads counts a file of n bytes that is shown.
func (t *clineThread) reads(path string, n int) {
	t.stale += t.files[path]
	if t.files[path] = n; t.stale >= clineStale || t.stale > 0 && !t.recent {
		t.Lose("files that were read again were left out where they had been read before")
	}
}

// clineTags are the tags around what a user said, with what they hold and without an end.
var clineTags = [][2]*regexp.Regexp{
	{regexp.MustCompile(`(?s)<user_input\b[^>]*>(.*?)</user_input>`), regexp.MustCompile(`<user_input[^>]*>`)},
	{regexp.MustCompile(`(?s)<user_command\b[^>]*>(.*?)</user_command>`), regexp.MustCompile(`<user_command[^>]*>`)},
}

// clineInput returns what a user said as it is sent.
func clineInput(s string) string {
	s = strings.TrimSpace(s)
	for _, tag := range clineTags {
		bare := tag[0].ReplaceAllString(s, "$1")
		if bare == s {
			bare = tag[1].ReplaceAllString(s, "")
		}
		s = strings.TrimSpace(bare)
	}
	return s
}

// clineCutText takes the middle out of a text of more than so many UTF-16 units.
func clineCutText(s string, limit int) string {
	units := utf16.Encode([]rune(s))
	if len(units) <= limit {
		return s
	}
	mark := func(removed int) string { return fmt.Sprintf("\n\n...[truncated %d chars]...\n\n", removed) }
	keep := (limit - len(mark(len(units)-limit))) / 2
	words := mark(len(units) - 2*keep)
	keep = (limit - len(words)) / 2
	return string(utf16.Decode(units[:keep])) + words + string(utf16.Decode(units[len(units)-keep:]))
}

// clineJSON returns v as JSON.stringify writes it, its texts cut.
func clineJSON(v format.Value, limit int) []byte {
	switch v.Kind() {
	case jsonscan.Object:
		var o format.Object
		for key, x := range v.Members() {
			o.Raw(key, clineJSON(x, limit))
		}
		return o.End()
	case jsonscan.Array:
		var list [][]byte
		for _, x := range v.Items() {
			list = append(list, clineJSON(x, limit))
		}
		return format.Array(list)
	case jsonscan.String:
		if s := v.String(); v.LoneSurrogate() || len(s) > limit {
			return append(jsonscan.AppendEscaped([]byte{'"'}, clineCutText(s, limit)), '"')
		}
	}
	return v.Raw()
}
