package live_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/embedded"
)

type ids = []rollout.TokenID

// sample is the output that an engine sampled for a call: each token has a unique log probability.
type sample struct {
	prompt, output ids
	logprobs       []float32
	trained        bool
}

func (s *sample) full() ids { return slices.Concat(s.prompt, s.output) }

// harness drives a recorder as random agents do, and remembers what was sampled.
type harness struct {
	t       *testing.T
	rng     *rand.Rand
	rec     *live.Recorder
	root    *live.Session
	agents  []*agent
	samples map[string]*sample // by call
	serial  int
	words   int // few, so that contexts coincide by chance; many, so that they do not
}

type agent struct {
	session *live.Session
	context ids
	before  []ids // earlier contexts
}

func start(t *testing.T, seed uint64, rec *live.Recorder) *harness {
	h := &harness{t: t, rng: rand.New(rand.NewPCG(seed, 26)), rec: rec, samples: map[string]*sample{}}
	h.words = []int{2, 150}[h.rng.IntN(2)]
	var err error
	h.root, err = rec.Begin(t.Context(), live.Start{ID: fmt.Sprint("r", seed), Group: "g"})
	require.NoError(t, err)
	h.agents = []*agent{{session: h.root, context: h.some(4)}}
	return h
}

func (h *harness) some(most int) ids {
	out := make(ids, 1+h.rng.IntN(most))
	for i := range out {
		out[i] = rollout.TokenID(10 + h.rng.IntN(h.words))
	}
	return out
}

// begin begins a call of an agent, and draws the sample for it.
func (h *harness) begin(a *agent, replaces string) (*live.Call, *sample) {
	s := &sample{prompt: slices.Clone(a.context), output: h.some(6)}
	for range s.output {
		h.serial++
		s.logprobs = append(s.logprobs, -float32(h.serial)/8192)
	}
	request := live.Request{Replaces: replaces, Dialect: "chat"}
	if h.rng.IntN(2) == 0 {
		request.Prompt = s.prompt
	}
	c, err := a.session.Begin(h.t.Context(), request)
	require.NoError(h.t, err)
	h.samples[c.ID()] = s
	return c, s
}

// end ends a call, with its ids in parts or at once.
func (h *harness) end(c *live.Call, s *sample, r live.Reply) {
	n := h.rng.IntN(len(s.output) + 1)
	require.NoError(h.t, c.Append(s.output[:n], s.logprobs[:n], nil))
	r.Prompt, r.Output, r.Logprobs = s.prompt, s.output[n:], s.logprobs[n:]
	r.Usage = live.Usage{PromptTokens: len(s.prompt), CompletionTokens: len(s.output)}
	require.NoError(h.t, c.End(h.t.Context(), r))
	s.trained = !r.Unseen
}

