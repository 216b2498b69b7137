package prompt

import (
	"cmp"
	"context"
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/completion"
	"github.com/turnpack/turnpack/tokenize/internal/render"
	"github.com/turnpack/turnpack/tokenize/internal/tokens"
)

// Options of New. With the zero value a prompt forks unless a bridge is proved.
type Options struct {
	// Encode are the options of the encoder that makes rows of these rollouts; Specials, PromptsBy,
	// Kwargs and Now are used here.
	Encode tokenize.Options
	// Keep says which sampled ids stay in prompts although the template now writes their text
	// differently: the model sees what it sampled, and not what the template shows. Such prompts
	// are declared ([Prompt.Kept]). With "" they fork. "spelling" keeps the ids of a reply that the
	// client returns complete and the template writes completely, in another spelling (white
	// space, the spacing of arguments, another stop token), after the same text as when it was
	// sampled; history that the template or the client rewrites forks. "all" keeps the ids of every
	// reply that the messages continue from.
	Keep string
	// RestoreReasoning restores the reasoning of replies that the client returns without it, and
	// leaves it to the template whether to show it.
	RestoreReasoning bool

	// Limits of one tree; 0 = the default. Beyond them the least recently used checkpoint without
	// successors is dropped; if all have successors, the newest is not stored.
	MaxCheckpoints int // 4,096
	MaxTokens      int // ids held; 4 Mi
	// Limits of Sessions; 0 = the default.
	MaxSessions      int // trees held; 16,384
	MaxSessionTokens int // ids held, at some 12 bytes each; 32 Mi
}

// Values of Options.Keep.
const (
	keepNone     = ""
	keepSpelling = "spelling"
	keepAll      = "all"
)

// validate returns all faults of o, joined.
func (o Options) validate() error {
	f := faults.List{Of: "prompt.Options."}
	f.Join(o.Encode.Validate())
	if o.Keep != keepNone && o.Keep != keepSpelling && o.Keep != keepAll {
		f.Add("Keep", "is %q, expected nothing, spelling or all", o.Keep)
	}
	f.Count("MaxCheckpoints", o.MaxCheckpoints)
	f.Count("MaxTokens", o.MaxTokens)
	f.Count("MaxSessions", o.MaxSessions)
	f.Count("MaxSessionTokens", o.MaxSessionTokens)
	return f.Err()
}

// writer makes prompts for one model. It is safe for concurrent use.
type writer struct {
	model *tokenize.Model
	opts  Options
	added *tokens.AddedTokens
	plain *completion.Rule
	tools *completion.Rule // for requests with tools
	marks bool             // see marksText
	// rewrites returns the stop tokens that the template shows as others in history.
	rewrites func() map[rollout.TokenID]rollout.TokenID
}

// New returns an empty set of trees for a model that has a chat template.
func New(m *tokenize.Model, o Options) (*Sessions, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o.MaxCheckpoints, o.MaxTokens = cmp.Or(o.MaxCheckpoints, 4096), cmp.Or(o.MaxTokens, 4<<20)
	o.MaxSessions, o.MaxSessionTokens = cmp.Or(o.MaxSessions, 1<<14), cmp.Or(o.MaxSessionTokens, 32<<20)
	if m == nil || m.Tokenizer == nil || m.Template == nil && m.ToolUse == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "model"}, "prompts are written by a chat template, and the model has none").WithFix("load a model folder with a chat template")
	}
	added, err := tokens.NewAddedTokens(m.Tokenizer)
	if err != nil {
		return nil, err
	}
	w := &writer{model: m, opts: o, added: added, plain: ruleOf(m)}
	if w.marks, err = marksText(m.Tokenizer); err != nil {
		return nil, err
	}
	if w.tools = w.plain; m.ToolUse != nil {
		w.tools = ruleOf(m.ToolUse)
	}
	w.rewrites = sync.OnceValue(func() map[rollout.TokenID]rollout.TokenID {
		shown, err := m.StopRewrites(context.Background())
		if err != nil { // the template rejects the probe, so nothing is known
			return nil
		}
		return shown
	})
	return &Sessions{w: w, trees: map[string]*session{}}, w.tools.Limit()
}

