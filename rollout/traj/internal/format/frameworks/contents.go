package frameworks

import (
	"cmp"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// contents reads the contents of Gemini's API: records with contents, and lists of them.
func contents() []format.Importer {
	return dialect{name: "gemini-contents", is: isContent, add: addContent, list: "contents"}.importers()
}

// isContent knows a content: its parts have no type, but a key for what they are.
func isContent(v format.Value) bool {
	role := v.Get("role")
	if v.Get("parts").Kind() != jsonscan.Array || !role.Is("user") && !role.Is("model") && !role.Is("function") && !role.IsNull() {
		return false
	}
	for _, p := range v.Get("parts").Items() {
		return p.Get("type").Kind() == jsonscan.Absent && p.Get("part_kind").Kind() == jsonscan.Absent
	}
	return !role.IsNull()
}

func addContent(t *thread, v format.Value) error {
	m := rollout.Message{Role: rollout.RoleUser}
	if v.Get("role").Is("model") {
		m.Role = rollout.RoleAssistant
	}
	return contentParts(t, m, v.Get("parts"))
}

// contentParts adds a message of parts, and the results among them before it.
func contentParts(t *thread, m rollout.Message, parts format.Value) error {
	var texts, thoughts []string
	said := false
	for _, p := range parts.Items() {
		known := false
		for key, x := range p.Members() {
			switch key {
			case "text":
				known = true
				if thought, _ := p.Get("thought").Bool(); thought {
					thoughts = append(thoughts, x.String())
				} else {
					texts, said = append(texts, x.String()), true
				}
			case "functionCall", "function_call":
				known, said = true, true
				m.ToolCalls = append(m.ToolCalls, call(x.Get("id").String(), x.Get("name").Word(), x.Get("args")))
			case "functionResponse", "function_response":
				known = true
				t.response(x, "")
			case "thought", "thoughtSignature", "thought_signature", "videoMetadata", "partMetadata":
			default:
				if !x.IsNull() {
					return t.unknown("/parts/"+key, key)
				}
			}
		}
		if !known && p.Get("thoughtSignature").Kind() == jsonscan.Absent {
			return t.unknown("/parts", format.Shape(p))
		}
	}
	m.Content, m.Reasoning = strings.Join(texts, ""), strings.Join(thoughts, "")
	if said || m.Reasoning != "" || m.Role == rollout.RoleAssistant {
		t.say(m)
	}
	return nil
}

// response adds the result of a call. Where it says nothing but an output, that is what
// it says.
func (t *thread) response(x format.Value, id string) {
	v := x.Get("response")
	if out := v.Get("output"); v.Len() == 1 && out.Kind() == jsonscan.String {
		v = out
	}
	t.result(cmp.Or(x.Get("id").String(), id, x.Get("name").String()), v)
}

// geminiCLI reads the sessions of Gemini CLI, ~/.gemini/tmp/*/chats/session-*: whole as
// JSON, or a record a line.
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

// A geminiSession is the records of a session by id: a later one replaces an earlier one
// of the same id.
type geminiSession struct {
	t     *thread
	order []string
	byID  map[string][]byte
}

func newGeminiSession(in *format.File) *geminiSession {
	return &geminiSession{t: newThread(in), byID: map[string][]byte{}}
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
	if id.Kind() != jsonscan.String || v.Get("type").Kind() != jsonscan.String { // of the session
		s.t.r.ID = cmp.Or(v.Get("sessionId").String(), s.t.r.ID)
		if list := v.Get("messages"); list.Len() > 0 { // takes the place of what there was
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

// rewind takes a record and those after it back, all where it is not there.
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
		s.t.in.Note("rewound", 0, "the user took what came after record %q back; it is not read", id)
	}
}

func (s *geminiSession) Finish() error {
	for _, id := range s.order {
		var d jsonscan.Doc
		v, err := d.Parse(s.byID[id], jsonscan.Options{NonFinite: true})
		if err == nil {
			err = s.message(v)
		}
		if err != nil {
			return err
		}
	}
	return s.t.emit(true)
}

// message adds a record. Notices of the client are not shown to the model.
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
			m.ToolCalls = append(m.ToolCalls, call(c.Get("id").String(), c.Get("name").Word(), c.Get("args")))
		}
		if v.Get("thoughts").Len() > 0 { // summaries of what is hidden
			format.Keep(&m.Extra, "thoughts", v.Get("thoughts"))
			t.in.NoteRedacted(len(t.r.Messages))
		}
		if err := listed(t, m, body); err != nil {
			return err
		}
		for _, c := range v.Get("toolCalls").Items() {
			answered := false
			for _, p := range format.Elements(c.Get("result")) {
				if x := p.Get("functionResponse"); x.Kind() == jsonscan.Object {
					t.response(x, c.Get("id").String())
					answered = true
				}
			}
			if !answered && c.Get("result").Kind() == jsonscan.String {
				t.result(c.Get("id").String(), c.Get("result"))
			}
		}
		return nil
	default:
		return t.unknown("/type", kind)
	}
}

// listed adds a message whose content is a text, a part or a list of those.
func listed(t *thread, m rollout.Message, body format.Value) error {
	if s, ok := body.Text(); ok {
		m.Content = s
		t.say(m)
		return nil
	}
	if text, ok := bareTexts(body); ok {
		m.Content = text
		t.say(m)
		return nil
	}
	return contentParts(t, m, body)
}
