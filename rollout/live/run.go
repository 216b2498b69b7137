package live

import (
	"bytes"
	"container/list"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live/internal/log"
	"github.com/turnpack/turnpack/rollout/live/internal/prefix"
	"github.com/turnpack/turnpack/rollout/live/internal/record"
	"github.com/turnpack/turnpack/rollout/live/internal/same"
	"github.com/turnpack/turnpack/rollout/live/internal/segment"
)

// run is a recorded rollout: a session without a parent and all its descendants. Its state follows from its
// records in order, whether they are new or read from a journal.
type run struct {
	rec   *Recorder
	id    string
	start *rollout.Rollout // as given at the beginning
	root  *Session

	mu       sync.Mutex
	sessions map[string]*Session
	running  int
	*content                  // nil = cold
	records  []segment.Place  // of all applied records
	size     int64            // of the records, in memory
	disk     int64            // of the records, in the journal
	last     *log.Ticket      // of the last record
	cold     Stats            // counts of the calls, while cold
	ending   *rollout.Rollout // nil = running
	settled  *log.Ticket      // of the End record
	digest   string           // of the ending
	first    int              // segment of the first record

	place   *list.Element // under cache.mu
	counted int64
}

func (g *run) where() rollout.Where { return rollout.Where{Rollout: g.id} }

// record writes a record and applies it. The caller holds the lock.
func (g *run) record(e *record.Entry, newWork bool) (*log.Ticket, error) {
	if e.Session != g.id {
		e.Run = g.id
	}
	t, err := g.rec.record(e, newWork, g.take)
	if t != nil {
		g.last = t
	}
	return t, err
}

// drop ends a call whose end the journal cannot record.
func (g *run) drop(c *call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.open {
		c.open = false
		g.running--
	}
	c.live, c.State, c.Why = nil, StateIncomplete, "the journal could not record the reply"
}

// apply applies a record. It fails only if the record contradicts earlier ones.
func (g *run) apply(e *record.Entry) error {
	s := g.sessions[e.Session]
	if s == nil {
		return rollout.Errorf(rollout.KindFormat, rollout.Where{Rollout: e.Session}, "a %s of a session that did not begin", e.Kind)
	}
	switch e.Kind {
	case record.Start: // applied by the recorder
		return nil
	case record.Intent:
		return g.intent(s, e)
	case record.End:
		s.ended = true
		if s.ID() == g.id {
			g.ending, g.digest = e.Body, e.Digest
		} else {
			s.digest = e.Digest
		}
		return nil
	}
	c := g.calls[e.Call]
	if c == nil {
		return rollout.Errorf(rollout.KindFormat, g.where(), "a %s of call %q, which did not begin", e.Kind, e.Call)
	}
	switch e.Kind {
	case record.Reply:
		return g.reply(c, e)
	case record.Mark:
		c.State, c.Why = State(e.State), e.Why
		return nil
	}
	return rollout.Errorf(rollout.KindFormat, g.where(), "a record of kind %q", e.Kind)
}

func (g *run) intent(s *Session, e *record.Entry) error {
	if len(e.Body.Turns) != 1 || g.calls[e.Call] != nil {
		return rollout.Errorf(rollout.KindFormat, g.where(), "call %q begins twice, or without a turn", e.Call)
	}
	t := &e.Body.Turns[0]
	c := &call{open: true, turn: -1, context: t.Context, otherTools: e.OtherTools, sampling: t.Sampling, CallInfo: CallInfo{
		ID: e.Call, Session: e.Session, Agent: t.Agent, Replaces: e.Replaces, Dialect: e.Dialect, Engine: e.Engine,
		State: StateRunning, Began: time.Unix(0, e.At), Settings: e.Settings,
	}}
	if old := g.calls[e.Replaces]; old != nil {
		c.Attempt = old.Attempt + 1
		if old.State != StateIncomplete {
			old.State, old.Why = StateSuperseded, "call "+c.ID+" replaced it"
		}
	}
	for i := range e.Body.Messages {
		g.addMessage(&e.Body.Messages[i])
	}
	if g.kwargs == nil {
		g.tools, g.kwargs = e.Body.Tools, &rollout.Rollout{TemplateKwargs: e.Body.TemplateKwargs}
	}
	if c.otherTools {
		g.note("tools_differ", "call %q was given other tools or chat-template variables than the first: what it saw cannot be rendered", c.ID)
	}
	g.calls[c.ID] = c
	g.order = append(g.order, c)
	g.running++
	return nil
}