func ruleOf(m *tokenize.Model) *completion.Rule {
	s := completion.Source{Template: m.Template, Names: m.SpecialTokens, Added: m.Tokenizer.Vocab().Added(), Named: m.NamedStops, Listed: m.ListsStops}
	if m.ToolUse != nil {
		s.ToolUse = ruleOf(m.ToolUse)
	}
	return completion.New(s)
}

// Tree returns an empty tree for one rollout, which Sessions does not hold.
func (s *Sessions) Tree() *Tree { return s.w.tree() }

func (w *writer) tree() *Tree {
	return &Tree{w: w, root: &node{}, conversations: map[uint64][]*node{}, report: Report{Forked: map[string]int{}}}
}

// Request is a conversation to be answered. Its contents are not changed.
type Request struct {
	Messages       []rollout.Message
	Tools          []rollout.Tool
	TemplateKwargs map[string]json.RawMessage
}

// Prompt is what a model is given before it answers.
type Prompt struct {
	// IDs are the ids of the prompt, generation prompt included. The caller must not change them.
	IDs []rollout.TokenID
	// Shared is how many leading ids are those of earlier checkpoints, as they were sent and
	// sampled: what the engine's prefix cache holds.
	Shared int
	// Reason says why the last reply among the messages is not in IDs as it was sampled, or is so
	// only because of Options.Keep (Kept): opening, history, reply, reasoning, rewritten, spelling,
	// stop, control or joined; "" = it is in IDs as it was sampled.
	Reason string
	// Kept says that the ids hold what was sampled, where the template would write something else.
	Kept bool
	// Messages are the request's messages to record: marked as sampled and with their reasoning, as
	// far as the tree knows.
	Messages []rollout.Message

	*pending
}

// Reply records as a checkpoint the ids that were sampled after the prompt, stop token included;
// without ids it does nothing. told is the message sent to the client, nil if only ids are known.
// Several replies to one prompt are several checkpoints.
func (p *Prompt) Reply(output []rollout.TokenID, told *rollout.Message) error {
	if p.pending == nil {
		return zero.Value("prompt.Prompt", "Tree.Prompt")
	}
	return p.pending.reply(output, told)
}

// pending is a prompt in the form that its checkpoints hold.
type pending struct {
	tree *Tree
	from point
	ids  []rollout.TokenID // the ids after from
	text string            // the text that ids spell
	showing
	reason string
	kept   bool
	first  *node // checkpoint of the first reply
}

// showing is the origin of a prompt's text.
type showing struct {
	fields []render.Field // fields of the path from byte since to the end of the prompt
	since  int
	cuts   []cut // cuts in the path
	// The length of the template's text, in bytes, and its hash. The path has other text if ids
	// were kept.
	shown    int
	shownSum uint64

	conversation uint64 // hash of the messages as the client sent them
	messages     int
}

func (a *pending) reply(output []rollout.TokenID, told *rollout.Message) error {
	if len(output) == 0 {
		return nil
	}
	text, err := a.tree.w.spell(a.from.node.tail(a.from.ids, a.ids), output)
	if err != nil {
		return err
	}
	n := &node{base: a.from.node, after: a.from.reply, start: a.from.at, kept: a.from.ids, showing: a.showing,
		prompt: a.from.at + len(a.text), promptIDs: a.from.ids + len(a.ids)}
	n.text, n.ids = a.text+text, slices.Concat(a.ids, output)
	if a.kept {
		n.declared = a.reason
	}
	if told != nil {
		reply := *told
		n.told = &reply
	}
	a.tree.add(a, n)
	return nil
}

// tailIDs is how many ids before an output are decoded with it, since its text may depend on them
// (SentencePiece).
const tailIDs = 4

// tail returns the last ids of a prompt: the first count ids of n's path, then own.
func (n *node) tail(count int, own []rollout.TokenID) []rollout.TokenID {
	if len(own) < tailIDs {
		own = append(n.path(count), own...)
	}
	return own[max(0, len(own)-tailIDs):]
}

