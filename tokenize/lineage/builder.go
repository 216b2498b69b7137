package lineage

import "github.com/turnpack/turnpack/rollout"

// builder collects the turns of one rollout and merges them into rows. It holds the distinct ids of
// the rollout, not one prompt per turn.
type builder struct {
	opts  Options
	trie  *trie
	turns []record

	// The last prompt given in plain ids. The next prompt usually repeats it, so that a memory
	// compare replaces the walk down the tree.
	plain      []rollout.TokenID
	plainTurn  int
	plainKnown bool
}

// record is what is stored of a turn: its place in the tree instead of its prompt.
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
	return &builder{opts: opts.withDefaults(), trie: newTrie()}, nil
}

// add records the next turn and returns its index, which Prompt.Base of later turns may name. On an
// error, which is of kind input and located, nothing is recorded.
func (b *builder) add(t Turn) (int, error) {
	index := len(b.turns)
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
		at = b.trie.locate(b.turns[b.plainTurn].full, commonPrefix(b.plain, ids))
	}
	b.plain, b.plainTurn, b.plainKnown = ids, index, true
	return b.trie.walk(at, ids[at.depth:], true)
}

// finish merges the added turns; none may be added afterwards. With the policy "refuse" the error
// is of kind drift.
func (b *builder) finish() (*Result, error) {
	m := newMerge(b.opts, b.trie, b.turns)
	m.attach()
	m.explain()
	switch {
	case b.opts.Drift == driftRefuse:
		if err := m.refuse(); err != nil {
			return nil, err
		}
	case b.opts.Drift != driftFork:
		m.repair()
	}
	res := &Result{merge: m}
	res.emit()
	res.limitStopLoss(b.opts.MaxStopLossShare)
	return res, nil
}

// Merge merges one recorded rollout. The result does not depend on the order of turns, except for
// which of several equal rows owns a shared turn.
func Merge(turns []Turn, opts Options) (*Result, error) {
	b, err := newBuilder(opts)
	if err != nil {
		return nil, err
	}
	b.turns = make([]record, 0, len(turns))
	for _, t := range turns {
		if _, err := b.add(t); err != nil {
			return nil, err
		}
	}
	return b.finish()
}
