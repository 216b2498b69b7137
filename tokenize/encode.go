package tokenize

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// Encoder turns rollouts into sequences. It is safe for concurrent use.
type Encoder struct {
	model *Model
	opts  Options
	added *addedTokens
	idle  sync.Pool // of *pieceEncoder
}

// NewEncoder checks opts and returns an Encoder over model. A nil model will do for
// merged and per-step rows of rollouts all of whose turns have the engine's token ids;
// others are refused one by one. Such rows name no tokenizer, mark no stop token, and
// do not tell reasoning and tool calls from content.
func NewEncoder(model *Model, opts Options) (*Encoder, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if model == nil {
		if err := opts.needsModel(); err != nil {
			return nil, err
		}
		model = withoutModel()
	}
	if model.Tokenizer == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "model"}, "an encoder needs a model with a tokenizer").WithFix("use tokenize.Load")
	}
	added, err := newAddedTokens(model.Tokenizer)
	if err != nil {
		return nil, err
	}
	if opts.Drift.Text == nil && given(model) {
		opts.Drift.Text = spelling(model.Tokenizer.Vocab(), added)
	}
	return &Encoder{model: model, opts: opts, added: added}, nil
}

// Encode returns the sequences of r in order, without loss weights. A rollout of
// which no sampled token is known with its context gives none. The sequences share
// memory with each other but not with r.
func (e *Encoder) Encode(ctx context.Context, r *rollout.Rollout) ([]rollout.Sequence, error) {
	seqs, _, err := e.EncodeReport(ctx, r)
	return seqs, err
}

// EncodeReport is Encode with a report.
func (e *Encoder) EncodeReport(ctx context.Context, r *rollout.Rollout) ([]rollout.Sequence, Report, error) {
	var seqs []rollout.Sequence
	report, err := e.Each(ctx, r, func(seq rollout.Sequence) error {
		seqs = append(seqs, seq)
		return nil
	})
	if err != nil {
		return nil, Report{}, err
	}
	return seqs, report, nil
}

// Each is EncodeReport for rollouts whose sequences are too many to hold: yield is
// given one after the other. Those of PerStep come as they are made, so an error may
// follow sequences of the same rollout; an error of yield ends the call.
func (e *Encoder) Each(ctx context.Context, r *rollout.Rollout, yield func(rollout.Sequence) error) (Report, error) {
	if err := e.made(); err != nil {
		return Report{}, err
	}
	if r == nil {
		return Report{}, zero.Rollout()
	}
	j := &job{Encoder: e, ctx: ctx, r: r, turns: rollout.TurnsOf(r), owner: map[int32]int32{}, yield: yield}
	seqs, err := j.run()
	for i := 0; err == nil && i < len(seqs); i++ {
		err = j.give(seqs[i])
	}
	if err != nil {
		return Report{}, located(err, r.ID)
	}
	return j.report, nil
}

// give hands out the next sequence.
func (j *job) give(seq rollout.Sequence) error {
	seq.SampleIndex = j.given
	j.given++
	j.dropFirst(&seq)
	return j.yield(seq)
}

// made is an error for the zero value.
func (e *Encoder) made() error {
	if e.model == nil {
		return zero.Value("tokenize.Encoder", "NewEncoder")
	}
	return nil
}

// dropFirst reports the first token of a row as not trained, if it was sampled: a
// template that writes nothing before a reply leaves nothing to predict it.
func (j *job) dropFirst(seq *rollout.Sequence) {
	if seq.Len() == 0 || seq.Flags[0]&rollout.FlagSampled == 0 {
		return
	}
	rep := &j.report
	rep.Trained--
	rep.Dropped++
	if rep.DroppedBy == nil {
		rep.DroppedBy = map[lineage.DropReason]int{}
	}
	rep.DroppedBy[lineage.DropFirst]++
	if seq.Flags[0]&rollout.FlagStop != 0 {
		rep.StopsLost++
	}
	if rep.Exact > 0 && j.recorded(int(seq.Turn[0])) {
		rep.Exact--
	}
}

