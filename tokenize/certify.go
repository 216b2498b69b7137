package tokenize

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/turnpack/turnpack/rollout"
)

// Property is a stable name of what Certify looks at.
type Property string

// The properties.
const (
	// PropAppendOnly: each prompt of a growing conversation begins with the prompt
	// and completion before it. Merged mode makes one row then; where it fails, rows
	// fork and nothing is lost.
	PropAppendOnly Property = "append_only"
	// PropGenerationPrompt: the generation prompt is how the template itself begins
	// an assistant turn.
	PropGenerationPrompt Property = "generation_prompt"
	// PropStopToken: a completion ends with a token that the model folder names as
	// a stop token. Where it fails, the model never learns to stop.
	PropStopToken Property = "stop_token"
	// PropReasoningKept: the reasoning of earlier turns stays in the prompt.
	PropReasoningKept Property = "reasoning_kept"
	// PropReasoningWritten: the reasoning of the last turn is written at all.
	PropReasoningWritten Property = "reasoning_written"
	// PropToolCalls: tool calls and their results are written.
	PropToolCalls Property = "tool_calls"
	// PropArguments: the template writes a call's arguments as a model does, from one
	// form at least. Detail says which one it is given, whatever was recorded, and what
	// becomes of the other.
	PropArguments Property = "arguments"
	// PropNames: the name of a reply is written in its header or not at all, so that the
	// reply is found after it. Where it fails, Whole rows of named replies are refused.
	PropNames Property = "names"
	// PropToolRunsApart: results that follow each other each have a header of their
	// own.
	PropToolRunsApart Property = "tool_runs_apart"
	// PropSystemRole: a system message is written as given.
	PropSystemRole Property = "system_role"
	// PropNothingInjected: without a system message the template adds none.
	PropNothingInjected Property = "nothing_injected"
	// PropNoClock: the text does not depend on the day.
	PropNoClock Property = "no_clock"
	// PropContentVerbatim: white space around content is kept.
	PropContentVerbatim Property = "content_verbatim"
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

// Certify renders probe conversations with the model's template and says what
// holds. Each finding carries the conversation that decided it; a property
// that holds does so for the probes. Where rollouts with tools have a template of
// their own, it gets the probes with tools, and a certificate of its own. A model
// that has a template for neither is a KindTemplate error.
func Certify(ctx context.Context, m *Model) (*Certificate, error) {
	if m.Template == nil && m.toolUse == nil {
		lacks := *m.lacks(&rollout.Rollout{})
		lacks.Kind = rollout.KindTemplate
		return nil, &lacks
	}
	if m.toolUse == nil {
		return certify(ctx, m, toolsAsProbed)
	}
	out, err := &Certificate{Tokenizer: m.Tokenizer.Digest(), Findings: []Finding{}}, error(nil)
	if m.Template != nil {
		out, err = certify(ctx, m, toolsNever)
	}
	if err == nil {
		out.ToolUse, err = certify(ctx, m.toolUse, toolsAlways)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func certify(ctx context.Context, m *Model, tools toolsOf) (*Certificate, error) {
	c := &certifier{ctx: ctx, m: m, tools: tools, out: &Certificate{Tokenizer: m.Tokenizer.Digest(), Template: m.templateDigest}}
	if _, _, _, err := c.simple(); err != nil && tools == toolsAsProbed {
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
		if f.Verdict == Fails {
			f.Advice = advice[f.Property]
		}
		c.out.Findings = append(c.out.Findings, f)
	}
	return c.out, nil
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
	m     *Model
	tools toolsOf
	out   *Certificate
}

var probeTools = []rollout.Tool{rollout.Tool(`{"type": "function", "function": {"name": "bash", "description": "Runs a command.", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}`)}

func user(text string) rollout.Message {
	return rollout.Message{Role: rollout.RoleUser, Content: text}
}

func assistant(text string) rollout.Message {
	return rollout.Message{Role: rollout.RoleAssistant, Content: text, Sampled: rollout.SampledByPolicy}
}

func thinking(reasoning, text string) rollout.Message {
	m := assistant(text)
	m.Reasoning = reasoning
	return m
}

func calling(reasoning string, ids ...string) rollout.Message {
	m := thinking(reasoning, "")
	for _, id := range ids {
		m.ToolCalls = append(m.ToolCalls, rollout.ToolCall{ID: id, Name: "bash", Arguments: `{"command": "probe ` + id + `"}`})
	}
	return m
}

func answering(id, text string) rollout.Message {
	return rollout.Message{Role: rollout.RoleTool, Name: "bash", ToolCallID: id, Content: text}
}

// probe is a conversation with its renderer.
type probe struct {
	messages []rollout.Message
	render   *renderer
	turns    []rollout.Turn
}

func (c *certifier) probe(tools bool, messages ...rollout.Message) (*probe, error) {
	if tools && c.tools == toolsNever {
		return nil, errToolUse
	}
	r := c.rollout(messages...)
	if tools {
		r.Tools = probeTools
	}
	x, err := newRenderer(c.ctx, c.m, r, Options{})
	if err != nil {
		return nil, err
	}
	return &probe{messages: messages, render: x, turns: rollout.TurnsOf(r)}, nil
}

// rollout has tools only where all have some.
func (c *certifier) rollout(messages ...rollout.Message) *rollout.Rollout {
	r := &rollout.Rollout{ID: "probe", Messages: messages}
	if c.tools == toolsAlways {
		r.Tools = probeTools
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
	worst := Finding{Property: PropAppendOnly, Verdict: NotApplicable}
	for _, k := range []struct {
		what     string
		tools    bool
		messages []rollout.Message
	}{
		{"plain replies", false, []rollout.Message{user("one"), assistant("first"), user("two"), assistant("second"), user("three"), assistant("third")}},
		{"tool calls", true, []rollout.Message{user("one"), calling("", "c00000001"), answering("c00000001", "ok"), calling("", "c00000002"), answering("c00000002", "ok"), assistant("done")}},
		{"reasoning with tool calls", true, []rollout.Message{user("one"), calling("I look.", "c00000001"), answering("c00000001", "ok"), thinking("I end.", "done"), user("two"), assistant("bye")}},
		{"reasoning between user messages", false, []rollout.Message{user("one"), thinking("I think.", "first"), user("two"), thinking("Again.", "second")}},
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
			return p.finding(PropAppendOnly, Fails, k.what+": "+at)
		}
		worst = p.finding(PropAppendOnly, Holds, "")
	}
	return worst
}

// breaks returns where a later prompt does not begin with the prompt and
// completion before, "" if nowhere.
func (c *certifier) breaks(p *probe) (string, error) {
	before := ""
	for i := range p.turns {
		t := &p.turns[i]
		prompt, err := p.render.prompt(t)
		if err != nil {
			return "", err
		}
		if !strings.HasPrefix(prompt.text, before) {
			at := differ(prompt.text, before)
			return "the prompt of turn " + strconv.Itoa(i) + " says " + excerpt(prompt.text, at) + " where it said " + excerpt(before, at), nil
		}
		with, err := p.render.answered(t, nil)
		if err != nil {
			return "", err
		}
		reply, f := c.m.reply.sampledText(&p.messages[t.Message], int32(t.Message), &prompt, &with, false)
		before = strings.Clone(prompt.text) + reply.text + f.stop
	}
	return "", nil
}

// differ returns where two texts part, at the beginning of the marker if inside
// one.
func differ(a, b string) int {
	at := commonText(a, b)
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

func (c *certifier) simple() (*probe, rendering, rendering, error) {
	p, err := c.probe(false, user("one"), assistant("first"))
	if err != nil {
		return nil, rendering{}, rendering{}, err
	}
	prompt, err := p.render.prompt(&p.turns[0])
	if err != nil {
		return nil, rendering{}, rendering{}, err
	}
	with, err := p.render.answered(&p.turns[0], nil)
	return p, prompt, with, err
}

func (c *certifier) generationPrompt() Finding {
	p, prompt, with, err := c.simple()
	if err != nil {
		return refused(PropGenerationPrompt, err)
	}
	bare, err := p.render.run(p.render.all.Prefix(1), p.render.index[:1], false)
	if err != nil {
		return refused(PropGenerationPrompt, err)
	}
	switch {
	case prompt.text == bare.text:
		return p.finding(PropGenerationPrompt, Fails, "the template writes no generation prompt")
	case strings.HasPrefix(with.text, prompt.text):
		return p.finding(PropGenerationPrompt, Holds, "")
	}
	at := differ(with.text, prompt.text)
	if opener := strings.LastIndexAny(prompt.text, "<["); opener >= 0 && thinkTag.MatchString(prompt.text[min(opener, at):]) {
		return p.finding(PropGenerationPrompt, Holds, "it opens reasoning that a reply without any does not have")
	}
	return p.finding(PropGenerationPrompt, Fails, "the prompt says "+excerpt(prompt.text, at)+" where the turn says "+excerpt(with.text, at))
}

func (c *certifier) stopToken() Finding {
	p, prompt, with, err := c.simple()
	if err != nil {
		return refused(PropStopToken, err)
	}
	_, f := c.m.reply.sampledText(&p.messages[1], 1, &prompt, &with, false)
	switch at := slices.Index(c.m.Stops, c.m.reply.stops[f.stop]); {
	case f.stop == "":
		return p.finding(PropStopToken, Fails, "no token follows the reply")
	case at >= c.m.named:
		return p.finding(PropStopToken, Holds, f.stop+", as the template writes it: the model folder has no generation_config.json")
	case at < 0:
		return p.finding(PropStopToken, Fails, f.stop+" follows the reply, which the model folder does not name as a stop token")
	default:
		return p.finding(PropStopToken, Holds, f.stop)
	}
}

func (c *certifier) reasoningKept() Finding {
	p, err := c.probe(false, user("one"), thinking("SECRETTHOUGHT", "first"), user("two"), assistant("second"))
	if err != nil {
		return refused(PropReasoningKept, err)
	}
	prompt, err := p.render.prompt(&p.turns[1])
	if err != nil {
		return refused(PropReasoningKept, err)
	}
	if strings.Contains(prompt.text, "SECRETTHOUGHT") {
		return p.finding(PropReasoningKept, Holds, "")
	}
	return p.finding(PropReasoningKept, Fails, "reasoning of earlier turns vanishes")
}

func (c *certifier) reasoningWritten() Finding {
	p, err := c.probe(false, user("one"), thinking("SECRETTHOUGHT", "first"))
	if err != nil {
		return refused(PropReasoningWritten, err)
	}
	with, err := p.render.answered(&p.turns[0], nil)
	if err != nil {
		return refused(PropReasoningWritten, err)
	}
	if strings.Contains(with.text, "SECRETTHOUGHT") {
		return p.finding(PropReasoningWritten, Holds, "")
	}
	return p.finding(PropReasoningWritten, Fails, "reasoning is never written, so it cannot be trained from text")
}

func (c *certifier) toolCalls() Finding {
	p, err := c.probe(true, user("one"), calling("", "c00000001"), answering("c00000001", "TOOLRESULT"), assistant("done"))
	if err != nil {
		return refused(PropToolCalls, err)
	}
	doc, err := p.render.document()
	if err != nil {
		return refused(PropToolCalls, err)
	}
	for _, need := range []string{"probe c00000001", "TOOLRESULT"} {
		if !strings.Contains(doc.text, need) {
			return p.finding(PropToolCalls, Fails, "the text lacks "+need)
		}
	}
	return p.finding(PropToolCalls, Holds, "")
}

func (c *certifier) arguments() Finding {
	p, err := c.probe(true, user("one"), calling("", "c00000001"), answering("c00000001", "ok"))
	if err != nil {
		return refused(PropArguments, err)
	}
	f := c.m.shape.forms
	given := "objects are given; text would be " + f.text.String()
	switch {
	case f.object == argumentsLost && f.text == argumentsLost:
		return p.finding(PropArguments, NotApplicable, "the template writes no calls")
	case f.alike:
		given = "objects are given; text would be written alike"
	case f.give == asText:
		given = "text is given; objects would be " + f.object.String()
	}
	if max(f.object, f.text) < argumentsRight {
		return p.finding(PropArguments, Fails, "objects are "+f.object.String()+", text is "+f.text.String())
	}
	return p.finding(PropArguments, Holds, given)
}

func (c *certifier) names() Finding {
	named := assistant("first")
	named.Name = "PROBENAME"
	p, err := c.probe(false, user("one"), named)
	if err != nil {
		return refused(PropNames, err)
	}
	doc, err := p.render.document()
	if err != nil {
		return refused(PropNames, err)
	}
	at := strings.Index(doc.text, named.Name)
	if at < 0 {
		return p.finding(PropNames, Holds, "the names of replies are not written")
	}
	for _, turn := range doc.turns {
		start, end := c.m.reply.span(&p.messages[turn.Message], &doc, turn, false)
		if err := c.m.reply.checkSpan(&doc, int32(turn.Message), start, end); err != nil || at >= start {
			return p.finding(PropNames, Fails, "the template writes a reply's name as "+excerpt(doc.text, max(0, at-excerptSize/2)))
		}
	}
	return p.finding(PropNames, Holds, "names are written in the header")
}

func (c *certifier) toolRuns() Finding {
	p, err := c.probe(true, user("one"), calling("", "c00000001", "c00000002"), answering("c00000001", "FIRSTRESULT"), answering("c00000002", "SECONDRESULT"), assistant("done"))
	if err != nil {
		return refused(PropToolRunsApart, err)
	}
	doc, err := p.render.document()
	if err != nil {
		return refused(PropToolRunsApart, err)
	}
	_, rest, ok := strings.Cut(doc.text, "FIRSTRESULT")
	between, _, ok2 := strings.Cut(rest, "SECONDRESULT")
	if !ok || !ok2 {
		return p.finding(PropToolRunsApart, NotApplicable, "the results are not written, or not in order")
	}
	for _, a := range c.m.reply.specials {
		if a.Special && strings.Contains(between, a.Content) {
			return p.finding(PropToolRunsApart, Holds, "")
		}
	}
	return p.finding(PropToolRunsApart, Fails, "results that follow each other share one turn")
}

func (c *certifier) systemRole() Finding {
	p, err := c.probe(false, rollout.Message{Role: rollout.RoleSystem, Content: "SYSTEMTEXT"}, user("one"), assistant("first"))
	if err != nil {
		return refused(PropSystemRole, err)
	}
	doc, err := p.render.document()
	if err != nil {
		return refused(PropSystemRole, err)
	}
	if strings.Contains(doc.text, "SYSTEMTEXT") {
		return p.finding(PropSystemRole, Holds, "")
	}
	return p.finding(PropSystemRole, Fails, "the system message is left out")
}

func (c *certifier) injected() Finding {
	p, prompt, _, err := c.simple()
	if err != nil {
		return refused(PropNothingInjected, err)
	}
	start := prompt.after(0)
	if start == len(prompt.fields) {
		return p.finding(PropNothingInjected, NotApplicable, "the user's text is not written")
	}
	head := prompt.text[:prompt.fields[start].start]
	for _, a := range c.m.reply.specials {
		head = strings.ReplaceAll(head, a.Content, "")
	}
	for _, marker := range []string{"user", "User", "[INST]", "human", "Human"} {
		head = strings.ReplaceAll(head, marker, "")
	}
	if words := strings.Fields(head); len(words) > 2 {
		return p.finding(PropNothingInjected, Fails, "the template adds "+excerpt(strings.TrimSpace(head), 0))
	}
	return p.finding(PropNothingInjected, Holds, "")
}

func (c *certifier) clock() Finding {
	r := c.rollout(rollout.Message{Role: rollout.RoleSystem, Content: "s"}, user("one"), assistant("first"))
	var texts [2]string
	for i, now := range []time.Time{time.Unix(0, 0).UTC(), time.Unix(1_000_000_000, 0).UTC()} {
		x, err := newRenderer(c.ctx, c.m, r, Options{Now: now})
		if err != nil {
			return refused(PropNoClock, err)
		}
		doc, err := x.document()
		if err != nil {
			r.Messages = r.Messages[1:] // without a system message
			if x, err = newRenderer(c.ctx, c.m, r, Options{Now: now}); err != nil {
				return refused(PropNoClock, err)
			}
			if doc, err = x.document(); err != nil {
				return refused(PropNoClock, err)
			}
		}
		texts[i] = doc.text
	}
	f := Finding{Property: PropNoClock, Verdict: Holds, Witness: r.Messages}
	if texts[0] != texts[1] {
		f.Verdict, f.Detail = Fails, "the date is part of the prompt: set it to the day of the run (Options.Now, convert --now)"
	}
	return f
}

func (c *certifier) verbatim() Finding {
	p, err := c.probe(false, user("  one  "), assistant("\n first \n"), user("two"), assistant("second"))
	if err != nil {
		return refused(PropContentVerbatim, err)
	}
	doc, err := p.render.document()
	if err != nil {
		return refused(PropContentVerbatim, err)
	}
	for _, m := range p.messages {
		if !strings.Contains(doc.text, m.Content) {
			return p.finding(PropContentVerbatim, Fails, "white space around the text of "+string(m.Role)+" messages is trimmed")
		}
	}
	return p.finding(PropContentVerbatim, Holds, "")
}
