package certify

import (
	"context"
	"errors"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/internal/completion"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// Property names what Model examines:
//
//   - append_only: each prompt of a growing conversation begins with the previous prompt and
//     completion. Merged mode then makes one row; if it fails, rows fork and nothing is lost.
//   - generation_prompt: the generation prompt is how the template itself begins an assistant
//     turn.
//   - stop_token: a completion ends with a token that the model folder names as a stop token. If
//     it fails, the model never learns to stop.
//   - reasoning_kept: the reasoning of earlier turns stays in the prompt.
//   - reasoning_written: the reasoning of the last turn is written at all.
//   - tool_calls: tool calls and their results are written.
//   - arguments: the template writes a call's arguments as a model does, from at least one form.
//     Detail says which form it is given, whatever was recorded, and what happens to the other.
//   - names: the name of a reply is written in its header or not at all, so that the reply is
//     found after it. If it fails, Whole rows of named replies are rejected.
//   - tool_runs_apart: consecutive tool results each have a header of their own.
//   - system_role: a system message is written as given.
//   - nothing_injected: without a system message the template adds none.
//   - no_clock: the text does not depend on the date.
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

// Verdict is the result of a finding.
type Verdict string

// The verdicts.
const (
	Holds         Verdict = "holds"
	Fails         Verdict = "fails"
	NotApplicable Verdict = "n/a" // the template rejects the probe
)

// Finding is one property of a template, with the conversation that shows it.
type Finding struct {
	Property Property `json:"property"`
	Verdict  Verdict  `json:"verdict"`
	// Detail says what was seen.
	Detail string `json:"detail,omitempty"`
	// Advice says, if the property fails, what that means for rows and what to do.
	Advice string `json:"advice,omitempty"`
	// Witness is the conversation that decided the verdict.
	Witness []rollout.Message `json:"witness,omitempty"`
}

// Certificate holds what Model found.
type Certificate struct {
	Tokenizer string    `json:"tokenizer"`
	Template  string    `json:"template"`
	Findings  []Finding `json:"findings"`
	// ToolUse is the certificate of the template for rollouts with tools, nil if the folder has no
	// separate one. If it is set, Findings are about rollouts without tools, and are empty if the
	// folder has no template for those, whose text is then rejected.
	ToolUse *Certificate `json:"tool_use,omitempty"`
}

// Verdict returns the verdict on a property, "" if it was not examined.
func (c *Certificate) Verdict(p Property) Verdict {
	for _, f := range c.Findings {
		if f.Property == p {
			return f.Verdict
		}
	}
	return ""
}

// Model renders probe conversations with the model's template and returns the findings. A property
// that holds does so for the probes. If rollouts with tools have a separate template, that template
// gets the probes with tools and a certificate of its own. A model without any template is a
// KindTemplate error.
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
	if _, err := tokenize.NewEncoder(m, tokenize.Options{}); err != nil { // rejects a template that hits its limit
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
		c.tools = toolsAlways // some templates render only rollouts with tools
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
			return nil, err // every probe that hits the limit would take as long
		}
		if f.Verdict == Fails {
			f.Advice = advice[f.Property]
		}
		c.out.Findings = append(c.out.Findings, f)
	}
	return c.out, nil
}

// ruleOf returns the completion rule of m's template.
func ruleOf(m *tokenize.Model) *completion.Rule {
	s := completion.Source{Template: m.Template, Names: m.SpecialTokens, Added: m.Tokenizer.Vocab().Added(), Named: m.NamedStops, Listed: m.ListsStops}
	if m.ToolUse != nil {
		s.ToolUse = ruleOf(m.ToolUse)
	}
	return completion.New(s)
}

// digestOf returns the digest of m's template alone.
func digestOf(m *tokenize.Model) string {
	alone := *m
	alone.ToolUse = nil
	return alone.TemplateDigest()
}

// toolsOf says which rollouts a template renders.
type toolsOf uint8

const (
	toolsAsProbed toolsOf = iota // all
	toolsNever                   // those without tools
	toolsAlways                  // those with tools
)

// errToolUse is returned for probes with tools of a template that is used without tools only.
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

// document renders a whole conversation.
func (c *certifier) document(tools bool, messages ...rollout.Message) (*probe, string, error) {
	p, err := c.probe(tools, messages...)
	if err != nil {
		return nil, "", err
	}
	doc, err := p.render.Run(p.render.All, p.render.Index, false)
	return p, doc.Text, err
}

// rollout returns a rollout of messages, with tools if all rollouts of the template have some.
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
