package tokenize

import (
	"context"
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
	idle  sync.Pool // of *pieceEncoder
	freed sync.Pool // of *freed

	huge, window, most int // hugeTokens, windowTokens and maxRowTokens, but for tests
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
	added, err := tokens.NewAddedTokens(model.Tokenizer)
	if err != nil {
		return nil, err
	}
	if err := model.checkLimits(); err != nil {
		return nil, err
	}
	if opts.Drift.Text == nil && given(model) {
		opts.Drift.Text = tokens.Spelling(model.Tokenizer.Vocab(), added)
	}
	return &Encoder{model: model, opts: opts, added: added, huge: hugeTokens / 4, window: windowTokens, most: maxRowTokens}, nil
}

// Encode returns the sequences of r in order, without loss weights, and what was
// done to make them. A rollout of which no sampled token is known with its context
// gives none. The sequences share memory with each other but not with r.
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

// Each is Encode for rollouts whose sequences are too many to hold: yield is
// given each as soon as it is made, so an error may follow sequences of the same
// rollout; an error of yield ends the call.
func (e *Encoder) Each(ctx context.Context, r *rollout.Rollout, yield func(rollout.Sequence) error) (Report, error) {
	return e.each(ctx, r, false, func(seq rollout.Sequence, lens []int32, ids []rollout.TokenID, logprobs []float32) error {
		row := spool.Row{Sample: rollout.Sample{Sequence: seq}, Lens: lens, Tokens: ids, Logprobs: logprobs}
		return yield(row.Whole().Sequence)
	})
}

// EachRuns is Each that may give a sequence as runs: its columns have then one entry for
// each run of tokens that are alike in them, the first token a run by itself, and lens holds
// their lengths; ids and logprobs, nil for none, are those of the tokens, until yield
// returns. Else lens is nil.
func (e *Encoder) EachRuns(ctx context.Context, r *rollout.Rollout, yield func(seq rollout.Sequence, lens []int32, ids []rollout.TokenID, logprobs []float32) error) (Report, error) {
	return e.each(ctx, r, true, yield)
}

func (e *Encoder) each(ctx context.Context, r *rollout.Rollout, runs bool, yield func(rollout.Sequence, []int32, []rollout.TokenID, []float32) error) (Report, error) {
	if err := e.made(); err != nil {
		return Report{}, err
	}
	if r == nil {
		return Report{}, zero.Rollout()
	}
	j := &job{Encoder: e, ctx: ctx, r: r, turns: rollout.TurnsOf(r), owner: map[int32]int32{}, runs: runs, yield: yield}
	if err := j.run(); err != nil {
		return Report{}, located(err, r.ID)
	}
	return j.report, nil
}

// give hands out the next sequence.
func (j *job) give(row spool.Row) error {
	row.SampleIndex = j.given
	j.given++
	j.dropFirst(&row.Sequence)
	return j.yield(row.Sequence, row.Lens, row.Tokens, row.Logprobs)
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
	ctx     context.Context
	r       *rollout.Rollout
	turns   []rollout.Turn
	owner   map[int32]int32 // message → turn that sampled it
	pieces  *tokens.Encoder
	rule    *completion.Rule   // of the template that r takes
	render  *render.Renderer   // nil where there is none
	replies *completion.Finder // in what render writes
	report  Report
	yield   func(rollout.Sequence, []int32, []rollout.TokenID, []float32) error
	runs    bool // sequences may be runs
	given   int  // sequences handed out
	encoded
}

// encoded is what is known of the turns after encoding: prompts against the
// turn before, completions, and what lineage needs.
type encoded struct {
	prompts     []tokens.Prompt // rendered prompts, each against the one before
	respelt     []tokens.Prompt // of recorded ids that spell a rendered prompt, each against the one before; nil if there are none
	attributed  []bool          // prompts[i], or respelt[i], says where the ids of turn i come from
	completions []tokens.Completion
	plan        []lineage.Turn
	vacant      int  // incomplete turns without recorded ids
	foreign     bool // a turn was left out for ids that the vocabulary lacks
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

// prepare readies what renders the rollout, if the model has a template for it.
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
	if err := j.own(); err != nil {
		return err
	}
	j.unmarked()
	j.pieces = j.Encoder.pieces(func(m int32) bool { _, ok := j.owner[m]; return ok })
	defer j.release(j.pieces)
	if err := j.prepare(); err != nil {
		return err
	}
	j.pieces.Written = make([]render.Parts, len(j.r.Messages))
	if j.opts.Mode == Whole {
		rows, err := j.whole()
		if err != nil || len(rows) == 0 {
			return err
		}
		return j.give(rows[0])
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
		return nil // given as they were made
	}
	return j.merged()
}

