package prm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/prm/journal"
	"github.com/turnpack/turnpack/rollout"
)

// Options configures a Scorer. The zero value requests three votes per step with the built-in prompt
// and takes the mean of the valid votes.
type Options struct {
	Prompt    Prompt
	Rule      Rule
	Aggregate Aggregate
	Steps     StepOptions
	// Votes is the number of votes per step; 0 means 3.
	Votes int
	// Concurrency is the maximum number of judge calls in flight, over all rollouts and all uses of
	// the Scorer; 0 means 64. A batch of votes is one call.
	Concurrency int
	// Seed is the base of all vote seeds.
	Seed int64
	// Identity names everything else that an answer depends on: model, temperature, server. Votes in a
	// journal under another identity are not used. "" selects the result of the judge's method
	// Identity() string, if it has one, as openai.Client does.
	Identity string
	// Journal records every vote as soon as it arrives, including failed votes. A vote found in it is
	// reused; a failed vote is requested again. Score and ScoreAll return scores only after their
	// votes are on stable storage. The caller closes it. nil = votes are kept in the scores only, and
	// each call requests them again.
	Journal *journal.Journal
	// StopAfter is the number of failed votes in a row, over all rollouts, after which the run ends
	// with an error instead of failing every step; 0 = never.
	StopAfter int
	// OnVote is called with every vote as soon as it is known, from several goroutines at once.
	OnVote func(id VoteID, v rollout.Vote, resumed bool)
}

const (
	defaultVotes       = 3
	defaultConcurrency = 64
)

// Validate reports all faults at once.
func (o Options) Validate() error {
	f := faults.List{Of: "Options."}
	_, prompt := o.Prompt.Compile()
	_, rule := o.Rule.Compile()
	f.Join(o.Aggregate.validate(), o.Steps.validate(), prompt, rule)
	f.Count("Votes", o.Votes)
	f.Count("Concurrency", o.Concurrency)
	f.Count("StopAfter", o.StopAfter)
	if o.Rule.Kind == "regex" && o.Prompt.System == "" && o.Prompt.Verdict == "" {
		f.Join(rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options.Prompt.Verdict"}, "a regex rule needs a prompt that asks for what it matches").WithFix("say in Prompt.Verdict how the judge must answer, or set Prompt.System"))
	}
	if votes := cmp.Or(o.Votes, defaultVotes); o.Aggregate.Quorum > votes {
		f.Add("Aggregate.Quorum", "%d valid votes can never come from %d votes", o.Aggregate.Quorum, votes)
	}
	return f.Err()
}

// Scorer requests the votes on every step from a judge. It is safe for concurrent use; all its uses
// share one bound on judge calls in flight.
type Scorer struct {
	judge  Judge
	batch  BatchJudge // nil if votes are requested one by one
	o      Options
	prompt *Builder
	parse  Parser
	slots  *semaphore.Weighted
	size   int64

	failedInRow atomic.Int64
}

// NewScorer returns a Scorer, or an error that reports all faults of the options.
func NewScorer(judge Judge, o Options) (*Scorer, error) {
	if judge == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "judge"}, "expected a judge, found nil")
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.Votes = cmp.Or(o.Votes, defaultVotes)
	o.Concurrency = cmp.Or(o.Concurrency, defaultConcurrency)
	s := &Scorer{judge: judge, o: o, size: int64(o.Concurrency), slots: semaphore.NewWeighted(int64(o.Concurrency))}
	if named, ok := judge.(interface{ Identity() string }); ok && o.Identity == "" {
		s.o.Identity = named.Identity()
	}
	s.batch, _ = judge.(BatchJudge)
	o.Prompt.Verdict = cmp.Or(o.Prompt.Verdict, verdictFor(o.Rule))
	var errPrompt, errRule error
	s.prompt, errPrompt = o.Prompt.Compile()
	s.parse, errRule = o.Rule.Compile()
	return s, errors.Join(errPrompt, errRule)
}

