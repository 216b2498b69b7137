package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/completion"
	"github.com/turnpack/turnpack/tokenize/internal/render"
	"github.com/turnpack/turnpack/tokenize/internal/tokens"
)

// Options of a Writer. The zero value forks where a bridge is not proved.
type Options struct {
	// Encode are the options of the encoder that makes rows of these rollouts, of which
	// Specials, PromptsBy, Kwargs and Now count here.
	Encode tokenize.Options
	// Keep keeps the ids of a checkpoint that the messages go on from, also where the
	// template writes its text otherwise now: the model sees what it sampled, and not
	// what the template shows of it. Such prompts are declared ([Prompt.Kept]).
	Keep bool
	// RestoreReasoning gives replies that the client sends back without their reasoning
	// that reasoning again, and leaves it to the template whether to show it.
	RestoreReasoning bool

	// Bounds of one tree; 0 = the default. Beyond them the checkpoint is let go that was
	// longest not gone on from, or, where all are gone on from, the newest is not kept.
	MaxCheckpoints int // 4,096
	MaxTokens      int // ids held; 4 Mi
}

// Validate reports all faults of o.
func (o Options) Validate() error {
	errs := []error{o.Encode.Validate()}
	for field, n := range map[string]int{"MaxCheckpoints": o.MaxCheckpoints, "MaxTokens": o.MaxTokens} {
		if n < 0 {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "prompt.Options." + field}, "is %d, expected 0 for the default or more", n))
		}
	}
	return errors.Join(errs...)
}

// Writer makes prompts for one model. It is safe for concurrent use.
type Writer struct {
	model *tokenize.Model
	opts  Options
	added *tokens.AddedTokens
	plain *completion.Rule
	tools *completion.Rule // of requests with tools
	idle  sync.Pool        // of *tokens.Encoder
}

// New returns a Writer for a model that has a chat template.
func New(m *tokenize.Model, o Options) (*Writer, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.MaxCheckpoints == 0 {
		o.MaxCheckpoints = 4096
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = 4 << 20
	}
	if m == nil || m.Tokenizer == nil || m.Template == nil && m.ToolUse == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "model"}, "prompts are written by a chat template, and the model has none").WithFix("load a model folder with a chat template")
	}
	added, err := tokens.NewAddedTokens(m.Tokenizer)
	if err != nil {
		return nil, err
	}
	w := &Writer{model: m, opts: o, added: added, plain: ruleOf(m)}
	if w.tools = w.plain; m.ToolUse != nil {
		w.tools = ruleOf(m.ToolUse)
	}
	return w, w.tools.Limit()
}

func ruleOf(m *tokenize.Model) *completion.Rule {
	s := completion.Source{Template: m.Template, Names: m.SpecialTokens, Added: m.Tokenizer.Vocab().Added(), Named: m.NamedStops, Listed: m.ListsStops}
	if m.ToolUse != nil {
		s.ToolUse = ruleOf(m.ToolUse)
	}
	return completion.New(s)
}

// Tree returns an empty tree, for one rollout.
func (w *Writer) Tree() *Tree {
	return &Tree{w: w, root: &node{}, conversations: map[uint64][]*node{}, report: Report{Forked: map[Reason]int{}}}
}

// Request is a conversation to be answered. What it holds is not changed.
type Request struct {
	Messages       []rollout.Message
	Tools          []rollout.Tool
	TemplateKwargs map[string]json.RawMessage
}

// Prompt is what a model is to read before it answers.
type Prompt struct {
	// IDs are the prompt's, generation prompt included. The caller must not change them.
	IDs []rollout.TokenID
	// Shared is how many of them are those of the checkpoints before it, as they were
	// sent and sampled: what the engine's prefix cache has.
	Shared int
	// Reason says why the last reply among the messages is not in IDs as it was sampled,
	// or only because Options.Keep asks for it (Kept); "" = it is.
	Reason Reason
	// Kept: the ids hold what was sampled, where the template would write something else.
	Kept bool
	// Messages are the request's, marked as sampled and with their reasoning as far as
	// the tree knows: those to record.
	Messages []rollout.Message

	tree         *Tree
	from         point
	text         string // after from, to the end of the prompt
	fields       []field
	since        int   // byte from which fields tell
	cuts         []cut // in text
	conversation uint64
	first        *node // of the first reply
}

