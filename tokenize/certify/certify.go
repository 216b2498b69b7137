package certify

import (
	"context"
	"errors"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/internal/completion"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// Property is a word for what Model looks at:
//
//   - append_only: each prompt of a growing conversation begins with the prompt and
//     completion before it. Merged mode makes one row then; where it fails, rows fork
//     and nothing is lost.
//   - generation_prompt: the generation prompt is how the template itself begins an
//     assistant turn.
//   - stop_token: a completion ends with a token that the model folder names as a stop
//     token. Where it fails, the model never learns to stop.
//   - reasoning_kept: the reasoning of earlier turns stays in the prompt.
//   - reasoning_written: the reasoning of the last turn is written at all.
//   - tool_calls: tool calls and their results are written.
//   - arguments: the template writes a call's arguments as a model does, from one form
//     at least. Detail says which one it is given, whatever was recorded, and what
//     becomes of the other.
//   - names: the name of a reply is written in its header or not at all, so that the
//     reply is found after it. Where it fails, Whole rows of named replies are
//     refused.
//   - tool_runs_apart: results that follow each other each have a header of their own.
//   - system_role: a system message is written as given.
//   - nothing_injected: without a system message the template adds none.
//   - no_clock: the text does not depend on the day.
//   - content_verbatim: white space around content is kept.
type Property string

const (
	appendOnly       Property = "append_only"
	generationPrompt Property = "generation_prompt"
	stopToken        Property = "stop_token"
	reasoningKept    Property = "reasoning_kept"
	reasoningWritten Property = "reasoning_written"
	toolCalls        Property = "tool_calls"
	arguments        Property = "arguments"
	names            Property = "names"
	toolRunsApart    Property = "tool_runs_apart"
	systemRole       Property = "system_role"
	nothingInjected  Property = "nothing_injected"
	noClock          Property = "no_clock"
	contentVerbatim  Property = "content_verbatim"
)

// Verdict of a finding.
type Verdict string

// The verdicts.
const (
	Holds         Verdict = "holds"
	Fails         Verdict = "fails"
	NotApplicable Verdict = "n/a" // the template refuses the witness
)

// Finding is one property of a template with the conversation that shows it.
type Finding struct {
	Property Property `json:"property"`
	Verdict  Verdict  `json:"verdict"`
	// Detail says what was seen.
	Detail string `json:"detail,omitempty"`
	// Advice says, where it fails, what that means for rows and what to do.
	Advice string `json:"advice,omitempty"`
	// Witness is the conversation that decided.
	Witness []rollout.Message `json:"witness,omitempty"`
}

// Certificate is what Certify found.
type Certificate struct {
	Tokenizer string    `json:"tokenizer"`
	Template  string    `json:"template"`
	Findings  []Finding `json:"findings"`
	// ToolUse is of the template that rollouts with tools take, nil unless the folder
	// has one of their own. Then the findings above are of rollouts without tools, none
	// where the folder has no template for those: their text is refused.
	ToolUse *Certificate `json:"tool_use,omitempty"`
}

// Verdict returns the verdict on a property, "" when it was not looked at.
func (c *Certificate) Verdict(p Property) Verdict {
	for _, f := range c.Findings {
		if f.Property == p {
			return f.Verdict
		}
	}
	return ""
}

// Model renders probe conversations with the model's template and says what
// holds. Each finding carries the conversation that decided it; a property
// that holds does so for the probes. Where rollouts with tools have a template of
// their own, it gets the probes with tools, and a certificate of its own. A model
// that has a template for neither is a KindTemplate error.
func Model(ctx context.Context, m *tokenize.Model) (*Certificate, error) {
	if m == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "model"}, "expected a model, found nil").WithFix("use tokenize.Load")
	}
	if _, err := m.TemplateFor(&rollout.Rollout{}); err != nil && m.ToolUse == nil {
		if e, ok := err.(*rollout.Error); ok {
			lacks := *e
			lacks.Kind, err = rollout.KindTemplate, &lacks
		}
		return nil, err
	}
	if _, err := tokenize.NewEncoder(m, tokenize.Options{}); err != nil { // a template that meets its limit
		return nil, err
	}
	if m.ToolUse == nil {
		return certify(ctx, m, toolsAsProbed)
	}
	out, err := &Certificate{Tokenizer: m.Tokenizer.Digest(), Findings: []Finding{}}, error(nil)
	if m.Template != nil {
		out, err = certify(ctx, m, toolsNever)
	}
	if err == nil {
		out.ToolUse, err = certify(ctx, m.ToolUse, toolsAlways)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func certify(ctx context.Context, m *tokenize.Model, tools toolsOf) (*Certificate, error) {
	c := &certifier{ctx: ctx, m: m, rule: ruleOf(m), tools: tools, out: &Certificate{Tokenizer: m.Tokenizer.Digest(), Template: digestOf(m)}}
	if _, err := c.plainReply(); err != nil && tools == toolsAsProbed {
		c.tools = toolsAlways // some templates write rollouts with tools only
	}
	for _, check := range []func() Finding{
		c.appendOnly, c.generationPrompt, c.stopToken, c.reasoningKept, c.reasoningWritten, c.toolCalls, c.arguments, c.names, c.toolRuns,
		c.systemRole, c.injected, c.clock, c.verbatim,
	} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f := check()
		if err := c.rule.Template.Limit(); err != nil {
			return nil, err // each probe that meets it would take as long
		}
		if f.Verdict == Fails {
			f.Advice = advice[f.Property]
		}
		c.out.Findings = append(c.out.Findings, f)
	}
	return c.out, nil
}

