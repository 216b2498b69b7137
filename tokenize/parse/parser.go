package parse

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/parse/internal/literal"
)

// Options configures a parser. The zero value is right for a reply whose prompt ended with the
// template's generation prompt and opened no reasoning.
type Options struct {
	// Tools are the tools offered to the model. Their schemas give types to arguments of families
	// that write them as text, and a call of another tool is a fault.
	Tools []rollout.Tool
	// InReasoning says that the prompt already opened the reasoning ([Family.InReasoning]).
	InReasoning bool
	// KeepReasoning leaves the marks of reasoning in their place, as text.
	KeepReasoning bool
	// Stream returns the arguments of a call as they are sampled. A call that turns out to be
	// malformed then stays a call, with its fault. Without Stream a call is returned when it is
	// complete.
	Stream bool
	// Stop are texts of stop tokens; one at the very end is not part of the reply.
	Stop []string
	// ID returns the id of a call that the family writes without one; nil = "call_0", "call_1", …
	ID func(index int, name string) string
}

// validate returns every fault of o, joined.
func (o Options) validate() error {
	var faults []error
	for i, s := range o.Stop {
		if s == "" {
			faults = append(faults, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options.Stop"}, "stop text %d is empty, expected the text of a stop token", i))
		}
	}
	return errors.Join(faults...)
}

// EventKind says what an [Event] adds to.
type EventKind uint8

// The kinds.
const (
	EventReasoning EventKind = iota // Text continues the reasoning
	EventContent                    // Text continues the content
	EventCall                       // a call begins: Call, ID, Name
	EventArguments                  // Text continues the arguments of Call
	EventCallEnd                    // Call is complete
)

// Event is one delta of a reply.
type Event struct {
	Kind     EventKind
	Text     string
	Call     int // index of the call
	ID, Name string
}

// FaultKind says what is wrong with a reply.
type FaultKind string

// The kinds. The first two mark the reply's tool call as invalid.
const (
	faultCall     FaultKind = "malformed_call"     // a malformed call, kept as text
	faultTool     FaultKind = "unknown_tool"       // a call of a tool that was not offered
	faultThinking FaultKind = "malformed_thinking" // unclosed reasoning, or an end mark without reasoning
	faultOrder    FaultKind = "text_after_call"    // text after a call, kept as content; templates write none there
)

// Fault describes one thing wrong with a reply.
type Fault struct {
	Kind   FaultKind
	At     int // byte of the sampled text at which it begins
	Call   int // index of the call, −1 for other faults
	Detail string
}

// Reply is a complete reply: an assistant message and its faults.
type Reply struct {
	Message rollout.Message
	Faults  []Fault
}

// Flagged returns the message with the marks is_invalid_tool_call and has_malformed_thinking set
// for its faults, as package reward/detect reads them.
func (r Reply) Flagged() rollout.Message {
	m := r.Message
	m.Extra = maps.Clone(m.Extra)
	mark := func(key string, on bool) {
		if on {
			if m.Extra == nil {
				m.Extra = map[string]json.RawMessage{}
			}
			m.Extra[key] = json.RawMessage("true")
		}
	}
	mark("is_invalid_tool_call", has(r.Faults, faultCall) || has(r.Faults, faultTool))
	mark("has_malformed_thinking", has(r.Faults, faultThinking))
	return m
}

// Parser parses one reply as it is sampled. It is not safe for concurrent use. The zero value
// parses the family "plain".
type Parser struct {
	opts   Options
	format *format
	schema literal.Schemas

	tail  string // pushed and held back: a partial character or a possible stop text
	in    string // released by tail, not yet consumed
	at    int    // bytes consumed
	state state

	inReasoning, thought bool
	trying               bool // a call is being read
	tryAt                int
	tried                strings.Builder // text of the call so far
	between              bool            // after a call of a block, before the next
	call                 call
	out                  output
	closed               bool

	ids     []rollout.TokenID // of PushIDs: ids already decoded, for context, then those held back
	decoded int               // how many of ids are already decoded
	whole   string            // the text of the ids held back

	// State of the grammars.
	tagged tagged
	param  parameter
	python literal.PythonScan
	head   string
	from   int  // offset in tried at which a call begins
	quiet  bool // text that begins like a call may not be one
	open   bool // unclosed reasoning (harmony)
	reply  Reply
}

// state consumes a prefix of in and returns its length and the next state, nil = the same. If it
// returns 0 and nil it waits for more text. end says that no more comes.
type state func(p *Parser, in string, end bool) (int, state)

// New returns a parser of one reply of family f.
func New(f Family, o Options) (*Parser, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if formats[f] == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "family"}, "no parser for the family %q; name one of parse.Families, or give parse.Func a function", f)
	}
	return newParser(formats[f], o), nil
}

