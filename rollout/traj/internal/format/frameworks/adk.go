package frameworks

import (
	"cmp"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// adk reads the sessions of Google's ADK, and lists of their events.
func adk() []format.Importer {
	session := format.Importer{Name: "google-adk", Stateless: true, Match: func(v format.Value, _ *format.File) bool {
		return v.Get("events").Kind() == jsonscan.Array && v.Get("id").Kind() == jsonscan.String && (isADKEvent(v.Get("events").First(), nil) ||
			v.Get("events").Len() == 0 && (v.Get("app_name").Kind() == jsonscan.String || v.Get("appName").Kind() == jsonscan.String))
	}, Read: func(in *format.File, v format.Value) error {
		s := newADKSession(in)
		s.t.Rollout.ID = v.Get("id").String()
		for _, x := range v.Get("events").Items() {
			s.add(x)
		}
		s.t.Rollout.Outcome = in.Outcome(v)
		in.Leftover(s.t.Rollout, v, "id", "events", "state", "reward", "resolved")
		return s.t.Emit(true)
	}}
	return []format.Importer{session, {Name: "google-adk", Match: isADKEvent, Fold: func(in *format.File) format.Folder { return newADKSession(in) }}}
}

func isADKEvent(v format.Value, _ *format.File) bool {
	return v.Get("author").Kind() == jsonscan.String && (v.Get("invocation_id").Kind() == jsonscan.String || v.Get("invocationId").Kind() == jsonscan.String) &&
		v.Get("timestamp").Kind() == jsonscan.Number
}

type adkSession struct {
	t     *thread.Thread
	agent string // the agent that is the policy
}

// newADKSession returns an empty session. Engines other than Gemini are sent responses as
// Python's JSON.
func newADKSession(in *format.File) *adkSession {
	s := &adkSession{t: thread.New(in)}
	s.t.Shown = func(response format.Value) string { return string(response.Spaced()) }
	return s
}

func (s *adkSession) Add(v format.Value) error {
	s.add(v)
	return s.t.OrLose()
}

func (s *adkSession) Finish() error { return s.t.Emit(true) }

// add adds the content of an event. If there are several agents, the first is the policy:
// it sees the others' replies in a wording of ADK.
func (s *adkSession) add(v format.Value) {
	t, author := s.t, v.Get("author").Word()
	if !isADKEvent(v, nil) {
		t.In.Wrong(t.In.Fail(t.At(), "", "found %s, expected an event of a session", format.Shape(v)))
		return
	}
	content := v.Get("content")
	if v.Get("partial").True() || content.IsNull() {
		if actions := v.Get("actions"); actions.Get("compaction").Kind() == jsonscan.Object || actions.Get("rewindBeforeInvocationId").Kind() == jsonscan.String || actions.Get("rewind_before_invocation_id").Kind() == jsonscan.String {
			t.Lose("the history was compacted or taken back")
		}
		return // a partial text that a later event repeats whole, or a state change
	}
	parts := content.Get("parts")
	t.Need(parts, jsonscan.Array, "/content/parts", "a list of parts")
	m := rollout.Message{Role: rollout.RoleUser}
	if content.Get("role").Is("model") {
		if author == "user" {
			t.In.Wrong(t.In.Fail(t.At(), "/author", "a content of the model was said by the user"))
			return
		}
		if s.agent == "" {
			s.agent = author
		}
		m.Role = rollout.RoleAssistant
		if author != s.agent {
			m.Sampled, m.Name = rollout.SampledOtherAgent, author
			t.Lose("another agent speaks, and how it was shown is not recorded")
		}
		at := len(t.Rollout.Messages)
		if v.Get("interrupted").True() {
			t.Cut[at] = "the reply was interrupted"
		}
		t.End(strings.ToLower(cmp.Or(v.Get("finishReason").String(), v.Get("finish_reason").String())))
	} else if role := content.Get("role").Word(); role != "user" && role != "function" && role != "tool" {
		t.Unknown("/content/role", role)
	} else if author != "user" && author != s.agent && s.agent != "" {
		t.Lose("another agent speaks, and how it was shown is not recorded")
	}
	if v.Get("errorCode").Kind() == jsonscan.String || v.Get("error_code").Kind() == jsonscan.String {
		t.Lose("a reply ended in an error")
	}
	thread.ContentParts(t, m, parts)
}
