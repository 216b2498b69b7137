package completion

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// Rule derives what the policy sampled from how a template writes an assistant message. It renders
// its probes of the template once, when first needed. It is safe for concurrent use.
type Rule struct {
	Template  *render.Template // nil without a template
	withTools *render.Template // the template for rollouts with tools; Template unless they have their own
	Added     []engine.AddedToken
	Ends      func() ends
	Opening   func() *opening
}

// ends says what ends a reply.
type ends struct {
	IDs   []rollout.TokenID          // named ids, then those found by probes, ascending
	Stops map[string]rollout.TokenID // by text: those of IDs, and texts that replace all of them
	texts []string                   // keys of Stops
	// later is how a reply without calls and one with calls end if the conversation continues, for
	// templates that write no stop token after the last reply.
	later [2]ending
}

// ending is a stop token, with the white space before it, that the last reply lacks.
type ending struct{ tail, stop string }

// Source is what a model folder says, from which a rule is made.
type Source struct {
	Template *chat.Template    // nil without a template
	Names    map[string]string // the texts of named tokens (eos_token)
	Added    []engine.AddedToken
	// Named are the ids that end a reply according to the folder; Listed says that they come from
	// generation_config.json, which names all ids at which the engine stops.
	Named  []rollout.TokenID
	Listed bool
	// ToolUse is the rule of the template for rollouts with tools, nil if that is Template.
	ToolUse *Rule
}

// New returns the rule of a template, without rendering any probe yet.
func New(s Source) *Rule {
	rr := &Rule{Added: s.Added}
	if s.Template != nil {
		rr.Template = render.NewTemplate(s.Template, s.Names, s.Added)
	}
	stops := func() []rollout.TokenID { return s.Named }
	if rr.withTools = rr.Template; s.ToolUse != nil {
		rr.withTools = s.ToolUse.Template
		stops = func() []rollout.TokenID { return s.ToolUse.Ends().IDs }
	}
	rr.Ends = sync.OnceValue(func() ends { return rr.learnEnds(stops(), len(s.Named), s.Listed) })
	rr.Opening = sync.OnceValue(rr.learnOpening)
	return rr
}

// Limit returns the error of a template that hits a limit in a short conversation, nil if it hits
// none. It finds the ends of replies, which nearly every encoding needs.
func (rr *Rule) Limit() error {
	rr.Ends()
	if rr.Template == nil {
		return nil
	}
	return rr.Template.Limit()
}

// IsStop reports whether id ends a reply.
func (rr *Rule) IsStop(id rollout.TokenID) bool { return slices.Contains(rr.Ends().IDs, id) }

// Probe renders messages with the template for rollouts without tools or, if there is none or it
// rejects them, with the one for rollouts with tools. It returns nil for a model without templates.
func (rr *Rule) Probe(ctx context.Context, messages ...rollout.Message) (*render.Renderer, error) {
	var refused error
	for _, tools := range [][]rollout.Tool{nil, render.ProbeTools} {
		t := rr.Template
		if tools != nil {
			t = rr.withTools
		}
		if t == nil {
			continue
		}
		x, err := render.New(ctx, t, &rollout.Rollout{Messages: messages, Tools: tools}, render.Options{Probe: true})
		if err == nil {
			_, err = x.Run(x.All, x.Index, false)
		}
		if err == nil {
			return x, nil
		}
		if refused == nil {
			refused = err
		}
	}
	return nil, refused
}

// learnEnds adds the tokens with which the template ends replies to those of the folder, if the
// folder is incomplete: generation_config.json lists what the engine stops at, and a folder without
// that file names only the tokenizer's eos_token, which need not follow a call. A folder with the
// file keeps its list of ids.
//
// The token is the control token at the end of a conversation's last reply. A token that also
// occurs inside a reply (the end of each of two calls) does not count.
func (rr *Rule) learnEnds(ids []rollout.TokenID, named int, listed bool) (e ends) {
	e = ends{IDs: slices.Clone(ids), Stops: map[string]rollout.TokenID{}}
	for _, a := range rr.Added {
		if slices.Contains(ids, a.ID) {
			e.Stops[a.Content] = a.ID
		}
	}
	defer func() {
		slices.Sort(e.IDs[named:])
		e.texts = slices.Sorted(maps.Keys(e.Stops))
	}()
	if rr.Template == nil {
		return e
	}
	rr.learnLater(&e)
	found := map[string]rollout.TokenID{}
	var inside []string
	plain, stops := "", slices.Sorted(maps.Keys(e.Stops)) // plain ends a reply without calls
	for _, last := range rr.endProbes() {
		reply, rest := rr.lastReply(last)
		end, ok := rr.endOf(reply)
		next, at := FirstOf(stops, rest)
		switch {
		case len(last.ToolCalls) == 0:
			plain = end.Content
		case next != "" && next == plain && strings.Trim(rest[:at], blanks) == "":
			ok = false // after the mark of its calls the reply ends as every reply
		}
		if !ok {
			inside = append(inside, reply)
			continue
		}
		inside = append(inside, strings.TrimSuffix(reply, end.Content))
		if e.later[kindOf(&last)].stop == "" {
			found[end.Content] = end.ID
		}
	}
	for text, id := range found {
		if slices.ContainsFunc(inside, func(reply string) bool { return strings.Contains(reply, text) }) {
			continue
		}
		e.add(text, id, !listed)
	}
	if !listed && len(found) == 0 {
		rr.learnNextRoles(&e)
	}
	return e
}