// encodeTurns fills j.encoded.
func (j *job) encodeTurns() error {
	prompts := &tokens.PromptEncoder{SegmentEncoder: tokens.NewSegmentEncoder(j.pieces, false), Apart: j.opts.Edges == EdgesSampled, Done: map[int32]*tokens.Completion{}}
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
	matcher := &capturedMatcher{job: j, turn: -1, by: tokens.NewAlignment(j.model.Tokenizer, j.added), attributedTurn: -1}
	frames := map[string]completion.Frame{}
	var memory tokens.Columns // of completions
	n, shown, checked := len(j.turns), 0, j.most
	j.encoded = encoded{prompts: make([]tokens.Prompt, n), attributed: make([]bool, n), completions: make([]tokens.Completion, n), plan: make([]lineage.Turn, n)}
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
		*c = tokens.Completion{Message: int32(t.Message), Turn: int32(i), Cols: memory}
		if i > 0 { // where none is rendered, the one before stays the last
			j.prompts[i].Keep, j.prompts[i].N = j.prompts[i-1].N, j.prompts[i-1].N
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
			j.skipTurn(i, where)
			continue
		}
		var text render.Rendering
		rendered := false
		if t.Message >= 0 && j.render != nil && !t.Context.Unknown {
			var err error
			text, err = j.render.Prompt(t)
			if err != nil && !captured {
				return render.Within(err, where)
			}
			if rendered = err == nil; rendered {
				if j.prompts[i], err = prompts.Encode(text); err != nil {
					return err
				}
				for _, c := range prompts.Shown {
					j.plan[c.Turn].Output = c.Runs.IDs
				}
				matcher.rendered(j.prompts[i].Keep)
			}
		}
		if !captured && !rendered && t.Message >= 0 && j.render == nil {
			return render.Within(j.model.lacks(j.r), where)
		}
		if !captured && !rendered {
			return rollout.Errorf(rollout.KindInput, where, "turn has neither captured prompt ids nor messages to render").
				WithFix("record prompt_ids or messages")
		}
		if err := j.completion(t, c, &text, rendered, frames); err != nil {
			return render.Within(err, where)
		}
		lt := lineage.Turn{Output: c.Cols.IDs, Logprobs: t.Logprobs, Stopped: c.Stopped(j.model.IsStop)}
		switch {
		case t.Prompt.Captured():
			if lt.Prompt = t.Prompt; j.foreign { // it may be stored against what was left out
				lt.Prompt = rollout.PromptIDs{Add: j.captured(i)}
			}
			j.attributed[i] = rendered && matcher.attribute(i, prompts)
			if t.Message >= 0 && !j.attributed[i] {
				j.report.Unattributed++
			}
		case i > 0 && j.renderedBase(i):
			lt.Prompt = rollout.PromptIDs{Base: rollout.At(i - 1), Keep: j.prompts[i].Keep, Add: j.prompts[i].Add.IDs}
			j.attributed[i] = true
		default:
			if lt.Prompt.Add = j.prompts[i].Add.IDs; j.prompts[i].Keep > 0 && !prompts.Passing {
				lt.Prompt.Add = slices.Clone(prompts.IDs())
			}
			j.attributed[i] = true
		}
		if t.Output != nil {
			j.report.Captured += len(t.Output)
		} else {
			j.report.Rendered += len(c.Cols.IDs)
		}
		j.plan[i] = lt
		if shown += j.prompts[i].N + len(lt.Output); j.opts.Mode == Merged && shown > checked {
			if err := j.joinable(i + 1); err != nil {
				return err
			}
			checked = 2 * shown
		}
		if j.opts.Mode == PerStep {
			prompts.Reserve(c.Cols.Len(), len(text.Text)+len(c.Text))
			if err := j.step(i, &prompts.Runs, matcher); err != nil {
				return err
			}
		}
		memory = c.Pack()
		j.plan[i].Output = c.Runs.IDs
		if t.Message >= 0 {
			prompts.Done[c.Message] = c
		}
	}
	return nil
}

// renderedBase reports whether turn i-1's full ids begin with its rendered
// prompt, so that turn i can be stored against it.
func (j *job) renderedBase(i int) bool {
	return !j.turns[i-1].Prompt.Captured() && j.attributed[i-1]
}

// pieces returns an encoder of pieces; release it when it is not used any more.
func (e *Encoder) pieces(sampled func(int32) bool) *tokens.Encoder {
	p, _ := e.idle.Get().(*tokens.Encoder)
	if p == nil {
		p = tokens.NewEncoder(e.model.Tokenizer, e.added, e.opts.Specials == SpecialsParity)
	}
	p.Sampled = sampled
	return p
}

// release keeps the memory of p for the next rollout.
func (e *Encoder) release(p *tokens.Encoder) {
	p.Sampled, p.Written, p.Whole, p.Prompts = nil, nil, false, p.Prompts.Emptied()
	e.idle.Put(p)
}