func (g *run) reply(c *call, e *record.Entry) error {
	if !c.open || len(e.Body.Turns) != 1 {
		return rollout.Errorf(rollout.KindFormat, g.where(), "call %q ends twice, or without a turn", c.ID)
	}
	t := e.Body.Turns[0]
	c.open, c.State, c.Why = false, State(e.State), e.Why
	c.First, c.Took, c.Finish = time.Duration(e.First), time.Duration(e.Took), t.FinishReason
	if e.Usage != nil {
		c.Usage = Usage(*e.Usage)
	}
	if c.BlobBytes, c.from = len(e.Blob), e.From; e.From == (segment.Place{}) {
		c.blob = bytes.Clone(e.Blob)
	}
	c.live = nil
	g.running--
	t.Message, t.Step, t.Agent, t.Context, t.Sampling = -1, len(g.turns), c.Agent, c.context, c.sampling
	if c.otherTools { // what was sent is known, what the model saw is not
		t.Context = rollout.Context{Unknown: true}
	}
	if len(e.Body.Messages) > 0 {
		t.Message = g.addMessage(&e.Body.Messages[0])
		if parts := t.Context.Parts; len(parts) == 1 && parts[0] == (rollout.ContextPart{To: t.Message}) {
			t.Context.Parts = nil // the plain history
		}
	}
	if t.Output == nil && t.Message < 0 {
		return nil
	}
	if t.ID == "" || g.ids[t.ID] {
		t.ID = c.ID
	}
	g.ids[t.ID] = true
	if e.Keep > 0 {
		if e.Base >= len(g.turns) || e.Keep > g.lengths[e.Base] {
			return rollout.Errorf(rollout.KindFormat, g.where(), "the prompt of call %q keeps %d ids of turn %d", c.ID, e.Keep, e.Base)
		}
		t.Prompt.Base, t.Prompt.Keep = rollout.At(e.Base), e.Keep
	}
	t.Prompt.Add, t.Output, t.Logprobs = same.Exact(t.Prompt.Add), same.Exact(t.Output), same.Exact(t.Logprobs)
	c.turn, c.Kept, c.PromptTokens, c.OutputTokens, c.Version = len(g.turns), e.Keep, e.Keep+len(t.Prompt.Add), len(t.Output), t.Version
	g.setJoin(c, &t)
	return g.addTurn(c, t)
}

// setJoin sets how the prompt of turn t relates to its base turn.
func (g *run) setJoin(c *call, t *rollout.Turn) {
	base, ok := t.Prompt.Base.Get()
	if c.Join = joinFirst; !ok {
		return
	}
	b, missing := &g.turns[base], g.lengths[base]-t.Prompt.Keep
	saw := t.Prompt.Keep > g.owners[base].PromptTokens
	if m := b.Message; m >= 0 && !t.Context.Unknown {
		saw = t.Context.Parts == nil && (t.Message < 0 || m < t.Message)
		for _, p := range t.Context.Parts {
			saw = saw || p.From <= m && m < p.To
		}
	}
	c.Base = g.owners[base].ID
	switch {
	case missing == 0:
		c.Join = joinExtends
	case saw:
		c.Join, c.Drift = joinDrifts, missing
	default:
		c.Join = joinForks
	}
}

// addTurn adds the ids of a turn to the prefix tree after those it shares with earlier turns. If the prompt
// begins with the whole base turn, the base's call is marked as used - unless the ids of another turn already
// continue there: the reply to a retry may begin with the same ids, so the prompt does not show that the
// harness continued from the broken reply.
func (g *run) addTurn(c *call, t rollout.Turn) error {
	i := len(g.turns)
	g.turns, g.owners, g.lengths = append(g.turns, t), append(g.owners, c), append(g.lengths, c.PromptTokens+c.OutputTokens)
	g.ends = append(g.ends, prefix.Place{})
	at := prefix.Place{}
	if base, ok := t.Prompt.Base.Get(); ok && t.Prompt.Keep > 0 {
		if at = g.ends[base]; t.Prompt.Keep < g.lengths[base] || !g.prefixes.Has(at) {
			shared, err := (&rollout.Rollout{ID: g.id, Turns: g.turns}).PromptTokens(nil, i)
			if err != nil {
				return err
			}
			at, _ = g.prefixes.Match(prefix.Place{}, shared[:t.Prompt.Keep])
		}
		if t.Prompt.Keep >= g.lengths[base] && !g.prefixes.Inner(at) {
			g.owners[base].Used = true
		}
	}
	g.ends[i] = g.prefixes.Add(g.prefixes.Add(at, t.Prompt.Add, i), t.Output, i)
	return nil
}

