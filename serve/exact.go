package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/parse"
	"github.com/turnpack/turnpack/tokenize/prompt"
)

// exact makes prompts of what was sampled, and reads replies.
type exact struct {
	model   *tokenize.Model
	family  parse.Family
	prompts *prompt.Sessions

	mu     sync.Mutex
	report prompt.Report
}

func newExact(m *tokenize.Model, o prompt.Options) (*exact, error) {
	if m == nil || m.Template == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options.Exact"}, "exact prompts need a model with a chat template")
	}
	family := parse.Detect(m.Template.Source())
	if family == parse.Unknown {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options.Exact"}, "the template writes calls as no known family does").WithFix("leave it out: the engine makes the prompts then")
	}
	w, err := prompt.New(m, o)
	if err != nil {
		return nil, err
	}
	return &exact{model: m, family: family, prompts: w.Sessions()}, nil
}

// Prompt implements proxy.Prompter.
func (x *exact) Prompt(ctx context.Context, p proxy.Prompt) ([]rollout.TokenID, error) {
	var r *rollout.Rollout
	if p.Session != nil {
		var err error
		if r, err = p.Session.Rollout(); err != nil {
			return nil, err
		}
	}
	made, err := x.prompts.Prompt(ctx, r, prompt.Request{Messages: p.Messages, Tools: p.Tools, TemplateKwargs: p.Kwargs})
	if err != nil {
		return nil, err
	}
	return made.IDs, nil
}

// tail is how many ids of a prompt tell whether it opened the reasoning.
const tail = 64

func (x *exact) parser(tools []rollout.Tool, ids []rollout.TokenID) (proxy.Parser, error) {
	text, err := x.model.Tokenizer.Decode(ids[max(0, len(ids)-tail):])
	if err != nil {
		return nil, err
	}
	o := parse.Options{Tools: tools, InReasoning: x.family.InReasoning(text), ID: func(int, string) string { return "call_" + rand.Text() }}
	for _, id := range x.model.Stops() {
		stop, err := x.model.Tokenizer.Decode([]rollout.TokenID{id})
		if err != nil {
			return nil, err
		}
		o.Stop = append(o.Stop, stop)
	}
	p, err := parse.New(x.family, o)
	return reader{p}, err
}

// reader gives the deltas of a reply in the proxy's words.
type reader struct{ p *parse.Parser }

// Push implements proxy.Parser.
func (r reader) Push(text string) engine.Choice { return choice(r.p.Push(text)) }

// Close implements proxy.Parser.
func (r reader) Close() engine.Choice {
	events, _ := r.p.Close()
	return choice(events)
}

func choice(events []parse.Event) (c engine.Choice) {
	for _, e := range events {
		switch e.Kind {
		case parse.EventReasoning:
			c.Reasoning += e.Text
		case parse.EventContent:
			c.Text += e.Text
		case parse.EventCall:
			c.Calls = append(c.Calls, engine.CallDelta{Index: e.Call, ID: e.ID, Name: e.Name})
		case parse.EventArguments:
			c.Calls = append(c.Calls, engine.CallDelta{Index: e.Call, Arguments: e.Text})
		}
	}
	return c
}

// end counts the prompts of rollouts that are delivered.
func (x *exact) end(ctx context.Context, group []*rollout.Rollout) error {
	var errs []error
	for _, r := range group {
		report, err := x.prompts.End(ctx, r)
		errs = append(errs, err)
		x.mu.Lock()
		x.report.Add(report)
		x.mu.Unlock()
	}
	return errors.Join(errs...)
}