// Score returns one score per step of r, by step number. Failed votes are part of the result; an error
// means a cancelled context, a journal that cannot be written, a prompt that cannot be built, or
// StopAfter.
func (s *Scorer) Score(ctx context.Context, r *rollout.Rollout) ([]rollout.StepScore, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := s.start(ctx, cancel, r)
	return s.finish(ctx, p)
}

// pending is a rollout whose steps are being scored.
type pending struct {
	r      *rollout.Rollout
	scores []rollout.StepScore
	wait   sync.WaitGroup
}

// start begins scoring the steps of a rollout, in order, and returns when the first votes of the last
// step are in flight.
func (s *Scorer) start(ctx context.Context, cancel context.CancelCauseFunc, r *rollout.Rollout) *pending {
	p := &pending{r: r}
	if s.judge == nil {
		cancel(zero.Value("prm.Scorer", "NewScorer"))
		return p
	}
	var err error
	p.scores, err = s.each(r, func(steps []Step, i int, out *rollout.StepScore) error {
		messages, err := s.prompt.Build(r, steps, i)
		if err != nil {
			return err
		}
		t := s.task(r.ID, steps[i].Index, messages, out)
		wave, err := t.begin(ctx)
		if wave != nil && err == nil {
			p.wait.Go(func() {
				if err := t.run(ctx, wave); err != nil {
					cancel(err)
				}
			})
		}
		return err
	})
	if err != nil {
		cancel(err)
	}
	return p
}

// each returns the scores of the steps of r: those that need no judge are set, and judge is called with
// the others, in order.
func (s *Scorer) each(r *rollout.Rollout, judge func(steps []Step, i int, out *rollout.StepScore) error) ([]rollout.StepScore, error) {
	if r == nil {
		return nil, zero.Rollout()
	}
	steps := StepsOf(r)
	scores := make([]rollout.StepScore, len(steps))
	for i := range steps {
		scores[i].Step = steps[i].Index
		if scoreWithoutJudge(&scores[i], &steps[i], s.o.Steps.policy(steps[i].Class)) {
			continue
		}
		if err := judge(steps, i, &scores[i]); err != nil {
			return nil, err
		}
	}
	return scores, nil
}

// finish waits until the votes of a rollout are complete and on stable storage, and returns the
// scores.
func (s *Scorer) finish(ctx context.Context, p *pending) ([]rollout.StepScore, error) {
	p.wait.Wait()
	if ctx.Err() != nil {
		return nil, stoppedError(ctx, p.r)
	}
	if s.o.Journal != nil {
		if err := s.o.Journal.Sync(); err != nil {
			return nil, err
		}
	}
	return p.scores, nil
}

// stoppedError returns the error of a run that ended early.
func stoppedError(ctx context.Context, r *rollout.Rollout) error {
	cause := context.Cause(ctx)
	if e, ok := errors.AsType[*rollout.Error](cause); ok {
		return e
	}
	var at rollout.Where
	if r != nil {
		at.Rollout = r.ID
	}
	return rollout.Errorf(rollout.KindJudge, at, "scoring stopped: %w", cause)
}

// scoreWithoutJudge sets out for a step that needs no judge, and reports whether the step is one.
func scoreWithoutJudge(out *rollout.StepScore, step *Step, policy string) bool {
	switch {
	case step.Unrecorded: // its class is unknown too
		out.Reason = "the text of this step was not recorded"
	case policy == "skip":
		out.Reason = skippedPrefix + step.Class + " step"
	case policy == "neutral":
		out.Score, out.Reason = new(0.0), "neutral: "+step.Class+" step"
	default:
		return false
	}
	return true
}

