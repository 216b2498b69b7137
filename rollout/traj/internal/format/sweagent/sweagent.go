package sweagent

import (
	"bytes"
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Importer reads .traj files.
func Importer() format.Importer {
	return format.Importer{Name: "swe-agent", Match: isSWEAgent, Read: readSWEAgent, Stateless: true}
}

func isSWEAgent(v format.Value, _ *format.File) bool {
	h := v.Get("history")
	if h.Kind() != jsonscan.Array || v.Get("messages").Kind() != jsonscan.Absent {
		return false
	}
	for _, first := range h.Items() {
		// A demonstration holds only the history, whose messages name their agent.
		return first.Get("role").Kind() == jsonscan.String &&
			(v.Get("trajectory").Kind() == jsonscan.Array || first.Get("agent").Kind() == jsonscan.String || first.Get("message_type").Kind() == jsonscan.String)
	}
	return v.Get("trajectory").Kind() == jsonscan.Array && v.Get("info").Kind() == jsonscan.Object
}

// run is one file while it is read.
type run struct {
	in      *format.File
	r       *rollout.Rollout
	history []format.Value // as recorded, parallel to r.Messages
	agents  []string
	main    string
	// shown holds messages that contexts show in place of recorded ones, so that a
	// shortened observation is stored once, not once per step.
	shown map[shownKey]*rollout.Message
}

// usedKeys are message keys that the importer reads or that repeat the content.
var usedKeys = []string{"agent", "message_type", "is_demo", "thought", "action", "thinking_blocks"}

type shownKey struct {
	at   int
	text string
}

// readSWEAgent reads a run, and the other attempts of an agent with retries.
func readSWEAgent(in *format.File, v format.Value) error {
	if err := readAttempt(in, v); err != nil {
		return err
	}
	best, ok := v.Path("info", "best_attempt_idx").Int()
	for i, x := range v.Get("attempts").Items() {
		if ok && i == best {
			continue
		}
		in.Note("attempt_not_chosen", 0, "attempt %d of a run with retries, of which another was chosen", i)
		if err := readAttempt(in, x); err != nil {
			return err
		}
	}
	return nil
}

func readAttempt(in *format.File, v format.Value) error {
	info, steps := v.Get("info"), v.Get("trajectory").Len()
	s := &run{in: in, shown: map[shownKey]*rollout.Message{}, r: &rollout.Rollout{
		Index:      format.NoIndex,
		ExitStatus: info.Get("exit_status").String(),
		Outcome:    rollout.Outcome{Submission: format.Text(info.Get("submission"))},
		Turns:      []rollout.Turn{},
	}}
	s.r.Status = format.StatusOf(s.r.ExitStatus)
	// The file is written after each step, the exit status with the last one. Without it
	// the run was cut off, and SWE-agent would repeat it.
	if s.r.ExitStatus == "" && info.Get("model_stats").Kind() == jsonscan.Object && steps > 0 {
		s.r.Status = rollout.StatusAborted
		in.Note("unfinished", 0, "the run was cut off: it has steps and no exit status")
	}
	if env := v.Get("environment").String(); env != "swe_main" && env != "main" {
		s.r.Instance = env // 0.x writes the class of its environment, 1.x the instance
	}
	if config, err := in.ParseInner(v.Get("replay_config"), "/replay_config"); err == nil && s.r.Instance == "" {
		s.r.Instance = config.Path("problem_statement", "id").String()
	}
	if s.r.Instance == "" && steps > 0 {
		s.r.Instance = fileInstance(in.Name)
	}
	demos, err := s.messages(v.Get("history"))
	if err != nil {
		return err
	}
	s.steps(v.Get("trajectory"))
	s.r.Metadata = map[string]json.RawMessage{"trajectory_len": json.RawMessage(strconv.Itoa(steps)), "demo_messages": json.RawMessage(strconv.Itoa(demos))}
	format.KeepAny(&s.r.Metadata, "environment", v.Get("environment"))
	for _, key := range []string{"swe_agent_version", "model_stats"} {
		format.KeepAny(&s.r.Metadata, key, info.Get(key))
	}
	in.NoteParts(s.r)
	return in.Emit(s.r)
}

// fileInstance returns the instance that a file is named after, for files that do not
// record it.
func fileInstance(name string) string {
	name = path.Base(filepath.ToSlash(name))
	for _, ending := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, ending)
	}
	instance, ok := strings.CutSuffix(name, ".traj")
	if !ok {
		return ""
	}
	return instance
}

