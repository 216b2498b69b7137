package tokenize

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/internal/completion"
	"github.com/turnpack/turnpack/tokenize/internal/render"
	"github.com/turnpack/turnpack/tokenize/internal/tokens"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// Encoder turns rollouts into sequences. It is safe for concurrent use.
type Encoder struct {
	model *Model
	opts  Options
	added *tokens.AddedTokens
	freed sync.Pool // of *freed

	huge, window, most int // hugeTokens/4, windowTokens and maxRowTokens, except in tests
}

// NewEncoder checks opts and returns an Encoder for model. model may be nil for merged and per-step
// rows of rollouts all of whose turns record the engine's token ids; any other rollout is then an
// error. Such rows name no tokenizer, mark no stop token, and do not tell reasoning and tool calls
// from content.
func NewEncoder(model *Model, opts Options) (*Encoder, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts = opts.named()
	opts.Kwargs = maps.Clone(opts.Kwargs)
	if model == nil {
		if err := opts.needsModel(); err != nil {
			return nil, err
		}
		model = &Model{Tokenizer: idsAlone{}, rules: &rules{}}
	}
	if model.Tokenizer == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "model"}, "an encoder needs a model with a tokenizer").WithFix("use tokenize.Load")
	}
	added, err := tokens.NewAddedTokens(model.Tokenizer)
	if err != nil {
		return nil, err
	}
	if err := model.checkLimits(); err != nil {
		return nil, err
	}
	if opts.Drift.Text == nil && hasModel(model) {
		opts.Drift.Text = tokens.Spelling(model.Tokenizer.Vocab(), added)
	}
	return &Encoder{model: model, opts: opts, added: added, huge: hugeTokens / 4, window: windowTokens, most: maxRowTokens}, nil
}