// within adds the turn and message to an error that does not name them.
func within(err error, where rollout.Where) error {
	e, ok := err.(*rollout.Error)
	if !ok {
		return err
	}
	c := *e
	if _, ok := c.Where.Turn.Get(); !ok {
		c.Where.Turn = where.Turn
	}
	if _, ok := c.Where.Message.Get(); !ok {
		c.Where.Message = where.Message
	}
	return &c
}

// located adds the rollout to an error that does not name one.
func located(err error, id string) error {
	if e, ok := err.(*rollout.Error); ok && e.Where.Rollout == "" {
		c := *e
		c.Where.Rollout = id
		return &c
	}
	return err
}

// job encodes one rollout.
type job struct {
	*Encoder
	ctx    context.Context
	r      *rollout.Rollout
	turns  []rollout.Turn
	owner  map[int32]int32 // message → turn that sampled it
	pieces *pieceEncoder
	render *renderer
	report Report
	yield  func(rollout.Sequence) error
	given  int // sequences handed out
	encoded
}

// encoded is what is known of the turns after encoding: prompts against the
// turn before, completions, and what lineage needs.
type encoded struct {
	prompts     []prompt // rendered prompts, each against the one before
	respelt     []prompt // of recorded ids that spell a rendered prompt, each against the one before; nil if there are none
	attributed  []bool   // prompts[i], or respelt[i], says where the ids of turn i come from
	completions []completion
	plan        []lineage.Turn
	vacant      int     // incomplete turns without recorded ids
	foreign     bool    // a turn was left out for ids that the vocabulary lacks
	outside     []int32 // −1 for each token of the longest
}

// own fills owner. A turn of another's message would train what the policy did not
// write, two turns of one message would train it twice.
func (j *job) own() error {
	for i := range j.turns {
		m, where := j.turns[i].Message, rollout.Where{Turn: rollout.At(i)}
		if m < 0 {
			continue
		}
		if m >= len(j.r.Messages) {
			return rollout.Errorf(rollout.KindInput, where, "turn refers to message %d of %d", m, len(j.r.Messages))
		}
		if role := j.r.Messages[m].Role; role != rollout.RoleAssistant {
			return rollout.Errorf(rollout.KindInput, where, "the turn's message %d has role %q, expected assistant", m, role)
		}
		if other, dup := j.owner[int32(m)]; dup {
			return rollout.Errorf(rollout.KindInput, where, "message %d is already that of turn %d", m, other)
		}
		j.owner[int32(m)] = int32(i)
	}
	return nil
}

func (j *job) run() ([]rollout.Sequence, error) {
	if err := j.own(); err != nil {
		return nil, err
	}
	j.unmarked()
	j.pieces = j.Encoder.pieces(func(m int32) bool { _, ok := j.owner[m]; return ok })
	defer j.release(j.pieces)
	var err error
	if j.render, err = j.newRenderer(); err != nil {
		return nil, err
	}
	j.pieces.written = make([]parts, len(j.r.Messages))
	if j.opts.Mode == Whole {
		return j.whole()
	}
	if err := j.affordable(); err != nil {
		return nil, err
	}
	if err := j.encodeTurns(); err != nil {
		return nil, err
	}
	j.unwritten()
	if j.opts.Mode == PerStep {
		j.report.Turns = len(j.turns)
		j.report.EmptyTurns = len(j.turns) - j.given - j.report.UnknownContext - j.report.Incomplete
		return nil, nil // given as they were made
	}
	return j.merged()
}

// MaxShownMessages bounds the messages that the turns of one rollout show, each
// counted at every turn that shows it: every prompt is rendered as a whole, so the
// work grows with their number. A conversation of 8,000 turns, each with an
// observation, that drops nothing stays below.
const MaxShownMessages = 1 << 26