// messages reads the history and marks what the main agent sampled.
func (s *run) messages(history format.Value) (demos int, err error) {
	if history.Kind() != jsonscan.Array {
		return 0, s.in.Want(history, 0, "/history", "a list of messages")
	}
	for i, x := range history.Items() {
		m, err := s.in.ChatMessage(x, i)
		if err != nil {
			return demos, err
		}
		for _, id := range x.Get("tool_call_ids").Items() {
			if m.ToolCallID == "" {
				m.ToolCallID = id.String()
			}
		}
		if x.Get("tool_call_ids").Len() <= 1 {
			format.Drop(&m.Extra, "tool_call_ids")
		}
		if thought, ok := x.Get("thought").Text(); ok && m.Content == "" && thought != "" {
			format.Keep(&m.Extra, "said_as_thought", x.Get("thought"))
			s.in.Note("thought_beside_content", rollout.At(i), "the content is empty and %d bytes stand under thought; they are kept aside, not rendered", len(thought))
		}
		format.Drop(&m.Extra, usedKeys...)
		s.r.Messages = append(s.r.Messages, m)
		s.history = append(s.history, x)
		s.agents = append(s.agents, x.Get("agent").String())
	}
	s.main = mainAgent(s.agents)
	for i := range s.r.Messages {
		m, x := &s.r.Messages[i], s.history[i]
		demo := x.Get("is_demo").True()
		demo = demo || x.Get("message_type").Is("demonstration")
		if demo {
			demos++
		}
		if m.Role != rollout.RoleAssistant {
			continue
		}
		switch {
		case demo:
			m.Sampled = rollout.SampledDemonstration
		case s.agents[i] != s.main:
			m.Sampled = rollout.SampledOtherAgent
		default:
			m.Sampled = rollout.SampledByPolicy
			s.r.Turns = append(s.r.Turns, rollout.Turn{Message: i, Step: len(s.r.Turns), Context: s.plainContext(i)})
		}
	}
	leaveClosing(s.in, s.r)
	return demos, nil
}

// leaveClosing leaves the last reply untrained if it is the harness's word on why it ended the
// run, such as "Exit due to context window".
func leaveClosing(in *format.File, r *rollout.Rollout) {
	if len(r.Turns) == 0 || !strings.Contains(r.ExitStatus, "exit_") {
		return
	}
	t := &r.Turns[len(r.Turns)-1]
	if text := strings.ToLower(r.Messages[t.Message].Content); strings.HasPrefix(text, "exit due to ") || strings.HasPrefix(text, "exiting due to ") {
		t.Incomplete = "SWE-agent wrote it in place of a reply, when it ended the run"
		in.Note("incomplete", rollout.At(t.Message), "%s: it is context and never trained", t.Incomplete)
	}
}

func mainAgent(agents []string) string {
	for _, name := range []string{"main", "primary"} {
		if slices.Contains(agents, name) {
			return name
		}
	}
	if len(agents) > 0 {
		return agents[0]
	}
	return ""
}

// plainContext returns the context of message i if nothing was shortened: the earlier
// messages of the main agent.
func (s *run) plainContext(i int) rollout.Context {
	list := s.messagesBefore(i)
	if len(list) == 0 {
		return rollout.Context{}
	}
	return rollout.Context{Parts: format.Shown(list, i)}
}

// messagesBefore returns the indices of the main agent's messages before i.
func (s *run) messagesBefore(i int) []int {
	out := make([]int, 0, i)
	for k := range i {
		if s.agents[k] == s.main {
			out = append(out, k)
		}
	}
	return out
}

// steps joins the recorded steps to the turns by the reply, never by index: either list can
// lack an entry of the other.
func (s *run) steps(list format.Value) {
	next, joined, contexts := 0, 0, 0
	var before format.Value // the messages recorded after the previous step
	for n, step := range list.Items() {
		earlier := before
		before = step.Get("messages")
		k := next
		for k < len(s.r.Turns) && !s.isReply(step, s.r.Turns[k].Message) {
			k++
		}
		if k == len(s.r.Turns) {
			s.in.Note("step_without_message", 0, "step %d of the trajectory has no reply in the history", n)
			continue
		}
		next = k + 1
		joined++
		t := &s.r.Turns[k]
		if query := s.query(step, earlier, n == 0, t.Message); query != nil {
			contexts++
			if t.Context = s.context(query.list, t.Message); query.partly && (t.Context.Unknown || !s.isPlain(t.Context, t.Message)) {
				t.Context = rollout.Context{Unknown: true}
				s.in.Note("context_lost", rollout.At(t.Message), "the messages of step %d are those after it, and those after the step before are not recorded: what the model saw is not known", n)
			}
		}
	}
	if missing := len(s.r.Turns) - joined; missing > 0 && list.Kind() == jsonscan.Array {
		s.in.Note("message_without_step", 0, "%d replies of the history have no step in the trajectory", missing)
	}
	if contexts < len(s.r.Turns) {
		s.in.Note("context_not_recorded", 0, "%d of %d steps do not record what the model saw; the plain history is taken, which history processors may have shortened", len(s.r.Turns)-contexts, len(s.r.Turns))
	}
}

