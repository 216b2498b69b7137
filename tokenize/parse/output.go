package parse

import (
	"fmt"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/parse/internal/literal"
)

// output collects the reply and its deltas. White space at an edge is held back until it is known
// whether text follows.
type output struct {
	events             []Event
	reasoning, content strings.Builder
	held               strings.Builder // white space at the end of the reasoning or content so far
	arguments          strings.Builder // of the current call
	trim               bool            // drop white space before the content
	calls              int
	after              bool
	list               []rollout.ToolCall
}

func (o *output) take() []Event {
	e := o.events
	o.events = nil
	return e
}

func (o *output) emit(e Event) { o.events = appendEvent(o.events, e) }

// appendEvent appends e, joined to the last event if that is short and of the same kind.
func appendEvent(to []Event, e Event) []Event {
	if k := len(to) - 1; k >= 0 && e.Text != "" && to[k].Kind == e.Kind && to[k].Call == e.Call && len(to[k].Text) < maxPiece {
		to[k].Text += e.Text
		return to
	}
	return append(to, e)
}

func (o *output) add(to *strings.Builder, kind EventKind, s string, trim bool) {
	if trim && to.Len() == 0 && o.held.Len() == 0 {
		s = trimLeft(s)
	}
	body := trimRight(s)
	if body == "" {
		o.held.WriteString(s)
		return
	}
	text := o.held.String() + body
	o.held.Reset()
	o.held.WriteString(s[len(body):])
	to.WriteString(text)
	o.emit(Event{Kind: kind, Text: text})
}

func (o *output) addReasoning(s string) { o.add(&o.reasoning, EventReasoning, s, true) }
func (o *output) addContent(s string)   { o.add(&o.content, EventContent, s, o.trim || o.calls > 0) }

func (o *output) drop() { o.held.Reset() }

func (o *output) endReasoning() {
	o.drop()
	o.trim = true
}

func (o *output) beginCall(c rollout.ToolCall) {
	o.drop()
	o.list = append(o.list, c)
	o.emit(Event{Kind: EventCall, Call: o.calls, ID: c.ID, Name: c.Name})
	o.calls++
}

func (o *output) addArguments(s string) {
	if s != "" {
		o.arguments.WriteString(s)
		o.emit(Event{Kind: EventArguments, Call: o.calls - 1, Text: s})
	}
}

func (o *output) endCall() {
	o.list[o.calls-1].Arguments = o.arguments.String()
	o.arguments.Reset()
	o.emit(Event{Kind: EventCallEnd, Call: o.calls - 1})
}

// end completes the reply.
func (o *output) end(r *Reply) {
	if o.held.Len() > 0 && o.calls == 0 && (o.content.Len() > 0 || !o.trim) {
		o.content.WriteString(o.held.String())
		o.emit(Event{Kind: EventContent, Text: o.held.String()})
	}
	m := &r.Message
	if m.Content != "" || m.Reasoning != "" || m.ToolCalls != nil {
		return // the function of Func returned all of it
	}
	m.Reasoning, m.Content, m.ToolCalls = o.reasoning.String(), o.content.String(), o.list
	m.NoContent = m.Content == "" && o.calls > 0
}

// whole emits the deltas of a reply that was parsed at once.
func (o *output) whole(r *Reply) {
	m := &r.Message
	if m.Role == "" {
		m.Role = rollout.RoleAssistant
	}
	if m.Reasoning != "" {
		o.emit(Event{Kind: EventReasoning, Text: m.Reasoning})
	}
	if m.Content != "" {
		o.emit(Event{Kind: EventContent, Text: m.Content})
	}
	for i, c := range m.ToolCalls {
		o.emit(Event{Kind: EventCall, Call: i, ID: c.ID, Name: c.Name})
		if c.Arguments != "" {
			o.emit(Event{Kind: EventArguments, Call: i, Text: c.Arguments})
		}
		o.emit(Event{Kind: EventCallEnd, Call: i})
	}
}

// call is the current call.
type call struct {
	id, name  string
	arguments strings.Builder // not yet emitted
	begun     bool            // it was emitted (Options.Stream)
	whole     bool            // complete, except perhaps for an end mark
	params    int             // parameters parsed so far, if they are written separately
}

// nameCall sets the id and name of the current call.
func (p *Parser) nameCall(id, name string) {
	p.call.id, p.call.name = id, name
	if p.opts.Stream {
		p.beginCall()
	}
}

func (p *Parser) beginCall() {
	c := &p.call
	c.begun = true
	if p.inReasoning { // a call ends reasoning that has no end mark
		p.inReasoning = false
		p.out.endReasoning()
	}
	index := p.out.calls
	id := c.id
	if id == "" {
		if p.opts.ID != nil {
			id = p.opts.ID(index, c.name)
		} else {
			id = fmt.Sprintf("call_%d", index)
		}
	}
	if !p.schema.Knows(c.name) {
		p.fault(faultTool, p.tryAt, index, "the tool %q was not offered", c.name)
	}
	p.out.beginCall(rollout.ToolCall{ID: id, Name: c.name, ArgumentsText: true})
	p.out.addArguments(c.arguments.String())
	c.arguments.Reset()
}

// addArguments adds to the arguments of the current call.
func (p *Parser) addArguments(s string) {
	if p.call.begun {
		p.out.addArguments(s)
		return
	}
	p.call.arguments.WriteString(s)
}

func (p *Parser) endCall() {
	p.out.endCall()
	p.call = call{}
}

// finish emits the current call, which is complete. Parsing continues with what may follow it.
func (p *Parser) finish() {
	if !p.call.begun {
		p.beginCall()
	}
	p.endCall()
	p.tried.Reset()
	p.tryAt, p.between = p.at, true
}

func trimLeft(s string) string  { return strings.TrimLeft(s, literal.Space) }
func trimRight(s string) string { return strings.TrimRight(s, literal.Space) }
