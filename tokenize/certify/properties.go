package certify

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/internal/completion"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

func (c *certifier) appendOnly() Finding {
	worst := Finding{Property: appendOnly, Verdict: NotApplicable}
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
			return p.finding(appendOnly, Fails, k.what+": "+at)
		}
		worst = p.finding(appendOnly, Holds, "")
	}
	return worst
}

// breaks returns a description of the first prompt that does not begin with the previous prompt and
// completion, "" if there is none.
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

// differ returns the offset at which two texts diverge; inside a marker, the beginning of the
// marker.
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

// plainReply is a rendered question with its answer.
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
		return refused(generationPrompt, err)
	}
	bare, err := p.render.Run(p.render.All.Prefix(1), p.render.Index[:1], false)
	if err != nil {
		return refused(generationPrompt, err)
	}
	said, common := p.messages[1].Content, render.CommonText(p.with.Text, p.prompt.Text)
	rest := p.with.Text[common:]
	switch {
	case p.prompt.Text == bare.Text && common == len(bare.Text) && strings.HasPrefix(strings.TrimLeft(rest, " \n"), said):
		return p.finding(generationPrompt, Holds, "none is needed: a reply stands right after the message that it answers")
	case p.prompt.Text == bare.Text:
		return p.finding(generationPrompt, Fails, "the template writes no generation prompt")
	case common == len(p.prompt.Text):
		return p.finding(generationPrompt, Holds, "")
	}
	at := differ(p.with.Text, p.prompt.Text)
	if opener := strings.LastIndexAny(p.prompt.Text, "<["); opener >= 0 && completion.ThinkTag.MatchString(p.prompt.Text[min(opener, at):]) {
		return p.finding(generationPrompt, Holds, "it opens reasoning that a reply without any does not have")
	}
	if common > len(bare.Text) && strings.HasPrefix(p.prompt.Text, bare.Text) && strings.HasPrefix(rest, said) {
		return p.finding(generationPrompt, Holds, "it ends with "+excerpt(p.prompt.Text, common)+", which the history has before no reply")
	}
	return p.finding(generationPrompt, Fails, "the prompt says "+excerpt(p.prompt.Text, at)+" where the turn says "+excerpt(p.with.Text, at))
}

func (c *certifier) stopToken() Finding {
	p, err := c.plainReply()
	if err != nil {
		return refused(stopToken, err)
	}
	_, f := c.rule.SampledText(&p.messages[1], 1, &p.prompt, &p.with, p.turn, false)
	e := c.rule.Ends()
	switch at := slices.Index(e.IDs, e.Stops[f.Stop]); {
	case f.Stop == "":
		return p.finding(stopToken, Fails, "no token follows the reply")
	case at >= len(c.m.NamedStops):
		return p.finding(stopToken, Holds, f.Stop+", as the template writes it: the model folder has no generation_config.json")
	case at < 0:
		return p.finding(stopToken, Fails, f.Stop+" follows the reply, which the model folder does not name as a stop token")
	default:
		return p.finding(stopToken, Holds, f.Stop)
	}
}

func (c *certifier) reasoningKept() Finding {
	p, err := c.probe(false, render.User("one"), render.Thinking("SECRETTHOUGHT", "first"), render.User("two"), render.Assistant("second"))
	if err != nil {
		return refused(reasoningKept, err)
	}
	prompt, err := p.render.Prompt(&p.turns[1])
	if err != nil {
		return refused(reasoningKept, err)
	}
	if strings.Contains(prompt.Text, "SECRETTHOUGHT") {
		return p.finding(reasoningKept, Holds, "")
	}
	return p.finding(reasoningKept, Fails, "reasoning of earlier turns vanishes")
}

func (c *certifier) reasoningWritten() Finding {
	p, err := c.probe(false, render.User("one"), render.Thinking("SECRETTHOUGHT", "first"))
	if err != nil {
		return refused(reasoningWritten, err)
	}
	with, err := p.render.Answered(&p.turns[0], nil)
	if err != nil {
		return refused(reasoningWritten, err)
	}
	if strings.Contains(with.Text, "SECRETTHOUGHT") {
		return p.finding(reasoningWritten, Holds, "")
	}
	return p.finding(reasoningWritten, Fails, "reasoning is never written, so it cannot be trained from text")
}

func (c *certifier) toolCalls() Finding {
	p, text, err := c.document(true, render.User("one"), render.Calling("", "c00000001"), render.Answering("c00000001", "TOOLRESULT"), render.Assistant("done"))
	if err != nil {
		return refused(toolCalls, err)
	}
	for _, need := range []string{"probe c00000001", "TOOLRESULT"} {
		if !strings.Contains(text, need) {
			return p.finding(toolCalls, Fails, "the text lacks "+need)
		}
	}
	return p.finding(toolCalls, Holds, "")
}

func (c *certifier) arguments() Finding {
	p, err := c.probe(true, render.User("one"), render.Calling("", "c00000001"), render.Answering("c00000001", "ok"))
	if err != nil {
		return refused(arguments, err)
	}
	f := c.rule.Template.Shape.Forms()
	given := "objects are given; text would be " + f.Text.String()
	switch {
	case f.Object == render.ArgumentsLost && f.Text == render.ArgumentsLost:
		return p.finding(arguments, NotApplicable, "the template writes no calls")
	case f.Alike:
		given = "objects are given; text would be written alike"
	case f.Give == render.AsText:
		given = "text is given; objects would be " + f.Object.String()
	}
	if max(f.Object, f.Text) < render.ArgumentsRight {
		return p.finding(arguments, Fails, "objects are "+f.Object.String()+", text is "+f.Text.String())
	}
	return p.finding(arguments, Holds, given)
}