// Encode returns the sequences of r in order, without loss weights, and a report. A rollout without
// a sampled token whose context is known gives none. The sequences share memory with each other but
// not with r.
func (e *Encoder) Encode(ctx context.Context, r *rollout.Rollout) ([]rollout.Sequence, Report, error) {
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

// Each is Encode for rollouts with too many sequences to hold in memory. It calls yield with each
// sequence as soon as it is made, so an error may follow sequences of the same rollout. An error of
// yield ends the call.
func (e *Encoder) Each(ctx context.Context, r *rollout.Rollout, yield func(rollout.Sequence) error) (Report, error) {
	return e.each(ctx, r, false, func(row spool.Row) error { return yield(row.Whole().Sequence) })
}

// EachRuns is Each with some sequences given as runs, for which lens is not nil: lens holds the
// lengths of runs of tokens whose columns are equal, and the columns of seq have one entry per run.
// The first token is a run by itself. ids and logprobs (nil if there are none) have an entry per
// token and are valid until yield returns. For other sequences lens is nil.
func (e *Encoder) EachRuns(ctx context.Context, r *rollout.Rollout, yield func(seq rollout.Sequence, lens []int32, ids []rollout.TokenID, logprobs []float32) error) (Report, error) {
	return e.each(ctx, r, true, func(row spool.Row) error { return yield(row.Sequence, row.Lens, row.Tokens, row.Logprobs) })
}

func (e *Encoder) each(ctx context.Context, r *rollout.Rollout, runs bool, yield func(spool.Row) error) (Report, error) {
	if err := e.checkMade(); err != nil {
		return Report{}, err
	}
	if r == nil {
		return Report{}, zero.Rollout()
	}
	j := &job{Encoder: e, ctx: ctx, r: r, turns: rollout.TurnsOf(r), owner: map[int32]int32{}, runs: runs, yield: yield}
	if err := j.run(); err != nil {
		return Report{}, rollout.In(err, rollout.Where{Rollout: r.ID})
	}
	return j.report, nil
}

// yieldRow yields the next sequence.
func (j *job) yieldRow(row spool.Row) error {
	row.SampleIndex = j.given
	j.given++
	j.dropFirst(&row.Sequence)
	return j.yield(row)
}

// checkMade returns an error for the zero value.
func (e *Encoder) checkMade() error {
	if e.model == nil {
		return zero.Value("tokenize.Encoder", "NewEncoder")
	}
	return nil
}

// dropFirst reports the first token of a row as not trained, if it was sampled: if a template
// writes nothing before a reply, there is nothing to predict the token from.
func (j *job) dropFirst(seq *rollout.Sequence) {
	if seq.Len() == 0 || seq.Flags[0]&rollout.FlagSampled == 0 {
		return
	}
	rep := &j.report
	rep.Trained--
	rep.Dropped++
	if rep.DroppedBy == nil {
		rep.DroppedBy = map[string]int{}
	}
	rep.DroppedBy["first"]++
	if seq.Flags[0]&rollout.FlagStop != 0 {
		rep.StopsLost++
	}
}

// job encodes one rollout.
type job struct {
	*Encoder
	ctx     context.Context
	r       *rollout.Rollout
	turns   []rollout.Turn
	owner   map[int32]int32 // message → turn that sampled it
	pieces  *tokens.Encoder
	rule    *completion.Rule   // of the template that r takes
	render  *render.Renderer   // nil without a template
	replies *completion.Finder // finds replies in what render writes
	report  Report
	yield   func(spool.Row) error
	runs    bool // sequences may be runs
	given   int  // sequences yielded
	encoded
}

// encoded holds the results of encoding the turns: prompts, completions, and the input of lineage.
type encoded struct {
	prompts     []tokens.Prompt // rendered prompts, each relative to the previous one
	respelt     []tokens.Prompt // the same for recorded ids that spell a rendered prompt; nil if there are none
	attributed  []bool          // whether prompts[i] or respelt[i] gives the origin of the prompt ids of turn i
	completions []tokens.Completion
	plan        []lineage.Turn
	vacant      int  // incomplete turns without recorded ids
	foreign     bool // a turn was left out because of ids outside the vocabulary
}

// assignOwners fills owner. It rejects turns of other roles' messages, which would train text the
// policy did not write, and two turns of one message, which would train it twice.
func (j *job) assignOwners() error {
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

// prepare makes the renderer of the rollout, if the model has a template for it.
func (j *job) prepare() (err error) {
	j.rule = j.model.ruleFor(j.r)
	if j.rule.Template == nil || len(j.r.Messages) == 0 {
		return nil
	}
	if j.render, err = render.New(j.ctx, j.rule.Template, j.r, j.opts.render()); err == nil {
		j.replies = &completion.Finder{Rule: j.rule, Render: j.render}
	}
	return err
}

func (j *job) run() error {
	if err := j.assignOwners(); err != nil {
		return err
	}
	j.unmarked()
	j.pieces = j.Encoder.pieces(func(m int32) bool { _, ok := j.owner[m]; return ok })
	if err := j.prepare(); err != nil {
		return err
	}
	j.pieces.Written = make([]render.Parts, len(j.r.Messages))
	if j.opts.Mode == Whole {
		return whole(j)
	}
	if err := j.readable(); err != nil {
		return err
	}
	if err := j.encodeTurns(); err != nil {
		return err
	}
	j.unwritten()
	if j.opts.Mode == PerStep {
		j.report.Turns = len(j.turns)
		j.report.EmptyTurns = len(j.turns) - j.given - j.report.UnknownContext - j.report.Incomplete
		return nil // already yielded
	}
	return j.merged()
}

// turnEncoder encodes the turns of a rollout one after the other.
type turnEncoder struct {
	*job
	encoder *tokens.PromptEncoder // of prompts
	matcher *capturedMatcher
	frames  map[string]completion.Frame
	shown   int // tokens of the prompts and completions so far
	checked int // up to this many shown tokens, rows are known to be affordable
}

// encodeTurns fills j.encoded.
func (j *job) encodeTurns() error {
	prompts := &tokens.PromptEncoder{SegmentEncoder: tokens.NewSegmentEncoder(j.pieces, false), Apart: j.opts.Edges != edgesDocument, Done: map[int32]*tokens.Completion{}}
	free := j.take()
	prompts.Runs, free.prompt = free.prompt, tokens.Compact{}
	prompts.Passing = j.opts.Mode == PerStep
	for i := range j.r.Messages {
		prompts.Bytes += len(j.r.Messages[i].Content) + len(j.r.Messages[i].Reasoning)
	}
	if j.render != nil {
		j.render.Memory, free.rendered = free.rendered, render.Memory{}
	}
	defer j.giveBack(free, prompts)
	x := &turnEncoder{job: j, encoder: prompts, frames: map[string]completion.Frame{}, checked: j.most,
		matcher: &capturedMatcher{job: j, turn: -1, by: tokens.NewAlignment(j.model.Tokenizer, j.added), attributedTurn: -1}}
	n := len(j.turns)
	j.encoded = encoded{prompts: make([]tokens.Prompt, n), attributed: make([]bool, n), completions: make([]tokens.Completion, n), plan: make([]lineage.Turn, n)}
	for i := range j.turns {
		if err := j.ctx.Err(); err != nil {
			return err
		}
		if err := x.encode(i); err != nil {
			return err
		}
	}
	return nil
}

// encode encodes turn i, or leaves it untrained.
func (x *turnEncoder) encode(i int) error {
	t := &x.turns[i]
	where := rollout.Where{Turn: rollout.At(i)}
	if t.Message >= 0 {
		where.Message = rollout.At(t.Message)
	}
	c := &x.completions[i]
	*c = tokens.Completion{Message: int32(t.Message), Turn: int32(i)}
	if i > 0 { // without a rendered prompt the previous one stays the latest
		x.prompts[i].Keep, x.prompts[i].N = x.prompts[i-1].N, x.prompts[i-1].N
	}
	if out, err := x.untrained(i, where); out || err != nil {
		return err
	}
	text, rendered, err := x.prompt(i, where)
	if err != nil {
		return err
	}
	if err := x.completion(t, c, &text, rendered, x.frames); err != nil {
		return rollout.In(err, where)
	}
	if t.Output != nil {
		x.report.Captured += len(t.Output)
	} else {
		x.report.Rendered += len(c.Cols.IDs)
	}
	prompt, err := x.promptIDs(i, rendered)
	if err != nil {
		return err
	}
	x.plan[i] = lineage.Turn{Prompt: prompt, Output: c.Cols.IDs, Logprobs: t.Logprobs, Stopped: c.Stopped(x.model.IsStop)}
	switch x.opts.Mode {
	case Merged:
		if x.shown += x.prompts[i].N + len(c.Cols.IDs); x.shown > x.checked {
			if err := x.joinable(i + 1); err != nil {
				return err
			}
			x.checked = 2 * x.shown
		}
	case PerStep:
		x.encoder.Reserve(c.Cols.Len(), len(text.Text)+len(c.Text))
		if err := x.step(i, &x.encoder.Runs, x.matcher); err != nil {
			return err
		}
	}
	c.Pack()
	x.plan[i].Output = c.Runs.IDs
	if t.Message >= 0 {
		x.encoder.Done[c.Message] = c
	}
	return nil
}

// untrained reports whether turn i is left untrained because of its record.
func (x *turnEncoder) untrained(i int, where rollout.Where) (bool, error) {
	t := &x.turns[i]
	if t.Incomplete != "" {
		x.setAside(i, where, t.Incomplete)
		return true, nil
	}
	if t.Logprobs != nil && len(t.Logprobs) != len(t.Output) {
		return false, rollout.Errorf(rollout.KindInput, where, "turn has %d log probabilities for %d output ids", len(t.Logprobs), len(t.Output)).WithFix("record one per output id, or none")
	}
	if err := x.checkTurn(i, where); err != nil {
		if x.allForeign() {
			return false, err
		}
		x.foreign = true
		x.plan[i] = lineage.Turn{}
		x.vacant++
		x.incomplete(where, err.Msg)
		return true, nil
	}
	if t.Context.Unknown && !x.recorded(i) {
		x.skipTurn(i, where)
		return true, nil
	}
	return false, nil
}

// prompt renders and encodes the prompt of turn i if the turn has messages, and reports whether it
// did. For turns with recorded ids it may fail without an error.
func (x *turnEncoder) prompt(i int, where rollout.Where) (text render.Rendering, rendered bool, err error) {
	t, captured := &x.turns[i], x.recorded(i)
	if t.Message >= 0 && x.render != nil && !t.Context.Unknown {
		text, err = x.render.Prompt(t)
		if err != nil && !captured {
			return text, false, rollout.In(err, where)
		}
		if rendered = err == nil; rendered {
			if x.prompts[i], err = x.encoder.Encode(text); err != nil {
				return text, true, err
			}
			for _, c := range x.encoder.Shown {
				x.plan[c.Turn].Output = c.Runs.IDs
			}
			x.matcher.rendered(x.prompts[i].Keep)
		}
	}
	switch {
	case captured || rendered:
		return text, rendered, nil
	case t.Message >= 0 && x.render == nil:
		return text, false, rollout.In(x.model.lacks(x.r), where)
	}
	return text, false, rollout.Errorf(rollout.KindInput, where, "turn has neither captured prompt ids nor messages to render").
		WithFix("record prompt_ids or messages")
}

// promptIDs returns the prompt ids of turn i for lineage: the recorded ones, else the rendered
// ones. It fills attributed.
func (x *turnEncoder) promptIDs(i int, rendered bool) (rollout.PromptIDs, error) {
	t, p := &x.turns[i], &x.prompts[i]
	if !t.Prompt.Captured() {
		x.attributed[i] = true
		switch {
		case i > 0 && !x.turns[i-1].Prompt.Captured() && x.attributed[i-1]: // that turn's ids begin with its rendered prompt
			return rollout.PromptIDs{Base: rollout.At(i - 1), Keep: p.Keep, Add: p.Add.IDs}, nil
		case p.Keep > 0 && !x.encoder.Passing:
			return rollout.PromptIDs{Add: slices.Clone(x.encoder.Runs.IDs)}, nil
		}
		return rollout.PromptIDs{Add: p.Add.IDs}, nil
	}
	x.attributed[i] = rendered && x.matcher.attribute(i, &x.encoder.Runs)
	if t.Message >= 0 && !x.attributed[i] {
		x.report.Unattributed++
	}
	if x.foreign { // the prompt may be stored relative to a turn left out
		ids, err := x.captured(i)
		return rollout.PromptIDs{Add: ids}, err
	}
	return t.Prompt, nil
}

// pieces returns an encoder of pieces.
func (e *Encoder) pieces(sampled func(int32) bool) *tokens.Encoder {
	p := tokens.NewEncoder(e.model.Tokenizer, e.added, e.opts.Specials == specialsParity)
	p.Sampled = sampled
	return p
}