// add makes text a text that ends a reply and, if stops is set, id an id at which the engine stops.
func (e *ends) add(text string, id rollout.TokenID, stops bool) {
	e.Stops[text] = id
	if stops && !slices.Contains(e.IDs, id) {
		e.IDs = append(e.IDs, id)
	}
}

// learnLater finds what ends replies in conversations that continue, if the template writes no
// named stop token after the last reply.
func (rr *Rule) learnLater(e *ends) {
	texts := slices.Sorted(maps.Keys(e.Stops))
	for _, pair := range rr.answered() {
		last, later := strings.TrimRight(rr.after(pair[:1]), blanks), rr.after(pair)
		stop, at := FirstOf(texts, later)
		if stop == "" {
			continue
		}
		said := strings.TrimRight(later[:at], blanks)
		if said == last || last != "" && strings.HasSuffix(said, last) { // calls may gain ids
			e.later[kindOf(&pair[0])] = ending{later[len(said):at], stop}
		}
	}
}

// learnNextRoles takes the markers that open the message after a reply as the reply's end, if
// replies have no other: <|user|> and, after a call, <|observation|>.
func (rr *Rule) learnNextRoles(e *ends) {
	for _, pair := range rr.answered() {
		marker := nextRole(&pair[0])
		k := slices.IndexFunc(rr.Added, func(a engine.AddedToken) bool { return a.Special && a.Content == marker })
		if k >= 0 && !slices.Contains(e.IDs, rr.Added[k].ID) && strings.Contains(rr.after(pair), marker) {
			e.add(marker, rr.Added[k].ID, true)
		}
	}
}

// answered returns replies with the message after them: a reply without calls and, if rollouts with
// calls take this template, one with a call.
func (rr *Rule) answered() [][]rollout.Message {
	pairs := [][]rollout.Message{{render.Assistant("Reply."), render.User("More.")}, {render.Calling("", "c00000001"), render.Answering("c00000001", "Result.")}}
	if rr.withTools != rr.Template {
		return pairs[:1]
	}
	return pairs
}

// after returns what the template writes after the text of a reply, up to the text of the next
// message, if there is one. It is "" if the template rejects the messages or leaves the reply out.
func (rr *Rule) after(messages []rollout.Message) string {
	x, err := rr.probeReply(append([]rollout.Message{render.User("Question.")}, messages...))
	if err != nil {
		return ""
	}
	doc, err := x.Run(x.All, x.Index, false)
	if err != nil {
		return ""
	}
	_, last, ok := doc.Extent(1, render.PartScaffold, 0)
	if !ok {
		return ""
	}
	return strings.Clone(doc.Text[last:doc.Foreign(1, last)])
}

// kindOf returns 1 for replies with calls, else 0.
func kindOf(m *rollout.Message) int {
	return min(len(m.ToolCalls), 1)
}

// nextRole returns the marker of the message after reply m, in templates with markers of roles.
func nextRole(m *rollout.Message) string {
	if len(m.ToolCalls) > 0 {
		return "<|observation|>"
	}
	return "<|user|>"
}

// endProbes returns replies of each kind.
func (rr *Rule) endProbes() []rollout.Message {
	const a, b = "c00000001", "c00000002"
	out := []rollout.Message{render.Assistant("Reply."), render.Thinking("Thought.", "Reply.")}
	if rr.withTools != rr.Template {
		return out // rollouts with calls take the other template
	}
	for _, reasoning := range []string{"", "Thought."} {
		for _, ids := range [][]string{{a}, {a, b}} {
			reply := render.Calling(reasoning, ids...)
			for k := range reply.ToolCalls {
				reply.ToolCalls[k].Arguments = `{"x": "Argument."}`
			}
			spoken := reply
			spoken.Content = "Reply."
			out = append(out, reply, spoken)
		}
	}
	return out
}

