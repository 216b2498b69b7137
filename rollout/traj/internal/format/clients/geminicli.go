package clients

import (
	"cmp"
	"slices"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// geminiCLI reads the sessions of Gemini CLI, ~/.gemini/tmp/*/chats/session-*: one JSON
// object, or one record per line.
func geminiCLI() []format.Importer {
	isSession := func(v format.Value) bool {
		return v.Get("sessionId").Kind() == jsonscan.String && v.Get("projectHash").Kind() == jsonscan.String
	}
	return []format.Importer{
		{Name: "gemini-cli", Match: func(v format.Value, _ *format.File) bool {
			return isSession(v) && v.Get("messages").Kind() == jsonscan.Array
		}, Read: func(in *format.File, v format.Value) error {
			s := newGeminiSession(in)
			if err := s.Add(v); err != nil {
				return err
			}
			return s.Finish()
		}},
		{Name: "gemini-cli", Match: func(v format.Value, _ *format.File) bool {
			return isSession(v) || v.Get("$set").Kind() == jsonscan.Object || v.Get("$rewindTo").Kind() == jsonscan.String
		}, Fold: func(in *format.File) format.Folder { return newGeminiSession(in) }},
	}
}

// geminiSession holds the records of a session by id: a later record replaces an earlier
// one with the same id.
type geminiSession struct {
	t     *thread.Thread
	order []string
	byID  map[string][]byte
	// rewritten is the number of leading records that remained after a compression, or
	// after results were cut: replies among them saw something else.
	rewritten int
	results   format.Value // calls of the last reply, whose results are not said so far
	answered  bool         // the last record holds results as they were sent
}

func newGeminiSession(in *format.File) *geminiSession {
	return &geminiSession{t: thread.New(in), byID: map[string][]byte{}}
}

func (s *geminiSession) Add(v format.Value) error {
	if back, ok := v.Get("$rewindTo").Text(); ok {
		s.rewind(back)
		return nil
	}
	if set := v.Get("$set"); set.Kind() == jsonscan.Object {
		v = set
	}
	id := v.Get("id")
	if id.Kind() != jsonscan.String || v.Get("type").Kind() != jsonscan.String { // about the session
		s.t.Rollout.ID = cmp.Or(v.Get("sessionId").String(), s.t.Rollout.ID)
		if list := v.Get("messages"); list.Kind() == jsonscan.Array { // replaces all records so far
			if len(s.order) > 0 {
				s.rewritten = list.Len()
			}
			s.rewind("")
			for _, x := range list.Items() {
				s.keep(x.Get("id").String(), x)
			}
		}
		return nil
	}
	s.keep(id.String(), v)
	return nil
}

func (s *geminiSession) keep(id string, v format.Value) {
	if _, there := s.byID[id]; !there {
		s.order = append(s.order, id)
	}
	s.byID[id] = v.Clone()
}

// rewind removes a record and those after it, or all records if it is not found.
func (s *geminiSession) rewind(id string) {
	at := 0
	for i, x := range s.order {
		if x == id {
			at = i
		}
	}
	for _, x := range s.order[at:] {
		delete(s.byID, x)
	}
	s.order = s.order[:at]
	if id != "" {
		s.t.In.Note("rewound", 0, "the user took what came after record %q back; it is not read", id)
	}
}

func (s *geminiSession) Finish() error {
	if s.rewritten > 0 {
		s.t.Lose("the client rewrote its history")
	}
	for i, id := range s.order {
		if i == s.rewritten {
			s.t.Lost = "" // later replies saw the records as they are
		}
		var d jsonscan.Doc
		v, err := d.Parse(s.byID[id], jsonscan.Options{NonFinite: true})
		if err != nil {
			return err
		}
		s.message(v)
	}
	s.answer()
	return s.t.Emit(true)
}

// message adds a record. Notices of the client are not shown to the model and are skipped.
func (s *geminiSession) message(v format.Value) {
	t, body, kind := s.t, v.Get("content"), v.Get("type").Word()
	m := rollout.Message{Role: rollout.RoleUser}
	switch kind {
	case "info", "error", "warning":
		if has(body, "inlineData") || has(body, "fileData") { // sent after a result
			t.Unknown("/content", "inlineData")
		}
		return
	case "user", "gemini":
	default:
		t.Unknown("/type", kind)
	}
	sent := kind == "user" && has(body, "functionResponse") // since 2026, beside the reply's record
	if sent {
		s.results = format.Value{}
	} else if s.answered && kind == "user" {
		t.Lose("a reply that was interrupted was shown in words that the session does not hold")
	}
	s.answered = sent
	s.answer()
	if kind == "user" {
		listed(t, m, body)
		return
	}
	m.Role = rollout.RoleAssistant
	if !has(body, "functionCall") {
		for _, c := range v.Get("toolCalls").Items() {
			m.ToolCalls = append(m.ToolCalls, t.Call(c.Get("id").String(), c.Get("name").Word(), c.Get("args")))
		}
	} else if v.Get("model").IsNull() {
		m.Sampled = rollout.SampledScripted // a call that the client made for a command of the user
	}
	if v.Get("thoughts").Len() > 0 { // summaries of hidden thinking
		format.Keep(&m.Extra, "thoughts", v.Get("thoughts"))
		t.In.NoteRedacted(len(t.Rollout.Messages))
	}
	s.results = v.Get("toolCalls")
	listed(t, m, body)
}

// has reports whether a content holds a part of a kind.
func has(body format.Value, kind string) bool {
	return slices.ContainsFunc(format.Elements(body), func(p format.Value) bool { return p.Get(kind).Kind() == jsonscan.Object })
}

// answer adds the results in the record of the last reply.
func (s *geminiSession) answer() {
	calls := s.results
	s.results = format.Value{}
	for _, c := range calls.Items() {
		if x := c.Get("result"); !x.IsNull() {
			thread.ContentParts(s.t, rollout.Message{Role: rollout.RoleUser}, x)
		}
	}
}

// listed adds a message whose content is a text or a list of parts.
func listed(t *thread.Thread, m rollout.Message, body format.Value) {
	if s, ok := body.Text(); ok {
		m.Content = s
		t.Say(m)
		return
	}
	thread.ContentParts(t, m, body)
}