// affordable refuses a rollout beyond MaxShownMessages.
func (j *job) affordable() error {
	shown := 0
	for i := range j.turns {
		t := &j.turns[i]
		if t.Context.Parts == nil {
			shown += max(t.Message, 0)
		}
		for _, p := range t.Context.Parts {
			if p.Message != nil {
				shown++
			} else {
				shown += max(p.To-p.From, 0)
			}
		}
	}
	if shown <= MaxShownMessages {
		return nil
	}
	return rollout.Errorf(rollout.KindInput, rollout.Where{}, "the %d turns show %d messages in all, the limit for one rollout is %d", len(j.turns), shown, MaxShownMessages).
		WithFix("plan a window over the context, or cut the rollout into shorter ones")
}

// encodeTurns fills j.encoded.
func (j *job) encodeTurns() error {
	prompts := &promptEncoder{stretches: newStretchEncoder(j.pieces, false), edges: j.opts.Edges, done: map[int32]*completion{}}
	prompts.cols.viewed = j.opts.Mode == PerStep
	recall := &recall{job: j, turn: -1, by: alignment{job: j}, told: -1}
	frames := map[string]frame{}
	n := len(j.turns)
	j.encoded = encoded{prompts: make([]prompt, n), attributed: make([]bool, n), completions: make([]completion, n), plan: make([]lineage.Turn, n)}
	for i := range j.turns {
		if err := j.ctx.Err(); err != nil {
			return err
		}
		t := &j.turns[i]
		where := rollout.Where{Turn: rollout.At(i)}
		if t.Message >= 0 {
			where.Message = rollout.At(t.Message)
		}
		c := &j.completions[i]
		*c = completion{message: int32(t.Message), turn: int32(i)}
		if i > 0 { // where none is rendered, the one before stays the last
			j.prompts[i].keep, j.prompts[i].n = j.prompts[i-1].n, j.prompts[i-1].n
		}
		captured := j.recorded(i)
		if t.Incomplete != "" {
			j.setAside(i, where, t.Incomplete)
			continue
		}
		if t.Logprobs != nil && len(t.Logprobs) != len(t.Output) {
			return rollout.Errorf(rollout.KindInput, where, "turn has %d log probabilities for %d output ids", len(t.Logprobs), len(t.Output)).WithFix("record one per output id, or none")
		}
		if err := j.checkTurn(i, where); err != nil {
			if j.allForeign() {
				return err
			}
			j.foreign = true
			j.plan[i] = lineage.Turn{}
			j.vacant++
			j.incomplete(where, err.Msg)
			continue
		}
		if t.Context.Unknown && !captured {
			j.leaveOut(i, where)
			continue
		}
		var text rendering
		rendered := false
		if t.Message >= 0 && j.render != nil && !t.Context.Unknown {
			var err error
			text, err = j.render.prompt(t)
			if err != nil && !captured {
				return within(err, where)
			}
			if rendered = err == nil; rendered {
				if j.prompts[i], err = prompts.encode(text); err != nil {
					return err
				}
				recall.rendered(j.prompts[i].keep)
			}
		}
		if !captured && !rendered && t.Message >= 0 && j.render == nil {
			return within(j.model.lacks(j.r), where)
		}
		if !captured && !rendered {
			return rollout.Errorf(rollout.KindInput, where, "turn has neither captured prompt ids nor messages to render").
				WithFix("record prompt_ids or messages")
		}
		if err := j.completion(t, c, &text, rendered, frames); err != nil {
			return within(err, where)
		}
		lt := lineage.Turn{Output: c.cols.ids, Logprobs: t.Logprobs, Stopped: c.stopped(j.model)}
		switch {
		case t.Prompt.Captured():
			if lt.Prompt = t.Prompt; j.foreign { // it may be stored against what was left out
				lt.Prompt = rollout.PromptIDs{Add: j.captured(i)}
			}
			j.attributed[i] = rendered && recall.attribute(i, prompts.cols.columns())
			if t.Message >= 0 && !j.attributed[i] {
				j.report.Unattributed++
			}
		case i > 0 && j.renderedBase(i):
			lt.Prompt = rollout.PromptIDs{Base: rollout.At(i - 1), Keep: j.prompts[i].keep, Add: j.prompts[i].add.ids}
			j.attributed[i] = true
		default:
			if lt.Prompt.Add = j.prompts[i].add.ids; j.prompts[i].keep > 0 || prompts.cols.viewed {
				lt.Prompt.Add = slices.Clone(prompts.cols.columns().ids)
			}
			j.attributed[i] = true
		}
		if t.Output != nil {
			j.report.Captured += len(t.Output)
		} else {
			j.report.Rendered += len(c.cols.ids)
		}
		j.plan[i] = lt
		if j.opts.Mode == PerStep {
			shown := &prompts.cols
			if j.attributed[i] && recall.told == i {
				own := recall.by.cols.clone()
				shown = &stack{ids: own.ids, source: own.source, flags: own.flags}
			}
			if err := j.step(i, shown); err != nil {
				return err
			}
		}
		if t.Message >= 0 {
			prompts.done[c.message] = c
		}
	}
	return nil
}

