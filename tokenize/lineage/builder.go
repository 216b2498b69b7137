package lineage

import "github.com/turnpack/turnpack/rollout"

// builder takes the turns of one rollout as they happen and gives its rows at
// the end. It holds the distinct ids of the rollout, not one prompt per turn.
// A builder is for one goroutine.
type builder struct {
	opts  Options
	trie  *trie
	turns []record
	done  bool

	// The last prompt given in plain ids. The next one usually repeats it, and
	// one memory compare then replaces the way down the tree.
	plain      []rollout.TokenID
	plainTurn  int
	plainKnown bool
}

// record is what is kept of a turn: its place in the tree instead of its prompt.
type record struct {
	output            []rollout.TokenID
	logprobs          []float32
	stopped, excluded bool
	prompt, full      int32 // nodes
	pLen              int
}

func (r *record) fLen() int     { return r.pLen + len(r.output) }
func (r *record) empty() bool   { return len(r.output) == 0 }
func (r *record) trained() bool { return len(r.output) > 0 && !r.excluded }

// newBuilder checks opts and returns a builder without turns.
func newBuilder(opts Options) (*builder, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	return &builder{opts: opts}, nil
}

// begin readies a builder, of zero value or not, when it is used for the first time.
func (b *builder) begin() {
	if b.trie == nil {
		b.opts, b.trie = b.opts.withDefaults(), newTrie()
	}
}

// Add records the next turn and returns its index, which Prompt.Base of later
// turns may name. On an error, of kind input and located, nothing is recorded.
func (b *builder) Add(t Turn) (int, error) {
	b.begin()
	index := len(b.turns)
	if b.done {
		return 0, rollout.Errorf(rollout.KindInput, rollout.Where{Turn: rollout.At(index)}, "turn added after Finish").
			WithFix("start a new builder for the next rollout")
	}
	if err := t.check(index, func(i int) int { return b.turns[i].fLen() }); err != nil {
		return 0, err
	}
	r := record{output: t.Output, logprobs: t.Logprobs, stopped: t.Stopped, excluded: t.Excluded}
	var at position
	if base, ok := t.Prompt.Base.Get(); ok {
		at = b.trie.walk(b.trie.locate(b.turns[base].full, t.Prompt.Keep), t.Prompt.Add, false)
	} else {
		at = b.walkPlain(t.Prompt.Add, index)
	}
	r.pLen = at.depth
	r.prompt = b.trie.split(at)
	r.full = b.trie.split(b.trie.walk(position{r.prompt, r.pLen}, t.Output, false))
	b.turns = append(b.turns, r)
	return index, nil
}

func (b *builder) walkPlain(ids []rollout.TokenID, index int) position {
	var at position
	if b.plainKnown {
		last := &b.turns[b.plainTurn]
		keep := commonPrefix(b.plain, ids)
		if keep == len(b.plain) {
			keep += commonPrefix(last.output, ids[keep:])
		}
		at = b.trie.locate(last.full, keep)
	}
	b.plain, b.plainTurn, b.plainKnown = ids, index, true
	return b.trie.walk(at, ids[at.depth:], true)
}

// Finish merges the turns added so far. The builder takes no more turns. Under
// DriftRefuse the error is of kind drift.
func (b *builder) Finish() (*Result, error) {
	b.begin()
	b.done = true
	m := newMerge(b.opts, b.trie, b.turns)
	m.attach()
	m.explain()
	switch {
	case b.opts.Drift == DriftRefuse:
		if err := m.refuse(); err != nil {
			return nil, err
		}
	case b.opts.Drift != DriftFork:
		m.repair()
	}
	res := &Result{merge: m}
	res.emit()
	res.limitStopLoss(b.opts.MaxStopLossShare)
	return res, nil
}

// Merge merges one recorded rollout. The result does not depend on the order of
// turns, up to which of several equal rows owns a shared turn.
func Merge(turns []Turn, opts Options) (*Result, error) {
	b, err := newBuilder(opts)
	if err != nil {
		return nil, err
	}
	b.turns = make([]record, 0, len(turns))
	for _, t := range turns {
		if _, err := b.Add(t); err != nil {
			return nil, err
		}
	}
	return b.Finish()
}