// Func returns a parser that calls a function on the complete reply, at the end; each part of its
// message is one delta.
func Func(read func(text string) Reply, o Options) (*Parser, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if read == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "read"}, "expected a function that reads a reply, found nil")
	}
	return newParser(&format{whole: read, first: (*Parser).gather}, o), nil
}

func newParser(f *format, o Options) *Parser {
	p := &Parser{opts: o, format: f, schema: literal.NewSchemas(o.Tools)}
	p.start()
	return p
}

func (p *Parser) start() {
	if p.state != nil {
		return
	}
	if p.format == nil {
		p.format = formats[plain]
	}
	f, o := p.format, p.opts
	p.reply.Message.Role = rollout.RoleAssistant
	p.inReasoning = o.InReasoning && !o.KeepReasoning && f.think[1] != ""
	switch {
	case f.first != nil:
		p.state = f.first
	case p.inReasoning:
		p.state = (*Parser).reasoning
	default:
		p.state = (*Parser).begin
	}
	p.thought = p.inReasoning
}

// Push parses the next sampled text, cut anywhere, and returns what it adds to the reply. The
// concatenated deltas do not depend on the cuts.
func (p *Parser) Push(text string) []Event {
	if p.closed || text == "" {
		return nil
	}
	p.start()
	for len(text) > 0 { // in pieces, since states search all of in
		n := min(len(text), maxPiece)
		p.tail += text[:n]
		text = text[n:]
		keep := heldStop(p.tail, p.opts.Stop)
		if keep == 0 {
			keep = partOfRune(p.tail)
		}
		p.in += p.tail[:len(p.tail)-keep]
		p.tail = p.tail[len(p.tail)-keep:]
		p.run(false)
	}
	return p.out.take()
}

// PushIDs is Push for token ids, cut anywhere; decode returns the text of ids, as a tokenizer's
// Decode does. Ids that end within a character wait for the next ones. An error is decode's; the
// ids are not parsed again.
func (p *Parser) PushIDs(ids []rollout.TokenID, decode func([]rollout.TokenID) (string, error)) ([]Event, error) {
	if decode == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "decode"}, "no function that gives the text of ids, as Decode of a tokenizer does")
	}
	var events []Event
	for _, id := range ids {
		p.ids = append(p.ids, id)
		before, err := decode(p.ids[:p.decoded])
		if err != nil {
			return events, err
		}
		text, err := decode(p.ids)
		if err != nil {
			return events, err
		}
		p.whole = strings.TrimPrefix(text, before)
		if strings.HasSuffix(p.whole, "\uFFFD") && len(p.ids)-p.decoded < maxPieces {
			continue
		}
		text, p.whole = p.whole, ""
		p.ids = append(p.ids[:0], p.ids[p.decoded:]...) // the beginning of a text can depend on the ids before
		p.decoded = len(p.ids)
		for _, e := range p.Push(text) {
			events = appendEvent(events, e)
		}
	}
	return events, nil
}

// maxPiece is how many bytes are parsed at a time.
const maxPiece = 512

// maxPieces is how many tokens one character can take.
const maxPieces = 8

// Close ends the reply. It returns the last deltas and the reply; a second call returns no deltas
// and the same reply.
func (p *Parser) Close() ([]Event, Reply) {
	if p.closed {
		return nil, p.reply
	}
	p.start()
	p.tail += p.whole // ids that end within a character
	p.whole, p.closed = "", true
	if !slices.Contains(p.opts.Stop, p.tail) {
		p.in += p.tail
	}
	p.tail = ""
	p.run(true)
	for p.trying {
		p.cut()
		p.run(true)
	}
	if p.inReasoning || p.open {
		p.out.drop()
		p.out.trim = true
		p.fault(faultThinking, p.at, -1, "the reasoning has no end")
	}
	p.out.end(&p.reply)
	return p.out.take(), p.reply
}

func (p *Parser) run(end bool) {
	in := p.in
	for {
		n, next := p.state(p, in, end)
		if p.trying {
			p.tried.WriteString(in[:n])
		}
		in, p.at = in[n:], p.at+n
		if next != nil {
			p.state = next
		} else if n == 0 {
			break
		}
	}
	p.in = strings.Clone(in)
}

func (p *Parser) fault(kind FaultKind, at, call int, format string, args ...any) {
	p.reply.Faults = append(p.reply.Faults, Fault{kind, at, call, fmt.Sprintf(format, args...)})
}

// gather collects the text for the function of Func.
func (p *Parser) gather(in string, end bool) (int, state) {
	p.tried.WriteString(in)
	if end && p.format.whole != nil {
		reply := p.format.whole(p.tried.String())
		p.out.whole(&reply)
		p.reply = reply
		p.format = &format{}
	}
	return len(in), nil
}

func has(faults []Fault, k FaultKind) bool {
	return slices.ContainsFunc(faults, func(f Fault) bool { return f.Kind == k })
}