// step does one random thing.
func (h *harness) step() {
	a := h.agents[h.rng.IntN(len(h.agents))]
	switch h.rng.IntN(12) {
	case 0: // a subagent, from the current context or a new one
		child, err := h.rec.Begin(h.t.Context(), live.Start{Parent: a.session.ID(), Agent: "sub"})
		require.NoError(h.t, err)
		b := &agent{session: child, context: h.some(5)}
		if h.rng.IntN(2) == 0 {
			b.context = append(slices.Clone(a.context), h.some(3)...)
		}
		h.agents = append(h.agents, b)
	case 1: // compaction
		a.before = append(a.before, a.context)
		a.context = append(slices.Clone(a.context[:h.rng.IntN(len(a.context))]), h.some(4)...)
	case 2: // A/B/A
		if n := len(a.before); n > 0 {
			a.context, a.before[n-1] = append(slices.Clone(a.before[n-1]), h.some(2)...), a.context
		}
	case 3: // aborted with a part of the output, and requested again
		c, s := h.begin(a, "")
		s.output = s.output[:h.rng.IntN(len(s.output)+1)]
		s.logprobs = s.logprobs[:len(s.output)]
		require.NoError(h.t, c.Prompt(s.prompt))
		require.NoError(h.t, c.Append(s.output, s.logprobs, nil))
		require.NoError(h.t, c.Abort(h.t.Context(), "the client went away"))
		if h.rng.IntN(3) == 0 { // the agent continues from the partial output
			a.context = append(s.full(), h.some(2)...)
		}
	case 4: // a retry with another sample
		c, s := h.begin(a, "")
		h.end(c, s, live.Reply{})
		again, other := h.begin(a, c.ID())
		s.trained = false
		h.end(again, other, live.Reply{})
		a.context = append(other.full(), h.some(3)...)
	case 5: // several concurrent calls that end in another order
		var calls []*live.Call
		for range 2 + h.rng.IntN(3) {
			c, _ := h.begin(h.agents[h.rng.IntN(len(h.agents))], "")
			calls = append(calls, c)
		}
		h.rng.Shuffle(len(calls), func(i, k int) { calls[i], calls[k] = calls[k], calls[i] })
		for _, c := range calls {
			h.end(c, h.samples[c.ID()], live.Reply{})
		}
		a.context = append(h.samples[calls[0].ID()].full(), h.some(2)...)
	case 6: // the client is gone when the reply arrives, and may learn of it later
		c, s := h.begin(a, "")
		h.end(c, s, live.Reply{Unseen: true})
		if h.rng.IntN(2) == 0 {
			require.NoError(h.t, a.session.Mark(h.t.Context(), c.ID(), live.StateOK, ""))
			s.trained = true
		}
	case 7: // an engine that reports wrong data
		c, s := h.begin(a, "")
		lie := live.Reply{Prompt: s.prompt, Output: s.output, Logprobs: s.logprobs, Usage: live.Usage{CompletionTokens: len(s.output) + 1}}
		if h.rng.IntN(2) == 0 {
			lie.Usage.CompletionTokens, lie.Logprobs = 0, s.logprobs[1:]
		}
		require.NoError(h.t, c.End(h.t.Context(), lie))
		state, why := became(a.session, c)
		require.Equal(h.t, live.StateIncomplete, state)
		require.NotEmpty(h.t, why)
	default:
		c, s := h.begin(a, "")
		h.end(c, s, live.Reply{FinishReason: "stop"})
		a.context = append(s.full(), h.some(3)...)
	}
}

// expected returns the samples to be trained: those that were used, whatever the state of the call.
func (h *harness) expected() (out []*sample) {
	calls := callsOf(h.t, h.root)
	for _, c := range calls {
		s := h.samples[c.ID]
		if len(s.output) > 0 && c.State != live.StateIncomplete && (s.trained || c.Used) {
			out = append(out, s)
		}
		if c.Used {
			require.True(h.t, slices.ContainsFunc(calls, func(later live.CallInfo) bool {
				o, full := h.samples[later.ID], s.full()
				return later.ID != c.ID && len(o.prompt) >= len(full) && slices.Equal(o.prompt[:len(full)], full)
			}), "no prompt goes on from call %s", c.ID)
		}
	}
	return out
}

// optimum returns the least number of rows: the turns minus the most turns that can follow another one.
func optimum(samples []*sample) int {
	n := len(samples)
	after := make([]int, n) // the turn that each one follows
	for i := range after {
		after[i] = -1
	}
	var try func(i int, seen []bool) bool
	try = func(i int, seen []bool) bool {
		full := samples[i].full()
		for k, s := range samples {
			if k == i || seen[k] || len(s.prompt) < len(full) || !slices.Equal(s.prompt[:len(full)], full) {
				continue
			}
			seen[k] = true
			if after[k] < 0 || try(after[k], seen) {
				after[k] = i
				return true
			}
		}
		return false
	}
	rows := n
	for i := range samples {
		if try(i, make([]bool, n)) {
			rows--
		}
	}
	return rows
}