// spell returns the text of output after the ids that a prompt ends with, without the marks that a
// tokenizer puts at the beginning of text after a control token, which templates do not write.
func (w *writer) spell(tail, output []rollout.TokenID) (string, error) {
	if !w.marks {
		return decodeAfter(w.model.Tokenizer, tail, output)
	}
	var text strings.Builder
	for len(output) > 0 {
		n := 1 + slices.IndexFunc(output, func(id rollout.TokenID) bool { _, added := w.added.Find(id); return added })
		if n == 0 {
			n = len(output)
		}
		section, err := decodeAfter(w.model.Tokenizer, tail, output[:n])
		if err != nil {
			return "", err
		}
		if len(tail) > 0 {
			if _, added := w.added.Find(tail[len(tail)-1]); added {
				section = strings.TrimPrefix(section, " ")
			}
		}
		_, _ = text.WriteString(section)
		tail, output = output[max(0, n-tailIDs):n], output[n:]
	}
	return text.String(), nil
}

// marksText reports whether tok marks the beginning of text after a control token with a space
// (SentencePiece).
func marksText(tok engine.Tokenizer) (bool, error) {
	for _, a := range tok.Vocab().Added() {
		if !a.Special {
			continue
		}
		control := []rollout.TokenID{a.ID}
		before, err := tok.Decode(control)
		if err != nil {
			return false, err
		}
		var e engine.Encoding
		if err := tok.Encode(&e, "x", engine.EncodeOptions{Added: engine.NoAdded, After: engine.AfterToken}); err != nil {
			return false, err
		}
		with, err := tok.Decode(append(control, e.IDs...))
		return with == before+" x", err
	}
	return false, nil
}

// decodeAfter returns the text that output adds to that of tail.
func decodeAfter(tok engine.Tokenizer, tail, output []rollout.TokenID) (string, error) {
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

// Prompt returns the prompt for a request. It does not change the tree, which Reply does, so it can
// also be used to count the tokens of a request.
func (t *Tree) Prompt(ctx context.Context, r Request) (*Prompt, error) {
	switch {
	case t.w == nil:
		return nil, zero.Value("prompt.Tree", "Sessions.Tree")
	case t.w.model == nil:
		return nil, zero.Value("prompt.Sessions", "New")
	}
	p := &Prompt{pending: &pending{tree: t, showing: showing{messages: len(r.Messages)}}}
	expected := t.recognise(p, r.Messages)
	c, err := t.w.render(ctx, p.Messages, r)
	if err != nil {
		return nil, err
	}
	last := lastReply(p.Messages)
	var refused string
	for _, from := range t.pointsFor(c, last) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		why, err := c.continueFrom(p, from)
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
		p.Reason = reasonOpening
	case p.from.holds:
	case expected == nil:
		if p.Reason = refused; refused == "" {
			p.Reason = t.unknownReplyReason(p, r.Messages, last)
		}
	default:
		if p.Reason = refused; refused == "" {
			p.Reason = c.divergenceReason(expected, &r.Messages[last])
		}
		if k := t.w.opts.Keep; k == keepNone || k == keepSpelling && !(spelling(p.Reason) && c.whole(expected)) {
			break
		}
		if p.Kept, err = c.keep(p, expected, last); err != nil {
			return nil, err
		}
	}
	p.reason, p.kept = p.Reason, p.Kept
	p.shown, p.shownSum = len(c.text.Text), maphash.String(seed, c.text.Text)
	return p, nil
}

// lastReply returns the index of the last assistant message, −1 if there is none.
func lastReply(messages []rollout.Message) int {
	last := len(messages) - 1
	for last >= 0 && messages[last].Role != rollout.RoleAssistant {
		last--
	}
	return last
}

// render renders the conversation with the generation prompt.
func (w *writer) render(ctx context.Context, messages []rollout.Message, r Request) (*continuation, error) {
	c := &continuation{w: w, rule: w.plain, messages: messages}
	if len(r.Tools) > 0 {
		c.rule = w.tools
	}
	if c.rule.Template == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "tools"}, "the model has a chat template for requests with tools only")
	}
	e := &w.opts.Encode
	shown := &rollout.Rollout{Messages: messages, Tools: r.Tools, TemplateKwargs: r.TemplateKwargs}
	x, err := render.New(ctx, c.rule.Template, shown, render.Options{By: render.SystemNamed(string(e.PromptsBy)), Kwargs: e.Kwargs, Now: e.Now})
	if err != nil {
		return nil, err
	}
	if c.text, err = x.Run(x.All, x.Index, true); err != nil {
		return nil, err
	}
	return c, nil
}