// ruleOf is the rule of m's template.
func ruleOf(m *tokenize.Model) *completion.Rule {
	s := completion.Source{Template: m.Template, Names: m.SpecialTokens, Added: m.Tokenizer.Vocab().Added(), Named: m.NamedStops, Listed: m.ListsStops}
	if m.ToolUse != nil {
		s.ToolUse = ruleOf(m.ToolUse)
	}
	return completion.New(s)
}

// digestOf is that of m's template alone.
func digestOf(m *tokenize.Model) string {
	alone := *m
	alone.ToolUse = nil
	return alone.TemplateDigest()
}

// toolsOf says which rollouts a template writes.
type toolsOf uint8

const (
	toolsAsProbed toolsOf = iota // all
	toolsNever                   // those without tools
	toolsAlways                  // those with tools
)

// errToolUse keeps probes with tools away from a template that never sees any.
var errToolUse = errors.New("rollouts with tools take the template tool_use")

type certifier struct {
	ctx   context.Context
	m     *tokenize.Model
	rule  *completion.Rule
	tools toolsOf
	out   *Certificate
}

// probe is a conversation with its renderer.
type probe struct {
	messages []rollout.Message
	render   *render.Renderer
	find     *completion.Finder
	turns    []rollout.Turn
}

func (c *certifier) probe(tools bool, messages ...rollout.Message) (*probe, error) {
	if tools && c.tools == toolsNever {
		return nil, errToolUse
	}
	r := c.rollout(messages...)
	if tools {
		r.Tools = render.ProbeTools
	}
	x, err := render.New(c.ctx, c.rule.Template, r, render.Options{Probe: true})
	if err != nil {
		return nil, err
	}
	return &probe{messages: messages, render: x, find: &completion.Finder{Rule: c.rule, Render: x}, turns: rollout.TurnsOf(r)}, nil
}

// document is what the template writes of a whole conversation.
func (c *certifier) document(tools bool, messages ...rollout.Message) (*probe, string, error) {
	p, err := c.probe(tools, messages...)
	if err != nil {
		return nil, "", err
	}
	doc, err := p.render.Run(p.render.All, p.render.Index, false)
	return p, doc.Text, err
}

// rollout has tools only where all have some.
func (c *certifier) rollout(messages ...rollout.Message) *rollout.Rollout {
	r := &rollout.Rollout{ID: "probe", Messages: messages}
	if c.tools == toolsAlways {
		r.Tools = render.ProbeTools
	}
	return r
}

func (p *probe) finding(prop Property, v Verdict, detail string) Finding {
	f := Finding{Property: prop, Verdict: v, Detail: detail}
	if p != nil {
		f.Witness = p.messages
	}
	return f
}

func refused(prop Property, err error) Finding {
	if errors.Is(err, errToolUse) {
		return Finding{Property: prop, Verdict: NotApplicable, Detail: err.Error()}
	}
	return Finding{Property: prop, Verdict: NotApplicable, Detail: "the template refuses the probe: " + err.Error()}
}