func (c *certifier) names() Finding {
	named := render.Assistant("first")
	named.Name = "PROBENAME"
	p, err := c.probe(false, render.User("one"), named)
	if err != nil {
		return refused(names, err)
	}
	doc, turns, err := p.find.Document()
	if err != nil {
		return refused(names, err)
	}
	at := strings.Index(doc.Text, named.Name)
	if at < 0 {
		return p.finding(names, Holds, "the names of replies are not written")
	}
	for _, turn := range turns {
		start, end := c.rule.SpanIn(&p.messages[turn.Message], int32(turn.Message), &doc, turn, false)
		if err := c.rule.CheckSpan(&doc, turn, start, end); err != nil || at >= start {
			return p.finding(names, Fails, "the template writes a reply's name as "+excerpt(doc.Text, max(0, at-excerptSize/2)))
		}
	}
	return p.finding(names, Holds, "names are written in the header")
}

func (c *certifier) toolRuns() Finding {
	p, text, err := c.document(true, render.User("one"), render.Calling("", "c00000001", "c00000002"), render.Answering("c00000001", "FIRSTRESULT"), render.Answering("c00000002", "SECONDRESULT"), render.Assistant("done"))
	if err != nil {
		return refused(toolRunsApart, err)
	}
	_, rest, ok := strings.Cut(text, "FIRSTRESULT")
	between, _, ok2 := strings.Cut(rest, "SECONDRESULT")
	if !ok || !ok2 {
		return p.finding(toolRunsApart, NotApplicable, "the results are not written, or not in order")
	}
	for _, a := range c.rule.Added {
		if a.Special && strings.Contains(between, a.Content) {
			return p.finding(toolRunsApart, Holds, "")
		}
	}
	return p.finding(toolRunsApart, Fails, "results that follow each other share one turn")
}

func (c *certifier) systemRole() Finding {
	p, text, err := c.document(false, rollout.Message{Role: rollout.RoleSystem, Content: "SYSTEMTEXT"}, render.User("one"), render.Assistant("first"))
	if err != nil {
		return refused(systemRole, err)
	}
	if strings.Contains(text, "SYSTEMTEXT") {
		return p.finding(systemRole, Holds, "")
	}
	return p.finding(systemRole, Fails, "the system message is left out")
}

func (c *certifier) injected() Finding {
	p, err := c.plainReply()
	if err != nil {
		return refused(nothingInjected, err)
	}
	start := p.prompt.FieldAfter(0)
	if start == len(p.prompt.Fields) {
		return p.finding(nothingInjected, NotApplicable, "the user's text is not written")
	}
	head := p.prompt.Text[:p.prompt.Fields[start].Start]
	for _, a := range c.rule.Added {
		head = strings.ReplaceAll(head, a.Content, "")
	}
	for _, marker := range []string{"user", "User", "[INST]", "human", "Human"} {
		head = strings.ReplaceAll(head, marker, "")
	}
	if words := strings.Fields(head); len(words) > 2 {
		return p.finding(nothingInjected, Fails, "the template adds "+excerpt(strings.TrimSpace(head), 0))
	}
	return p.finding(nothingInjected, Holds, "")
}

func (c *certifier) clock() Finding {
	r := c.rollout(rollout.Message{Role: rollout.RoleSystem, Content: "s"}, render.User("one"), render.Assistant("first"))
	var texts [2]string
	for i, now := range []time.Time{time.Unix(0, 0).UTC(), time.Unix(1_000_000_000, 0).UTC()} {
		x, err := render.New(c.ctx, c.rule.Template, r, render.Options{Now: now, Probe: true})
		if err != nil {
			return refused(noClock, err)
		}
		doc, err := x.Run(x.All, x.Index, false)
		if err != nil {
			r.Messages = r.Messages[1:] // without a system message
			if x, err = render.New(c.ctx, c.rule.Template, r, render.Options{Now: now, Probe: true}); err != nil {
				return refused(noClock, err)
			}
			if doc, err = x.Run(x.All, x.Index, false); err != nil {
				return refused(noClock, err)
			}
		}
		texts[i] = doc.Text
	}
	f := Finding{Property: noClock, Verdict: Holds, Witness: r.Messages}
	if texts[0] != texts[1] {
		f.Verdict, f.Detail = Fails, "the date is part of the prompt: set it to the day of the run (Options.Now, convert --now)"
	}
	return f
}

func (c *certifier) verbatim() Finding {
	p, text, err := c.document(false, render.User("  one  "), render.Assistant("\n first \n"), render.User("two"), render.Assistant("second"))
	if err != nil {
		return refused(contentVerbatim, err)
	}
	for _, m := range p.messages {
		if !strings.Contains(text, m.Content) {
			return p.finding(contentVerbatim, Fails, "white space around the text of "+string(m.Role)+" messages is trimmed")
		}
	}
	return p.finding(contentVerbatim, Holds, "")
}