// probeReply renders a conversation whose second message is a reply, with tools if the reply calls
// some.
func (rr *Rule) probeReply(messages []rollout.Message) (*render.Renderer, error) {
	r := &rollout.Rollout{Messages: messages}
	if len(messages[1].ToolCalls) > 0 {
		r.Tools = render.ProbeTools
	}
	return render.New(context.Background(), rr.Template, r, render.Options{Probe: true})
}

// lastReply returns what the template writes for a conversation's last reply, from the first byte
// of its text on, and what it writes after it; nothing if the template rejects the reply or leaves
// it out.
func (rr *Rule) lastReply(last rollout.Message) (reply, rest string) {
	x, err := rr.probeReply([]rollout.Message{render.User("Question."), last})
	if err != nil {
		return "", ""
	}
	f := Finder{Render: x}
	with, turn, err := f.Answered(&rollout.Turn{Message: 1}, nil, nil)
	if err != nil || turn == nil {
		return "", ""
	}
	first, data, ok := with.Extent(1, render.PartScaffold, 0)
	if !ok || turn.End < data {
		return "", ""
	}
	text := strings.Clone(with.Text[first:])
	return text[:turn.End-first], text[turn.End-first:]
}

// endOf returns the control token at the end of a reply, apart from white space.
func (rr *Rule) endOf(reply string) (end engine.AddedToken, ok bool) {
	for _, a := range rr.Added {
		if a.Special && len(a.Content) > len(end.Content) && strings.HasSuffix(reply, a.Content) {
			end, ok = a, true
		}
	}
	return end, ok
}

// Finder finds the replies of one rollout in what its template writes. It is not safe for
// concurrent use.
type Finder struct {
	Rule   *Rule // nil if nothing is known to end a reply
	Render *render.Renderer
	// What was learnt from the plain history, and from other contexts.
	plain, elsewhere turnMemory
}

// Stops returns the texts that end a reply, nil if none is known.
func (f *Finder) Stops() []string {
	if f.Rule == nil {
		return nil
	}
	return f.Rule.Ends().texts
}

// Answered renders the context of t with its reply, or with instead in place of the reply, and
// finds the reply in it; the span is nil if there is none. prompt is the context with its
// generation prompt, nil if it was not rendered.
func (f *Finder) Answered(t *rollout.Turn, instead *rollout.Message, prompt *render.Rendering) (render.Rendering, *Span, error) {
	a, err := f.Render.Answered(t, instead)
	if err != nil {
		return render.Rendering{}, nil, err
	}
	memory := &f.elsewhere
	if a.Plain {
		memory = &f.plain
		memory.history = true
	}
	var asked *chat.Result
	if prompt != nil {
		asked = f.Render.Prompted(prompt.Text)
	}
	turn, ok, err := FindLast(f.Render.Ctx, f.Render.Template.Chat, a.Conversation, f.Render.Input(false), a.Result, f.Stops(), asked, memory)
	if !ok {
		return a.Rendering, nil, err
	}
	turn.Message = t.Message
	return a.Rendering, &turn, err
}

// Document renders the whole conversation and finds its replies.
func (f *Finder) Document() (render.Rendering, []Span, error) {
	x := f.Render
	doc, res, err := x.Document()
	if err != nil {
		return doc, nil, err
	}
	turns, err := Find(x.Ctx, x.Template.Chat, x.All, x.Input(false), res, f.Stops())
	for i := range turns {
		turns[i].Message = int(x.Index[turns[i].Message])
	}
	return doc, turns, err
}

// Unstopped reports whether the record of a turn says that no stop token was sampled: a limit
// truncated the reply, a filter or an interruption ended it, or a stop string of the request did,
// unless that string is the stop token's text.
func (rr *Rule) Unstopped(t *rollout.Turn) bool {
	if rollout.LimitReached(t.FinishReason) {
		return true
	}
	switch t.FinishReason {
	case "content_filter", "refusal", // a filter after the model
		"abort", "error", "incomplete", "cancelled", "failed", "pause_turn", "insufficient_system_resource": // from outside
		return true
	}
	if t.StopString == "" {
		return t.FinishReason == "stop_sequence"
	}
	_, token := rr.Ends().Stops[t.StopString]
	return !token
}

// SpecialTexts returns the texts of the control tokens.
func (rr *Rule) SpecialTexts() []string {
	var texts []string
	for _, a := range rr.Added {
		if a.Special {
			texts = append(texts, a.Content)
		}
	}
	return texts
}