// renderedBase reports whether turn i-1's full ids begin with its rendered
// prompt, so that turn i can be stored against it.
func (j *job) renderedBase(i int) bool {
	return !j.turns[i-1].Prompt.Captured() && j.attributed[i-1]
}

// completion fills c with the ids and the text that turn t sampled.
func (j *job) completion(t *rollout.Turn, c *completion, prompt *rendering, rendered bool, frames map[string]frame) error {
	var reply rendering
	if t.Message >= 0 && rendered {
		m := &j.r.Messages[t.Message]
		var err error
		if reply, c.stop, err = j.reply(t, m, prompt, frames); err != nil {
			if t.Output == nil {
				return err
			}
			reply = rendering{}
		}
		reply.behind = prompt
		if j.model.unstopped(t) {
			c.stop = ""
		}
		if first, _, ok := reply.extent(c.message, partScaffold, 0); ok {
			c.first = first
			if first == 0 { // the prompt may have written what the content begins with
				c.first = -max(0, strings.Index(m.Content, reply.text[:reply.fields[0].end]))
			}
		}
	}
	c.text = strings.Clone(reply.text) // which may be a part of a growing text
	if t.Output != nil {
		return j.capturedCompletion(t, c, &reply)
	}
	whole := reply
	whole.text += c.stop
	if err := j.pieces.encode(&c.cols, &whole, 0, len(whole.text), j.pieces.after(&whole, 0)); err != nil {
		return err
	}
	c.mark(j.model)
	return c.checkSampled(j.model)
}

// capturedCompletion takes the engine's ids and attributes them by text.
func (j *job) capturedCompletion(t *rollout.Turn, c *completion, reply *rendering) error {
	if !given(j.model) {
		c.idsOnly(t.Output, j.model)
		return nil
	}
	text, err := j.model.Tokenizer.Decode(t.Output)
	if err != nil {
		return err
	}
	if c.stop != "" && j.endsWith(t.Output, c.stop) {
		text = strings.TrimSuffix(text, c.stop)
	} else {
		c.stop = ""
	}
	if text != reply.text {
		c.text, c.first = text, 0
	}
	whole := *reply
	whole.text += c.stop
	if err := j.pieces.encode(&c.cols, &whole, 0, len(whole.text), j.pieces.after(&whole, 0)); err != nil {
		c.cols = columns{} // the ids are known all the same
	}
	if !slices.Equal(c.cols.ids, t.Output) {
		c.cols = j.respelled(c.message, &c.cols, t.Output)
	}
	c.mark(j.model)
	return nil
}

// endsWith reports whether ids end with the added token of that text, which
// other tokens could spell as well.
func (j *job) endsWith(ids []rollout.TokenID, stop string) bool {
	if len(ids) == 0 {
		return false
	}
	a, ok := j.added.find(ids[len(ids)-1])
	return ok && a.Content == stop
}