// restoreSampled restores the sampled arguments in tool calls that a request repeats.
func (g *run) restoreSampled(messages []rollout.Message) []rollout.Message {
	out := slices.Clone(messages)
	for i := range out {
		m := &out[i]
		if m.Role != rollout.RoleAssistant || len(m.ToolCalls) == 0 {
			continue
		}
		for _, k := range g.places[same.DigestOf(m)] {
			if old := &g.messages[k]; old.Sampled == rollout.SampledByPolicy && len(old.ToolCalls) == len(m.ToolCalls) {
				m.ToolCalls = slices.Clone(m.ToolCalls)
				for n := range m.ToolCalls {
					m.ToolCalls[n].Arguments, m.ToolCalls[n].ArgumentsText = old.ToolCalls[n].Arguments, old.ToolCalls[n].ArgumentsText
				}
				break
			}
		}
	}
	return out
}

func (g *run) addMessage(m *rollout.Message) int {
	d, k := same.DigestOf(m), len(g.messages)
	g.places[d] = append(g.places[d], k)
	g.messages = append(g.messages, *m)
	for i := range m.ToolCalls {
		g.called[m.ToolCalls[i].ID] = true
	}
	if id := m.ToolCallID; m.Role == rollout.RoleTool && id != "" && !g.called[id] {
		g.note(rollout.NoteUnknownCall, "a tool result answers call %.100q, which no earlier message made", id)
	}
	return k
}

// note adds a note unless its code is already present.
func (g *run) note(code, format string, args ...any) {
	if !slices.ContainsFunc(g.notes, func(n rollout.Note) bool { return n.Code == code }) {
		g.notes = append(g.notes, rollout.Note{Code: code, Text: fmt.Sprintf(format, args...)})
	}
}

// matchMessages compares the messages of a request with the recorded ones. It returns the request as ranges of
// recorded messages, and the new messages, which will be appended to them. A repeated reply may have other
// reasoning than the recorded one.
func (g *run) matchMessages(messages []rollout.Message) (parts []rollout.ContextPart, added []rollout.Message) {
	used, fresh := map[int]bool{}, map[same.Digest][]int{}
	next, held := 0, len(g.messages)
	for i := range messages {
		m := &messages[i]
		d, k := same.DigestOf(m), -1
		places := append(slices.Clip(g.places[d]), fresh[d]...)
		if slices.Contains(places, next) && !used[next] {
			k = next
		} else if n := slices.IndexFunc(places, func(p int) bool { return !used[p] }); n >= 0 {
			k = places[n]
		}
		if k < 0 {
			k = held + len(added)
			fresh[d] = append(fresh[d], k)
			x := *m
			if x.Sampled = rollout.SampledUnknown; x.Role == rollout.RoleAssistant {
				x.Sampled = rollout.SampledPrefilled
			}
			added = append(added, x)
		}
		used[k], next = true, k+1
		n := len(parts)
		switch {
		case k < held && m.Reasoning != g.messages[k].Reasoning:
			shown := *m
			shown.Sampled = g.messages[k].Sampled
			parts = append(parts, rollout.ContextPart{From: k, To: k + 1, Message: &shown})
		case n > 0 && parts[n-1].Message == nil && parts[n-1].To == k:
			parts[n-1].To++
		default:
			parts = append(parts, rollout.ContextPart{From: k, To: k + 1})
		}
	}
	return parts, added
}

// otherTools reports whether a call has other tools or template variables than the rollout.
func (g *run) otherTools(r *Request) bool {
	return g.kwargs != nil && !(slices.EqualFunc(g.tools, r.Tools, same.JSON) && maps.EqualFunc(g.kwargs.TemplateKwargs, r.TemplateKwargs, same.JSON))
}

// snapshot returns the current rollout. Ids and messages are shared and read-only.
func (g *run) snapshot() *rollout.Rollout {
	r := *g.start
	if e := g.ending; e != nil {
		r.Outcome, r.Status, r.ExitStatus, r.Failure = e.Outcome, e.Status, e.ExitStatus, e.Failure
		if e.Group != "" {
			r.Group, r.Index = e.Group, e.Index
		}
		if len(e.Metadata) > 0 {
			r.Metadata = maps.Clone(r.Metadata)
			if r.Metadata == nil {
				r.Metadata = e.Metadata
			}
			maps.Copy(r.Metadata, e.Metadata)
		}
	}
	r.Messages, r.Tools, r.Notes = slices.Clip(g.messages), g.tools, slices.Clip(g.notes)
	if g.kwargs != nil {
		r.TemplateKwargs = g.kwargs.TemplateKwargs
	}
	r.Turns = append(make([]rollout.Turn, 0, len(g.turns)), g.turns...)
	for i := range r.Turns {
		r.Turns[i].Incomplete = g.owners[i].untrained()
	}
	return &r
}

// untrained returns why the reply is not trained, or "" if it is: trained are the replies of ok calls, and of
// aborted, superseded or unseen calls whose whole reply a later prompt continues.
func (c *call) untrained() string {
	switch {
	case c.State == StateIncomplete:
		return c.Why
	case c.State == StateOK || c.Used:
		return ""
	}
	return string(c.State) + ": " + c.Why
}
