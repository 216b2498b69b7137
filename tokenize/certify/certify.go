package certify

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/internal/completion"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// Property is a stable name of what Certify looks at.
type Property string

// The properties.
const (
	// PropAppendOnly: each prompt of a growing conversation begins with the prompt
	// and completion before it. Merged mode makes one row then; where it fails, rows
	// fork and nothing is lost.
	AppendOnly Property = "append_only"
	// PropGenerationPrompt: the generation prompt is how the template itself begins
	// an assistant turn.
	GenerationPrompt Property = "generation_prompt"
	// PropStopToken: a completion ends with a token that the model folder names as
	// a stop token. Where it fails, the model never learns to stop.
	StopToken Property = "stop_token"
	// PropReasoningKept: the reasoning of earlier turns stays in the prompt.
	ReasoningKept Property = "reasoning_kept"
	// PropReasoningWritten: the reasoning of the last turn is written at all.
	ReasoningWritten Property = "reasoning_written"
	// PropToolCalls: tool calls and their results are written.
	ToolCalls Property = "tool_calls"
	// PropArguments: the template writes a call's arguments as a model does, from one
	// form at least. Detail says which one it is given, whatever was recorded, and what
	// becomes of the other.
	Arguments Property = "arguments"
	// PropNames: the name of a reply is written in its header or not at all, so that the
	// reply is found after it. Where it fails, Whole rows of named replies are refused.
	Names Property = "names"
	// PropToolRunsApart: results that follow each other each have a header of their
	// own.
	ToolRunsApart Property = "tool_runs_apart"
	// PropSystemRole: a system message is written as given.
	SystemRole Property = "system_role"
	// PropNothingInjected: without a system message the template adds none.
	NothingInjected Property = "nothing_injected"
	// PropNoClock: the text does not depend on the day.
	NoClock Property = "no_clock"
	// PropContentVerbatim: white space around content is kept.
	ContentVerbatim Property = "content_verbatim"
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

func (c *certifier) appendOnly() Finding {
	worst := Finding{Property: AppendOnly, Verdict: NotApplicable}
	for _, k := range []struct {
		what     string
		tools    bool
		messages []rollout.Message
	}{
		{"plain replies", false, []rollout.Message{render.User("one"), render.Assistant("first"), render.User("two"), render.Assistant("second"), render.User("three"), render.Assistant("third")}},
		{"tool calls", true, []rollout.Message{render.User("one"), render.Calling("", "c00000001"), render.Answering("c00000001", "ok"), render.Calling("", "c00000002"), render.Answering("c00000002", "ok"), render.Assistant("done")}},
		{"reasoning with tool calls", true, []rollout.Message{render.User("one"), render.Calling("I look.", "c00000001"), render.Answering("c00000001", "ok"), render.Thinking("I end.", "done"), render.User("two"), render.Assistant("bye")}},
		{"reasoning between user messages", false, []rollout.Message{render.User("one"), render.Thinking("I think.", "first"), render.User("two"), render.Thinking("Again.", "second")}},
	} {
		p, err := c.probe(k.tools, k.messages...)
		if err != nil {
			continue
		}
		at, err := c.breaks(p)
		if err != nil {
			continue
		}
		if at != "" {
			return p.finding(AppendOnly, Fails, k.what+": "+at)
		}
		worst = p.finding(AppendOnly, Holds, "")
	}
	return worst
}

// breaks returns where a later prompt does not begin with the prompt and
// completion before, "" if nowhere.
func (c *certifier) breaks(p *probe) (string, error) {
	before := ""
	for i := range p.turns {
		t := &p.turns[i]
		prompt, err := p.render.Prompt(t)
		if err != nil {
			return "", err
		}
		if !strings.HasPrefix(prompt.Text, before) {
			at := differ(prompt.Text, before)
			return "the prompt of turn " + strconv.Itoa(i) + " says " + excerpt(prompt.Text, at) + " where it said " + excerpt(before, at), nil
		}
		with, turn, err := p.find.Answered(t, nil, &prompt)
		if err != nil {
			return "", err
		}
		reply, f := c.rule.SampledText(&p.messages[t.Message], int32(t.Message), &prompt, &with, turn, false)
		before = strings.Clone(prompt.Text) + reply.Text + f.Stop
	}
	return "", nil
}

// differ returns where two texts part, at the beginning of the marker if inside
// one.
func differ(a, b string) int {
	at := render.CommonText(a, b)
	if i := strings.LastIndexAny(a[:at], "<["); i >= 0 && at-i < excerptSize/2 && !strings.ContainsAny(a[i:at], ">]\n") {
		return i
	}
	return at
}

// excerptSize is how many bytes of a text an excerpt shows.
const excerptSize = 24

// excerpt quotes a few characters of s from byte at on.
func excerpt(s string, at int) string {
	return strconv.Quote(strings.ToValidUTF8(s[at:min(len(s), at+excerptSize)], ""))
}

// plainReply is a question with its answer.
type plainReply struct {
	*probe
	prompt, with render.Rendering
	turn         *completion.Span
}

func (c *certifier) plainReply() (out plainReply, err error) {
	if out.probe, err = c.probe(false, render.User("one"), render.Assistant("first")); err != nil {
		return out, err
	}
	if out.prompt, err = out.render.Prompt(&out.turns[0]); err != nil {
		return out, err
	}
	out.with, out.turn, err = out.find.Answered(&out.turns[0], nil, &out.prompt)
	return out, err
}

func (c *certifier) generationPrompt() Finding {
	p, err := c.plainReply()
	if err != nil {
		return refused(GenerationPrompt, err)
	}
	bare, err := p.render.Run(p.render.All.Prefix(1), p.render.Index[:1], false)
	if err != nil {
		return refused(GenerationPrompt, err)
	}
	switch {
	case p.prompt.Text == bare.Text:
		return p.finding(GenerationPrompt, Fails, "the template writes no generation prompt")
	case strings.HasPrefix(p.with.Text, p.prompt.Text):
		return p.finding(GenerationPrompt, Holds, "")
	}
	at := differ(p.with.Text, p.prompt.Text)
	if opener := strings.LastIndexAny(p.prompt.Text, "<["); opener >= 0 && completion.ThinkTag.MatchString(p.prompt.Text[min(opener, at):]) {
		return p.finding(GenerationPrompt, Holds, "it opens reasoning that a reply without any does not have")
	}
	return p.finding(GenerationPrompt, Fails, "the prompt says "+excerpt(p.prompt.Text, at)+" where the turn says "+excerpt(p.with.Text, at))
}

func (c *certifier) stopToken() Finding {
	p, err := c.plainReply()
	if err != nil {
		return refused(StopToken, err)
	}
	_, f := c.rule.SampledText(&p.messages[1], 1, &p.prompt, &p.with, p.turn, false)
	e := c.rule.Ends()
	switch at := slices.Index(e.IDs, e.Stops[f.Stop]); {
	case f.Stop == "":
		return p.finding(StopToken, Fails, "no token follows the reply")
	case at >= len(c.m.NamedStops):
		return p.finding(StopToken, Holds, f.Stop+", as the template writes it: the model folder has no generation_config.json")
	case at < 0:
		return p.finding(StopToken, Fails, f.Stop+" follows the reply, which the model folder does not name as a stop token")
	default:
		return p.finding(StopToken, Holds, f.Stop)
	}
}

func (c *certifier) reasoningKept() Finding {
	p, err := c.probe(false, render.User("one"), render.Thinking("SECRETTHOUGHT", "first"), render.User("two"), render.Assistant("second"))
	if err != nil {
		return refused(ReasoningKept, err)
	}
	prompt, err := p.render.Prompt(&p.turns[1])
	if err != nil {
		return refused(ReasoningKept, err)
	}
	if strings.Contains(prompt.Text, "SECRETTHOUGHT") {
		return p.finding(ReasoningKept, Holds, "")
	}
	return p.finding(ReasoningKept, Fails, "reasoning of earlier turns vanishes")
}

func (c *certifier) reasoningWritten() Finding {
	p, err := c.probe(false, render.User("one"), render.Thinking("SECRETTHOUGHT", "first"))
	if err != nil {
		return refused(ReasoningWritten, err)
	}
	with, err := p.render.Answered(&p.turns[0], nil)
	if err != nil {
		return refused(ReasoningWritten, err)
	}
	if strings.Contains(with.Text, "SECRETTHOUGHT") {
		return p.finding(ReasoningWritten, Holds, "")
	}
	return p.finding(ReasoningWritten, Fails, "reasoning is never written, so it cannot be trained from text")
}

func (c *certifier) toolCalls() Finding {
	p, err := c.probe(true, render.User("one"), render.Calling("", "c00000001"), render.Answering("c00000001", "TOOLRESULT"), render.Assistant("done"))
	if err != nil {
		return refused(ToolCalls, err)
	}
	doc, err := p.render.Run(p.render.All, p.render.Index, false)
	if err != nil {
		return refused(ToolCalls, err)
	}
	for _, need := range []string{"probe c00000001", "TOOLRESULT"} {
		if !strings.Contains(doc.Text, need) {
			return p.finding(ToolCalls, Fails, "the text lacks "+need)
		}
	}
	return p.finding(ToolCalls, Holds, "")
}

func (c *certifier) arguments() Finding {
	p, err := c.probe(true, render.User("one"), render.Calling("", "c00000001"), render.Answering("c00000001", "ok"))
	if err != nil {
		return refused(Arguments, err)
	}
	f := c.rule.Template.Shape.Forms()
	given := "objects are given; text would be " + f.Text.String()
	switch {
	case f.Object == render.ArgumentsLost && f.Text == render.ArgumentsLost:
		return p.finding(Arguments, NotApplicable, "the template writes no calls")
	case f.Alike:
		given = "objects are given; text would be written alike"
	case f.Give == render.AsText:
		given = "text is given; objects would be " + f.Object.String()
	}
	if max(f.Object, f.Text) < render.ArgumentsRight {
		return p.finding(Arguments, Fails, "objects are "+f.Object.String()+", text is "+f.Text.String())
	}
	return p.finding(Arguments, Holds, given)
}

func (c *certifier) names() Finding {
	named := render.Assistant("first")
	named.Name = "PROBENAME"
	p, err := c.probe(false, render.User("one"), named)
	if err != nil {
		return refused(Names, err)
	}
	doc, turns, err := p.find.Document()
	if err != nil {
		return refused(Names, err)
	}
	at := strings.Index(doc.Text, named.Name)
	if at < 0 {
		return p.finding(Names, Holds, "the names of replies are not written")
	}
	for _, turn := range turns {
		start, end := c.rule.SpanIn(&p.messages[turn.Message], int32(turn.Message), &doc, turn, false)
		if err := c.rule.CheckSpan(&doc, int32(turn.Message), start, end); err != nil || at >= start {
			return p.finding(Names, Fails, "the template writes a reply's name as "+excerpt(doc.Text, max(0, at-excerptSize/2)))
		}
	}
	return p.finding(Names, Holds, "names are written in the header")
}

func (c *certifier) toolRuns() Finding {
	p, err := c.probe(true, render.User("one"), render.Calling("", "c00000001", "c00000002"), render.Answering("c00000001", "FIRSTRESULT"), render.Answering("c00000002", "SECONDRESULT"), render.Assistant("done"))
	if err != nil {
		return refused(ToolRunsApart, err)
	}
	doc, err := p.render.Run(p.render.All, p.render.Index, false)
	if err != nil {
		return refused(ToolRunsApart, err)
	}
	_, rest, ok := strings.Cut(doc.Text, "FIRSTRESULT")
	between, _, ok2 := strings.Cut(rest, "SECONDRESULT")
	if !ok || !ok2 {
		return p.finding(ToolRunsApart, NotApplicable, "the results are not written, or not in order")
	}
	for _, a := range c.rule.Added {
		if a.Special && strings.Contains(between, a.Content) {
			return p.finding(ToolRunsApart, Holds, "")
		}
	}
	return p.finding(ToolRunsApart, Fails, "results that follow each other share one turn")
}

func (c *certifier) systemRole() Finding {
	p, err := c.probe(false, rollout.Message{Role: rollout.RoleSystem, Content: "SYSTEMTEXT"}, render.User("one"), render.Assistant("first"))
	if err != nil {
		return refused(SystemRole, err)
	}
	doc, err := p.render.Run(p.render.All, p.render.Index, false)
	if err != nil {
		return refused(SystemRole, err)
	}
	if strings.Contains(doc.Text, "SYSTEMTEXT") {
		return p.finding(SystemRole, Holds, "")
	}
	return p.finding(SystemRole, Fails, "the system message is left out")
}

func (c *certifier) injected() Finding {
	p, err := c.plainReply()
	if err != nil {
		return refused(NothingInjected, err)
	}
	start := p.prompt.FieldAfter(0)
	if start == len(p.prompt.Fields) {
		return p.finding(NothingInjected, NotApplicable, "the user's text is not written")
	}
	head := p.prompt.Text[:p.prompt.Fields[start].Start]
	for _, a := range c.rule.Added {
		head = strings.ReplaceAll(head, a.Content, "")
	}
	for _, marker := range []string{"user", "User", "[INST]", "human", "Human"} {
		head = strings.ReplaceAll(head, marker, "")
	}
	if words := strings.Fields(head); len(words) > 2 {
		return p.finding(NothingInjected, Fails, "the template adds "+excerpt(strings.TrimSpace(head), 0))
	}
	return p.finding(NothingInjected, Holds, "")
}

func (c *certifier) clock() Finding {
	r := c.rollout(rollout.Message{Role: rollout.RoleSystem, Content: "s"}, render.User("one"), render.Assistant("first"))
	var texts [2]string
	for i, now := range []time.Time{time.Unix(0, 0).UTC(), time.Unix(1_000_000_000, 0).UTC()} {
		x, err := render.New(c.ctx, c.rule.Template, r, render.Options{Now: now, Probe: true})
		if err != nil {
			return refused(NoClock, err)
		}
		doc, err := x.Run(x.All, x.Index, false)
		if err != nil {
			r.Messages = r.Messages[1:] // without a system message
			if x, err = render.New(c.ctx, c.rule.Template, r, render.Options{Now: now, Probe: true}); err != nil {
				return refused(NoClock, err)
			}
			if doc, err = x.Run(x.All, x.Index, false); err != nil {
				return refused(NoClock, err)
			}
		}
		texts[i] = doc.Text
	}
	f := Finding{Property: NoClock, Verdict: Holds, Witness: r.Messages}
	if texts[0] != texts[1] {
		f.Verdict, f.Detail = Fails, "the date is part of the prompt: set it to the day of the run (Options.Now, convert --now)"
	}
	return f
}

func (c *certifier) verbatim() Finding {
	p, err := c.probe(false, render.User("  one  "), render.Assistant("\n first \n"), render.User("two"), render.Assistant("second"))
	if err != nil {
		return refused(ContentVerbatim, err)
	}
	doc, err := p.render.Run(p.render.All, p.render.Index, false)
	if err != nil {
		return refused(ContentVerbatim, err)
	}
	for _, m := range p.messages {
		if !strings.Contains(doc.Text, m.Content) {
			return p.finding(ContentVerbatim, Fails, "white space around the text of "+string(m.Role)+" messages is trimmed")
		}
	}
	return p.finding(ContentVerbatim, Holds, "")
}
