package rollout

// Token is one token with all it is known by; a SequenceBuilder takes it apart.
type Token struct {
	ID     TokenID
	Source int32 // message index, −1 = scaffold
	Turn   int32 // turn, −1 = context
	Flags  Flag
}

// SequenceBuilder makes sequences. The zero value is ready; Build resets it and
// hands its memory to the sequence.
type SequenceBuilder struct {
	seq        Sequence
	hasLogprob bool
	hasVersion bool
	err        error
}

// Len is the number of tokens added so far.
func (b *SequenceBuilder) Len() int { return len(b.seq.IDs) }

// Add appends one token.
func (b *SequenceBuilder) Add(t Token) {
	b.seq.IDs = append(b.seq.IDs, t.ID)
	b.seq.Source = append(b.seq.Source, t.Source)
	b.seq.Flags = append(b.seq.Flags, t.Flags)
	b.seq.Turn = append(b.seq.Turn, t.Turn)
	if b.hasLogprob {
		b.seq.Logprob = append(b.seq.Logprob, 0)
	}
	if b.hasVersion {
		b.seq.Version = append(b.seq.Version, -1)
	}
}

// AddColumns appends whole columns of equal length. It keeps the first ones, which
// must not be changed afterwards; others it copies.
func (b *SequenceBuilder) AddColumns(ids []TokenID, source []int32, flags []Flag, turn []int32) {
	if b.seq.IDs == nil {
		b.seq.IDs, b.seq.Source, b.seq.Flags, b.seq.Turn = ids, source, flags, turn
		return
	}
	b.seq.IDs = append(b.seq.IDs, ids...)
	b.seq.Source = append(b.seq.Source, source...)
	b.seq.Flags = append(b.seq.Flags, flags...)
	b.seq.Turn = append(b.seq.Turn, turn...)
	if b.hasLogprob {
		b.seq.Logprob = append(b.seq.Logprob, make([]float32, len(ids))...)
	}
	if b.hasVersion {
		b.seq.Version = padVersion(b.seq.Version, len(b.seq.IDs))
	}
}

// SetLogprobs records the behaviour log probabilities of the tokens from offset
// at on, opening the column if needed (0 elsewhere).
func (b *SequenceBuilder) SetLogprobs(at int, lp []float32) {
	if !b.holds(at, len(lp), "Logprob") {
		return
	}
	if !b.hasLogprob {
		b.hasLogprob = true
		b.seq.Logprob = make([]float32, len(b.seq.IDs))
	}
	copy(b.seq.Logprob[at:], lp)
}

// SetVersion records the policy version of n tokens from offset at on, opening
// the column if needed (−1 elsewhere).
func (b *SequenceBuilder) SetVersion(at, n int, version int32) {
	if !b.holds(at, n, "Version") {
		return
	}
	if !b.hasVersion {
		b.hasVersion = true
		b.seq.Version = padVersion(nil, len(b.seq.IDs))
	}
	for i := at; i < at+n; i++ {
		b.seq.Version[i] = version
	}
}

// SetVersions is SetVersion for tokens of several versions, one per token from
// offset at on.
func (b *SequenceBuilder) SetVersions(at int, versions []int32) {
	if len(versions) == 0 {
		return
	}
	if b.SetVersion(at, len(versions), versions[0]); b.err == nil {
		copy(b.seq.Version[at:], versions)
	}
}

// holds reports whether n tokens from offset at on were added; if not, Build fails.
func (b *SequenceBuilder) holds(at, n int, column string) bool {
	if at < 0 || n < 0 || at+n > len(b.seq.IDs) {
		if b.err == nil {
			b.err = Errorf(KindInternal, Where{Field: column}, "set for tokens [%d, %d) of %d", at, at+n, len(b.seq.IDs))
		}
		return false
	}
	return true
}

func padVersion(v []int32, n int) []int32 {
	for len(v) < n {
		v = append(v, -1)
	}
	return v
}

// Build checks the sequence and returns it; the builder is empty afterwards.
func (b *SequenceBuilder) Build(id Identity) (Sequence, error) {
	out, failed := b.seq, b.err
	out.Identity = id
	*b = SequenceBuilder{}
	for _, c := range []*[]int32{&out.IDs, &out.Source, &out.Turn} {
		if *c == nil {
			*c = []int32{}
		}
	}
	if out.Flags == nil {
		out.Flags = []Flag{}
	}
	if failed != nil {
		return out, failed
	}
	return out, out.Check()
}

// Columns are the columns of a sequence that exist already: an encoder whose
// rows share memory hands them over instead of adding tokens one by one.
type Columns struct {
	IDs     []TokenID
	Source  []int32
	Flags   []Flag
	Turn    []int32
	Logprob []float32 // nil = not recorded
	Version []int32   // nil = not recorded
}

// Sequence makes a sequence of the columns, which it keeps and which must not be
// changed afterwards. It checks them from token checked on: those before are
// known to hold the invariants, as a shared beginning of an earlier sequence
// does.
func (c Columns) Sequence(id Identity, checked int) (Sequence, error) {
	s := Sequence{IDs: c.IDs, Source: c.Source, Flags: c.Flags, Turn: c.Turn, Logprob: c.Logprob, Version: c.Version, Identity: id}
	part, err := s.Slice(checked, len(c.IDs))
	if err == nil {
		err = part.Check()
	}
	return s, err
}