// Reply records what was sampled after the prompt, stop token included, as a checkpoint;
// nothing where no id was.
// told is the message that the client is told, nil where only ids are known. Several
// replies of one prompt are several checkpoints.
func (p *Prompt) Reply(output []rollout.TokenID, told *rollout.Message) error {
	if p.tree == nil {
		return zero.Value("prompt.Prompt", "Tree.Prompt")
	}
	if len(output) == 0 {
		return nil // nothing was sampled, so nothing goes on from it
	}
	text, err := decodeAfter(p.tree.w.model.Tokenizer, p.IDs, output)
	if err != nil {
		return err
	}
	n := &node{base: p.from.node, after: p.from.reply, start: p.from.at, kept: p.from.ids, text: p.text + text, fields: p.fields, since: p.since, cuts: p.cuts,
		prompt: p.from.at + len(p.text), promptIDs: len(p.IDs), messages: len(p.Messages), conversation: p.conversation, declared: p.Kept}
	n.ids = slices.Concat(p.IDs[p.from.ids:], output)
	if told != nil {
		reply := *told
		n.told = &reply
	}
	p.tree.add(p, n, len(output))
	return nil
}

// Tail ids are decoded with what comes after, which may depend on them (SentencePiece).
const tailIDs = 4

// decodeAfter is what output spells after prompt.
func decodeAfter(tok engine.Tokenizer, prompt, output []rollout.TokenID) (string, error) {
	tail := prompt[max(0, len(prompt)-tailIDs):]
	before, err := tok.Decode(tail)
	if err != nil {
		return "", err
	}
	all, err := tok.Decode(slices.Concat(tail, output))
	if err != nil {
		return "", err
	}
	if after, ok := strings.CutPrefix(all, before); ok {
		return after, nil
	}
	return tok.Decode(output)
}

// Prompt returns the prompt for a request. The tree is not changed before its Reply:
// asking is also how to count the tokens of a request.
func (t *Tree) Prompt(ctx context.Context, r Request) (*Prompt, error) {
	switch {
	case t.w == nil:
		return nil, zero.Value("prompt.Tree", "Writer.Tree")
	case t.w.model == nil:
		return nil, zero.Value("prompt.Writer", "prompt.New")
	}
	p := &Prompt{tree: t}
	expected := t.recognise(p, r.Messages)
	c, err := t.w.render(ctx, p.Messages, r)
	if err != nil {
		return nil, err
	}
	last := lastReply(p.Messages)
	var refused Reason
	for _, from := range t.reach(c) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		why, err := c.goOn(p, from)
		if err != nil {
			return nil, err
		}
		if why == "" {
			break
		}
		if refused == "" && from.node.messages == last {
			refused = why
		}
	}
	switch {
	case last < 0:
		p.Reason = Opening
	case p.from.holds(last):
	case expected == nil:
		if p.Reason = refused; refused == "" {
			p.Reason = t.stranger(p, r.Messages, last)
		}
	default:
		if p.Reason = refused; refused == "" {
			p.Reason = c.difference(expected, &r.Messages[last])
		}
		if !t.w.opts.Keep {
			break
		}
		if p.Kept, err = c.keep(p, expected, last); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// lastReply is the index of the last assistant message, −1 for none.
func lastReply(messages []rollout.Message) int {
	last := len(messages) - 1
	for last >= 0 && messages[last].Role != rollout.RoleAssistant {
		last--
	}
	return last
}

// render writes the conversation with the generation prompt.
func (w *Writer) render(ctx context.Context, messages []rollout.Message, r Request) (*continuation, error) {
	c := &continuation{w: w, rule: w.plain, messages: messages}
	if len(r.Tools) > 0 {
		c.rule = w.tools
	}
	if c.rule.Template == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "tools"}, "the model has a chat template for requests with tools only")
	}
	e := &w.opts.Encode
	shown := &rollout.Rollout{Messages: messages, Tools: r.Tools, TemplateKwargs: r.TemplateKwargs}
	x, err := render.New(ctx, c.rule.Template, shown, render.Options{By: render.System(e.PromptsBy), Kwargs: e.Kwargs, Now: e.Now})
	if err != nil {
		return nil, err
	}
	if c.text, err = x.Run(x.All, x.Index, true); err != nil {
		return nil, err
	}
	c.fields = c.fieldsOf()
	return c, nil
}