// digest returns a hash of the prompt and everything else that determines the answer, except the vote
// number.
func (s *Scorer) digest(messages []Message) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, part := range []any{s.o.Identity, s.o.Seed, messages} {
		_ = enc.Encode(part) // writing to a hash and encoding these types do not fail
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// task is one step that is being scored.
type task struct {
	s        *Scorer
	id       VoteID // Vote unused
	messages []Message
	digest   string
	votes    []rollout.Vote
	out      *rollout.StepScore
	batch    bool  // the current wave is requested as a batch
	held     int64 // number of slots held
}

func (s *Scorer) task(id string, step int, messages []Message, out *rollout.StepScore) *task {
	return &task{s: s, id: VoteID{Rollout: id, Step: step}, messages: messages, digest: s.digest(messages), out: out}
}

// begin returns the votes to request now, with slots acquired for them; nil if the step is decided,
// and then its score is set.
func (t *task) begin(ctx context.Context) ([]int, error) {
	wave, err := t.next()
	if err != nil {
		return nil, err
	}
	if wave == nil {
		t.out.Votes = t.votes
		t.out.Score, t.out.Reason = t.s.o.Aggregate.Score(t.votes, t.s.o.Votes)
		return nil, nil
	}
	t.batch = t.s.batch != nil && t.s.batch.Batches()
	return wave, t.acquire(ctx, len(wave))
}

// acquire acquires the slots for n votes: one for a batch, else one each, up to the concurrency bound.
func (t *task) acquire(ctx context.Context, n int) error {
	want := min(int64(n), t.s.size)
	if t.batch {
		want = 1
	}
	err := t.s.slots.Acquire(ctx, want)
	if err == nil {
		t.held = want
	}
	return err
}

func (t *task) release() {
	t.s.slots.Release(t.held)
	t.held = 0
}

func (t *task) key(vote int) journal.Key {
	return journal.Key{Rollout: t.id.Rollout, Step: t.id.Step, Vote: vote, Prompt: t.digest}
}

// next counts the votes in the journal and returns the numbers of the votes to request now, none if
// the step is decided. The numbers are consecutive.
func (t *task) next() ([]int, error) {
	for {
		need := t.s.o.Aggregate.needed(t.votes, t.s.o.Votes)
		if need == 0 {
			return nil, nil
		}
		var wave []int
		for v := len(t.votes); v < len(t.votes)+need; v++ {
			wave = append(wave, v)
		}
		if t.s.o.Journal == nil {
			return wave, nil
		}
		for ; len(wave) > 0; wave = wave[1:] {
			rec, ok, err := t.s.o.Journal.Lookup(t.key(wave[0]))
			if err != nil || !ok {
				return wave, err
			}
			t.count(rec, true)
		}
	}
}

// count appends a record as the next vote.
func (t *task) count(rec journal.Record, resumed bool) {
	v := rollout.Vote{Text: rec.Text, Error: rec.Error, Millis: rec.Millis, Tokens: rec.CompletionTokens}
	if rec.Error == "" {
		switch score, err := t.s.parse(rec.Text); {
		case err == nil:
			v.Score = &score
		case rec.FinishReason == "length":
			v.Error = "the answer was cut off by its length limit: " + err.Error()
		default:
			v.Error = err.Error()
		}
	}
	t.votes = append(t.votes, v)
	if t.s.o.OnVote != nil {
		id := t.id
		id.Vote = rec.Vote
		t.s.o.OnVote(id, v, resumed)
	}
}

// run requests votes wave by wave until the step is decided. The slots of the first wave must be held
// on entry.
func (t *task) run(ctx context.Context, wave []int) error {
	for {
		records, known, err := t.ask(ctx, wave)
		t.release()
		if err != nil {
			return err
		}
		for i, rec := range records {
			t.count(rec, known[i])
		}
		if wave, err = t.begin(ctx); err != nil || wave == nil {
			return err
		}
	}
}

// ask requests the votes of a wave together and journals them. Votes of the wave that are already in
// the journal are not requested again; known marks them.
func (t *task) ask(ctx context.Context, wave []int) (records []journal.Record, known []bool, err error) {
	records = make([]journal.Record, len(wave))
	known = make([]bool, len(wave))
	var missing []int // positions in wave
	for i, vote := range wave {
		if j := t.s.o.Journal; j != nil {
			rec, ok, err := j.Lookup(t.key(vote))
			if err != nil {
				return nil, nil, err
			}
			if records[i], known[i] = rec, ok; ok {
				continue
			}
		}
		missing = append(missing, i)
	}
	if t.batch && len(missing) > 1 {
		n, err := t.askBatch(ctx, wave, missing, records)
		if err != nil {
			return nil, nil, err
		}
		if missing = missing[n:]; len(missing) > 0 {
			// One slot was enough for the batch; the remaining votes need one each.
			t.release()
			t.batch = false
			if err := t.acquire(ctx, len(missing)); err != nil {
				return nil, nil, err
			}
		}
	}
	var g errgroup.Group
	g.SetLimit(int(t.held)) // a wave may be larger than the bound
	for _, i := range missing {
		g.Go(func() error { return t.askOne(ctx, wave[i], &records[i]) })
	}
	return records, known, g.Wait()
}

func (t *task) request(vote int) Request {
	id := t.id
	id.Vote = vote
	return Request{Messages: t.messages, Seed: Seed(t.s.o.Seed, id), ID: id}
}

func (t *task) askOne(ctx context.Context, vote int, rec *journal.Record) error {
	req := t.request(vote)
	began := time.Now()
	reply, err := t.s.judge.Judge(ctx, req)
	if ctx.Err() != nil && err != nil {
		return context.Cause(ctx)
	}
	*rec = t.record(req, reply, err, time.Since(began))
	return t.keep(*rec)
}

// askBatch requests the missing votes in one call, journals the replies together and returns their
// number.
func (t *task) askBatch(ctx context.Context, wave, missing []int, records []journal.Record) (int, error) {
	req := t.request(wave[missing[0]])
	began := time.Now()
	replies, err := t.s.batch.JudgeN(ctx, req, len(missing))
	if ctx.Err() != nil && err != nil {
		return 0, context.Cause(ctx)
	}
	if err == nil && len(replies) == 0 {
		err = rollout.Errorf(rollout.KindJudge, rollout.Where{Rollout: t.id.Rollout}, "expected 1 to %d replies, found none", len(missing))
	}
	n := min(len(replies), len(missing))
	if err != nil {
		n = len(missing)
		replies = make([]Reply, n)
	}
	fresh := make([]journal.Record, n)
	for i := range fresh {
		fresh[i] = t.record(req, replies[i], err, time.Since(began))
		fresh[i].Vote = wave[missing[i]]
		records[missing[i]] = fresh[i]
	}
	return n, t.keep(fresh...)
}

func (t *task) record(req Request, reply Reply, err error, took time.Duration) journal.Record {
	rec := journal.Record{Key: t.key(req.ID.Vote), Seed: req.Seed}
	if reply.Latency > 0 {
		took = reply.Latency
	}
	rec.Millis = took.Milliseconds()
	if err != nil {
		rec.Error = err.Error()
		return rec
	}
	rec.Text, rec.FinishReason = reply.Text, reply.FinishReason
	rec.PromptTokens, rec.CompletionTokens = reply.PromptTokens, reply.CompletionTokens
	return rec
}

// keep journals new votes, and returns an error after StopAfter failed votes in a row.
func (t *task) keep(records ...journal.Record) error {
	if t.s.o.Journal != nil {
		if err := t.s.o.Journal.Append(records...); err != nil {
			return err
		}
	}
	for _, rec := range records {
		if rec.Error == "" {
			t.s.failedInRow.Store(0)
			continue
		}
		if n := t.s.failedInRow.Add(1); t.s.o.StopAfter > 0 && n >= int64(t.s.o.StopAfter) {
			return rollout.Errorf(rollout.KindJudge, rollout.Where{Rollout: rec.Rollout, Field: "StopAfter"}, "%d votes in a row failed, the last one with: %s", n, rec.Error).WithFix("check the judge's address, model and key, then start again: votes in the journal are kept")
		}
	}
	return nil
}
