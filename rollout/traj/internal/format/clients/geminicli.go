package clients

import (
	"cmp"

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
		if err == nil {
			err = s.message(v)
		}
		if err != nil {
			return err
		}
	}
	return s.t.Emit(true)
}

// message adds a record. Notices of the client are not shown to the model and are skipped.
func (s *geminiSession) message(v format.Value) error {
	t, body := s.t, v.Get("content")
	switch kind := v.Get("type").Word(); kind {
	case "info", "error", "warning":
		return nil
	case "user":
		return listed(t, rollout.Message{Role: rollout.RoleUser}, body)
	case "gemini":
		m := rollout.Message{Role: rollout.RoleAssistant}
		for _, c := range v.Get("toolCalls").Items() {
			m.ToolCalls = append(m.ToolCalls, t.Call(c.Get("id").String(), c.Get("name").Word(), c.Get("args")))
		}
		if v.Get("thoughts").Len() > 0 { // summaries of hidden thinking
			format.Keep(&m.Extra, "thoughts", v.Get("thoughts"))
			t.In.NoteRedacted(len(t.Rollout.Messages))
		}
		if err := listed(t, m, body); err != nil {
			return err
		}
		for _, c := range v.Get("toolCalls").Items() {
			answered := false
			for _, p := range format.Elements(c.Get("result")) {
				if x := p.Get("functionResponse"); x.Kind() == jsonscan.Object {
					t.Response(x, c.Get("id").String())
					answered = true
				}
			}
			if !answered && c.Get("result").Kind() == jsonscan.String {
				t.Result(c.Get("id").String(), c.Get("result"))
			}
		}
		return nil
	default:
		return t.Unknown("/type", kind)
	}
}

// listed adds a message whose content is a text, a part or a list of these.
func listed(t *thread.Thread, m rollout.Message, body format.Value) error {
	if s, ok := body.Text(); ok {
		m.Content = s
		t.Say(m)
		return nil
	}
	if text, ok := thread.BareTexts(body); ok {
		m.Content = text
		t.Say(m)
		return nil
	}
	return thread.ContentParts(t, m, body)
}