// reply derives the text that turn t sampled, and the text of its stop marker.
// What frames a reply of text alone is the same after the same generation
// prompt, so it is asked once for each, with a text that no template rewrites.
func (j *job) reply(t *rollout.Turn, m *rollout.Message, prompt *rendering, frames map[string]frame) (rendering, string, error) {
	cut := j.model.unstopped(t)
	f, err := j.plainFrame(t, m, prompt, frames)
	if err != nil {
		return rendering{}, "", err
	}
	if err := j.model.of(j.r).reply.checkLead(&f); err != nil && t.Output == nil {
		return rendering{}, "", err
	}
	if plain(m) {
		if cut && m.Content == "" {
			return rendering{}, "", nil
		}
		if cut {
			f.tail = rendering{}
		}
		out := f.wrap(openerTrimmed(prompt.text, m.Content), int32(t.Message))
		j.closes(t, prompt.tail(), out.text, cut)
		return out, f.stop, j.checkReply(t, &out, &f, prompt)
	}
	with, err := j.render.answered(t, replyAsSampled(m))
	if err != nil {
		return rendering{}, "", err
	}
	out, f := j.model.of(j.r).reply.sampledText(m, int32(t.Message), prompt, &with, cut)
	if t.Output != nil {
		return out, f.stop, nil
	}
	j.closes(t, prompt.tail(), out.text, cut)
	if err := j.complete(m, out.writes(int32(t.Message), 0, len(out.text))); err != nil {
		return out, f.stop, err
	}
	return out, f.stop, j.checkReply(t, &out, &f, prompt)
}

// checkReply checks a reply that is trained from text.
func (j *job) checkReply(t *rollout.Turn, out *rendering, f *frame, prompt *rendering) error {
	if t.Output != nil {
		return nil
	}
	return j.model.of(j.r).reply.checkReply(out, int32(t.Message), f, prompt)
}

// plainFrame is the frame of a reply of text alone that stands where m does.
func (j *job) plainFrame(t *rollout.Turn, m *rollout.Message, prompt *rendering, frames map[string]frame) (frame, error) {
	asked := prompt.tail()
	own := j.render.shape.readsExtra(m)
	if f, ok := frames[asked]; ok && !own {
		return f, nil
	}
	probe := rollout.Message{Role: m.Role, Content: "Reply.", Extra: m.Extra}
	with, err := j.render.answered(t, &probe)
	if err != nil {
		return frame{}, err
	}
	_, f := j.model.of(j.r).reply.sampledText(&probe, int32(t.Message), prompt, &with, false)
	if !own && !f.recorded() {
		frames[strings.Clone(asked)] = f // the prompt's memory is used again
	}
	return f, nil
}

// unstopped reports whether the record of a turn says that no stop token was
// sampled: a limit cut the reply, a filter or an interruption, or a text that the
// request asked to stop at. That text may be the stop token's own.
func (m *Model) unstopped(t *rollout.Turn) bool {
	switch t.FinishReason {
	case "length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "limit", // of tokens
		"content_filter", "refusal", // of a filter after the model
		"abort", "error", "incomplete", "cancelled", "failed", "pause_turn", "insufficient_system_resource": // from outside
		return true
	}
	if t.StopString == "" {
		return t.FinishReason == "stop_sequence"
	}
	_, token := m.reply.stops[t.StopString]
	return !token
}

// mark flags the columns of a completion as sampled, and its stop token.
func (c *completion) mark(m *Model) {
	partFlags(&c.cols)
	for k := range c.cols.flags {
		c.cols.flags[k] |= rollout.FlagSampled
		c.cols.source[k] = c.message
	}
	if c.stopped(m) {
		const parts = rollout.FlagContent | rollout.FlagReasoning | rollout.FlagToolCall
		k := c.cols.len() - 1
		c.cols.flags[k] = c.cols.flags[k]&^parts | rollout.FlagStop
	}
}

// stopped reports whether the completion ends with a stop token.
func (c *completion) stopped(m *Model) bool {
	n := c.cols.len()
	return n > 0 && (m.IsStop(c.cols.ids[n-1]) || c.stop != "")
}
