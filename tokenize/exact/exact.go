package exact

import (
	"context"
	"crypto/rand"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/parse"
	"github.com/turnpack/turnpack/tokenize/prompt"
)

// Options configures New. The zero value is the default.
type Options struct {
	Prompt prompt.Options
	// Family selects the parser of the replies; "" is the family that the chat template writes.
	Family parse.Family
}

// Prompts implements proxy.Prompts for a model. It is safe for concurrent use.
type Prompts struct {
	model    *tokenize.Model
	family   parse.Family
	stops    []string
	sessions *prompt.Sessions
}

// New returns the Prompts of a model. It fails if no family can parse the model's replies.
func New(m *tokenize.Model, o Options) (*Prompts, error) {
	sessions, err := prompt.New(m, o.Prompt)
	if err != nil {
		return nil, err
	}
	x := &Prompts{model: m, family: o.Family, sessions: sessions}
	if x.family == "" {
		t := m.Template
		if m.ToolUse != nil {
			t = m.ToolUse.Template
		}
		if x.family = parse.Detect(t.Source()); x.family == "" {
			return nil, rollout.Errorf(rollout.KindTemplate, rollout.Where{Field: "family"}, "the chat template writes tool calls of no known family").WithFix("name the family, or leave prompts to the engine")
		}
	}
	if _, err := parse.New(x.family, parse.Options{}); err != nil {
		return nil, err
	}
	for _, id := range m.Stops() {
		text, err := m.Tokenizer.Decode([]rollout.TokenID{id})
		if err != nil {
			return nil, err
		}
		x.stops = append(x.stops, text)
	}
	return x, nil
}

// Prompt returns the ids of a prompt.
func (x *Prompts) Prompt(ctx context.Context, p proxy.Prompt) ([]rollout.TokenID, error) {
	if x.sessions == nil {
		return nil, zero.Value("exact.Prompts", "exact.New")
	}
	var record *rollout.Rollout
	if p.Session != nil {
		var err error
		if record, err = p.Session.Rollout(); err != nil {
			return nil, err
		}
	}
	made, err := x.sessions.Prompt(ctx, record, prompt.Request{Messages: p.Messages, Tools: p.Tools, TemplateKwargs: p.Kwargs})
	if err != nil {
		return nil, err
	}
	return made.IDs, nil
}

// Decode returns the text of ids.
func (x *Prompts) Decode(ids []rollout.TokenID) (string, error) {
	if x.model == nil {
		return "", zero.Value("exact.Prompts", "exact.New")
	}
	return x.model.Tokenizer.Decode(ids)
}

// Report returns the counts over all sessions, current and ended: the share of bridged turns, and why others were
// not.
func (x *Prompts) Report() prompt.Report {
	if x.sessions == nil {
		return prompt.Report{}
	}
	return x.sessions.Report()
}

// End frees what is held for a rollout that has ended, and returns its counts.
func (x *Prompts) End(ctx context.Context, r *rollout.Rollout) (prompt.Report, error) {
	if x.sessions == nil {
		return prompt.Report{}, zero.Value("exact.Prompts", "exact.New")
	}
	return x.sessions.End(ctx, r)
}

// ends is the number of last ids of a prompt that its last marks may take.
const ends = 64

// Parser returns a parser for the reply to a prompt.
func (x *Prompts) Parser(tools []rollout.Tool, ids []rollout.TokenID) (proxy.Parser, error) {
	if x.sessions == nil {
		return nil, zero.Value("exact.Prompts", "exact.New")
	}
	end, err := x.model.Tokenizer.Decode(ids[max(0, len(ids)-ends):])
	if err != nil {
		return nil, err
	}
	p, err := parse.New(x.family, parse.Options{Tools: tools, InReasoning: x.family.InReasoning(end), Stop: x.stops,
		ID: func(int, string) string { return "call_" + rand.Text() }}) // unique over all turns
	if err != nil {
		return nil, err
	}
	return &reply{p}, nil
}

// reply implements proxy.Parser.
type reply struct{ p *parse.Parser }

func (r *reply) Push(text string) engine.Choice { return choice(r.p.Push(text)) }

func (r *reply) Close() engine.Choice {
	events, _ := r.p.Close()
	return choice(events)
}

func choice(events []parse.Event) (c engine.Choice) {
	for _, e := range events {
		switch e.Kind {
		case parse.EventContent:
			c.Text += e.Text
		case parse.EventReasoning:
			c.Reasoning += e.Text
		case parse.EventCall:
			c.Calls = append(c.Calls, engine.CallDelta{Index: e.Call, ID: e.ID, Name: e.Name})
		case parse.EventArguments:
			c.Calls = append(c.Calls, engine.CallDelta{Index: e.Call, Arguments: e.Text})
		}
	}
	return c
}