func options(seed uint64, j *live.Journal) live.Options {
	n := 0
	return live.Options{Journal: j,
		NewID: func() string { n++; return fmt.Sprintf("call-%d-%d", seed, n) },
		Now: func() time.Time { // a clock that jumps both ways
			n++
			return time.Unix(int64(n*7919%100_000), 0)
		}}
}

// Whatever a harness does, each sampled token to be trained is trained once, in the context in which it was
// sampled, with its own log probability, in the fewest possible rows; and a journal yields the same rollout.
func TestTrainedIsSampled(t *testing.T) {
	model, err := embedded.Model()
	require.NoError(t, err)
	enc, err := tokenize.NewEncoder(model, tokenize.Options{})
	require.NoError(t, err)
	rounds := 400
	if testing.Short() {
		rounds = 60
	}
	rows, trained := 0, 0
	for seed := range uint64(rounds) {
		dir := t.TempDir()
		var j *live.Journal
		if seed%4 < 2 {
			j, err = live.OpenJournal(dir, live.JournalOptions{SegmentBytes: 4 << 10})
			require.NoError(t, err)
		}
		rec, err := live.New(options(seed, j))
		require.NoError(t, err)
		h := start(t, seed, rec)
		for range 1 + h.rng.IntN(25) {
			h.step()
			if h.rng.IntN(8) == 0 { // at any moment
				h.check(enc)
			}
		}
		n, m := h.check(enc)
		rows, trained = rows+n, trained+m
		if j == nil {
			continue
		}
		before, err := h.root.Rollout()
		require.NoError(t, err)
		require.NoError(t, j.Close())
		j, err = live.OpenJournal(dir, live.JournalOptions{})
		require.NoError(t, err)
		again, err := live.New(options(seed, j))
		require.NoError(t, err)
		s, ok := again.Session(h.root.ID())
		require.True(t, ok)
		after, err := s.Rollout()
		require.NoError(t, err)
		require.Equal(t, lines(t, before), lines(t, after), "seed %d", seed)
		require.Equal(t, callsOf(t, h.root), callsOf(t, s), "seed %d", seed)
		require.NoError(t, j.Close())
		require.NoError(t, os.RemoveAll(dir))
	}
	t.Logf("%d rounds, %d rows, %d tokens trained", rounds, rows, trained)
}

func lines(t *testing.T, rollouts ...*rollout.Rollout) string {
	t.Helper()
	var out []byte
	var err error
	for _, r := range rollouts {
		out, err = jsonl.Append(out, r)
		require.NoError(t, err)
		out = append(out, '\n')
	}
	return string(out)
}

func (h *harness) check(enc *tokenize.Encoder) (rows, trained int) {
	t := h.t
	r, err := h.root.Rollout()
	require.NoError(t, err)
	require.NoError(t, r.Validate())
	want := h.expected()
	byLogprob := map[float32]*sample{}
	for _, s := range want {
		for _, lp := range s.logprobs {
			byLogprob[lp] = s
		}
	}
	if len(want) == 0 {
		return 0, 0
	}
	seqs, _, err := enc.Encode(context.Background(), r)
	require.NoError(t, err)
	seen := map[float32]bool{}
	for _, q := range seqs {
		for i, f := range q.Flags {
			if f&rollout.FlagSampled == 0 || q.Turn[i] < 0 {
				continue
			}
			lp := q.Logprob[i]
			s := byLogprob[lp]
			require.NotNil(t, s, "a token that is not to be trained")
			require.False(t, seen[lp], "trained twice")
			seen[lp] = true
			k := slices.Index(s.logprobs, lp)
			require.Equal(t, s.output[k], q.IDs[i])
			full := s.full()[:len(s.prompt)+k]
			require.Equal(t, full, ids(q.IDs[:i]), "its context is what the model saw")
		}
	}
	require.Equal(t, len(byLogprob), len(seen), "each sampled token is trained")
	require.Len(t, seqs, optimum(want))
	return len(seqs), len(seen)
}