// isReply reports whether a step is the reply in message i: by the ids of their tool calls
// if both have them, else by text, else by thought and action.
func (s *run) isReply(step format.Value, i int) bool {
	h := s.history[i]
	if a, b := firstCallID(step), firstCallID(h); a != "" && b != "" {
		return a == b
	}
	response := step.Get("response")
	if c := h.Get("content"); c.Kind() == jsonscan.String && response.Kind() == jsonscan.String && !response.Is("") {
		return same(c, response)
	}
	return same(h.Get("action"), step.Get("action")) && same(h.Get("thought"), step.Get("thought"))
}

func firstCallID(v format.Value) string {
	for _, c := range v.Get("tool_calls").Items() {
		return c.Get("id").String()
	}
	return ""
}

// same compares two values by their text.
func same(a, b format.Value) bool {
	return bytes.Equal(a.Raw(), b.Raw()) || a.Kind() == jsonscan.String && b.Kind() == jsonscan.String && a.String() == b.String()
}

// query is the recorded context of a step.
type query struct {
	list []format.Value
	// partly is true if the list was recorded after the step: a history processor may have
	// shortened more than the model saw shortened.
	partly bool
}

// query returns the messages that the model saw at a step, nil if not recorded: "query"
// unchanged, if present. "messages" of SWE-agent 1.0 are those after the step, with reply
// and observation, so the model saw the messages of the previous step; at the first step,
// those before the reply.
func (s *run) query(step, earlier format.Value, first bool, message int) *query {
	if q := step.Get("query"); q.Kind() == jsonscan.Array && q.Len() > 0 {
		return &query{list: format.Elements(q)}
	}
	own := format.Elements(step.Get("messages"))
	reply := -1
	for i, m := range own {
		if m.Get("role").Is("assistant") && s.isReply(m, message) && same(m.Get("content"), s.history[message].Get("content")) {
			reply = i
		}
	}
	switch {
	case reply < 0:
		return nil
	case earlier.Len() > 0:
		return &query{list: format.Elements(earlier)}
	}
	return &query{list: own[:reply], partly: !first}
}

// isPlain reports whether c is the plain context of message i.
func (s *run) isPlain(c rollout.Context, i int) bool {
	return slices.EqualFunc(c.Parts, s.plainContext(i).Parts, func(a, b rollout.ContextPart) bool { return a == b })
}

// context expresses the messages of a query as ranges of the history, with messages shown
// in place where they differ.
func (s *run) context(query []format.Value, message int) rollout.Context {
	have := s.messagesBefore(message)
	var parts []rollout.ContextPart
	k := 0 // next entry of have
	for qi, q := range query {
		at := -1
		if len(query) == len(have) {
			at = qi
		} else {
			for n := k; n < len(have); n++ {
				if s.equal(q, have[n]) {
					at = n
					break
				}
			}
		}
		switch {
		case at >= 0 && s.equal(q, have[at]):
			parts = format.AppendRange(parts, have[at])
			k = at + 1
		default:
			from, to := 0, 0
			switch {
			case at >= 0:
				from, to = have[at], have[at]+1
				k = at + 1
			case k > 0:
				from = have[k-1] + 1
				to = from
			}
			m, err := s.shownMessage(q, from, qi)
			if err != nil {
				return rollout.Context{Unknown: true}
			}
			parts = append(parts, rollout.ContextPart{From: from, To: to, Message: m})
		}
	}
	if len(parts) == 1 && parts[0].From == 0 && parts[0].To == message && parts[0].Message == nil {
		return rollout.Context{}
	}
	if len(parts) == 0 {
		return rollout.Context{Unknown: message > 0}
	}
	return rollout.Context{Parts: parts}
}

func (s *run) equal(q format.Value, k int) bool {
	h := s.history[k]
	return same(q.Get("role"), h.Get("role")) && (same(q.Get("content"), h.Get("content")) || s.sameText(q, k))
}

// sameText compares contents of different forms: a list with one text part equals the text.
func (s *run) sameText(q format.Value, k int) bool {
	c := q.Get("content")
	if c.Kind() == s.history[k].Get("content").Kind() && c.Kind() != jsonscan.Array {
		return false
	}
	var m rollout.Message
	return s.in.Content(&m, c, k) == nil && m.Content == s.r.Messages[k].Content && format.PlainParts(m.Parts)
}

func (s *run) shownMessage(q format.Value, from, i int) (*rollout.Message, error) {
	key := shownKey{from, string(q.Get("role").Raw()) + string(q.Get("content").Raw())}
	if m, ok := s.shown[key]; ok {
		return m, nil
	}
	m, err := s.in.ChatMessage(q, i)
	if err != nil {
		return nil, err
	}
	format.Drop(&m.Extra, append(usedKeys, "tool_call_ids")...)
	for _, id := range q.Get("tool_call_ids").Items() {
		if m.ToolCallID == "" {
			m.ToolCallID = id.String()
		}
	}
	s.shown[key] = &m
	return &m, nil
}
