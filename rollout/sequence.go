package rollout

// TokenID is a vocabulary index.
type TokenID = int32

// Flag is a bit set of facts about one token.
type Flag uint8

// The flags.
const (
	FlagSampled   Flag = 1 << iota // the policy sampled the token
	FlagContent                    // the token holds bytes of a message's content
	FlagReasoning                  // the token holds bytes of a message's reasoning
	FlagToolCall                   // the token holds bytes of a tool call
	FlagSpecial                    // an added token that was encoded as such, not as text
	FlagStop                       // the stop token of a completion
	FlagRepaired                   // a declared drift repair changed the token's spelling
)

var flagNames = []string{"sampled", "content", "reasoning", "tool_call", "special", "stop", "repaired"}

// Names returns the names of the set flags in declaration order.
func (f Flag) Names() []string {
	var out []string
	for i, n := range flagNames {
		if f&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return out
}

// Fidelity says where the ids of a sequence come from.
type Fidelity string

// The levels, best first; the zero value means not computed.
const (
	FidelityCaptured Fidelity = "captured" // every sampled token is the engine's own id
	FidelityRepaired Fidelity = "repaired" // captured, with declared drift repairs
	FidelityRendered Fidelity = "rendered" // ids were computed from text
)

// Identity says what a sequence was made from.
type Identity struct {
	Rollout     string
	Group       string
	SampleIndex int // 0-based order inside the rollout
	// FirstTurn and LastTurn bound the turns whose sampled tokens it holds; both −1 if
	// there are none.
	FirstTurn, LastTurn int
	// FirstStep and LastStep are the agent steps of those turns.
	FirstStep, LastStep int
	Fidelity            Fidelity
	Tokenizer, Template string // digests, "sha256:<hex>"
}

// Sequence is one linear token sequence, a struct of arrays. IDs, Source, Flags and Turn
// have one entry per token; Logprob, Version, Weight and Credit are nil ("not computed") or
// have one entry per token. Columns are shared between sequences and must not be changed.
// Columns.Sequence builds one, Slice cuts one, WithWeight and WithCredit add a column.
type Sequence struct {
	IDs    []TokenID
	Source []int32 // index into Rollout.Messages, −1 = scaffold, or a captured prompt that no template explains
	Flags  []Flag
	Turn   []int32 // turn whose completion the token belongs to, −1 = context

	Logprob []float32 // behaviour log probability, 0 where not sampled
	Version []int32   // policy version, −1 where not sampled
	Weight  []float32 // loss weight, 0 = masked
	Credit  []float32 // advantage or step reward

	Identity
}

// Columns are the parts of a Sequence.
type Columns struct {
	IDs     []TokenID
	Source  []int32
	Flags   []Flag
	Turn    []int32
	Logprob []float32 // nil = not recorded
	Version []int32   // nil = not recorded
}

// Sequence builds a sequence from the columns, which it keeps and which must not be changed
// afterwards. It checks them from token checked on; those before are known to hold the
// invariants, such as a beginning shared with an earlier sequence.
func (c Columns) Sequence(id Identity, checked int) (Sequence, error) {
	s := Sequence{IDs: c.IDs, Source: c.Source, Flags: c.Flags, Turn: c.Turn, Logprob: c.Logprob, Version: c.Version, Identity: id}
	if err := s.columns(); err != nil {
		return s, err
	}
	part, err := s.Slice(checked, len(c.IDs))
	if err == nil {
		err = part.Check()
	}
	return s, err
}

// Len returns the number of tokens.
func (s *Sequence) Len() int { return len(s.IDs) }

// columns checks that every column has one entry per token; optional columns may be nil.
func (s *Sequence) columns() error {
	n := len(s.IDs)
	for _, c := range []struct {
		name     string
		len      int
		optional bool
	}{
		{"Source", len(s.Source), false}, {"Flags", len(s.Flags), false}, {"Turn", len(s.Turn), false},
		{"Logprob", len(s.Logprob), s.Logprob == nil}, {"Version", len(s.Version), s.Version == nil},
		{"Weight", len(s.Weight), s.Weight == nil}, {"Credit", len(s.Credit), s.Credit == nil},
	} {
		if c.len != n && !c.optional {
			return Errorf(KindInternal, Where{Rollout: s.Rollout, Field: c.name}, "column has %d entries, IDs has %d", c.len, n)
		}
	}
	return nil
}

// Check verifies every invariant and returns the first violation, a KindInternal error with
// the token offset.
func (s *Sequence) Check() error {
	if err := s.columns(); err != nil {
		return err
	}
	at := func(i int, field string) Where {
		return Where{Rollout: s.Rollout, Token: At(i), Field: field}
	}
	for i := range s.IDs {
		sampled := s.Flags[i]&FlagSampled != 0
		switch {
		case s.IDs[i] < 0:
			return Errorf(KindInternal, at(i, "IDs"), "token id %d is negative", s.IDs[i])
		case s.Source[i] < -1:
			return Errorf(KindInternal, at(i, "Source"), "message index %d is below -1", s.Source[i])
		case sampled && s.Turn[i] < 0:
			return Errorf(KindInternal, at(i, "Turn"), "a sampled token belongs to no turn")
		case !sampled && s.Flags[i]&FlagStop != 0:
			return Errorf(KindInternal, at(i, "Flags"), "a stop token is not marked sampled")
		case s.Logprob != nil && !sampled && s.Logprob[i] != 0:
			return Errorf(KindInternal, at(i, "Logprob"), "a token that was not sampled has log probability %g", s.Logprob[i])
		case s.Logprob != nil && !(s.Logprob[i] <= 0):
			return Errorf(KindInternal, at(i, "Logprob"), "log probability %g is not in (-inf, 0]", s.Logprob[i])
		case s.Version != nil && !sampled && s.Version[i] != -1:
			return Errorf(KindInternal, at(i, "Version"), "a token that was not sampled has policy version %d", s.Version[i])
		case s.Weight != nil && s.Weight[i] != 0 && i == 0:
			return Errorf(KindInternal, at(i, "Weight"), "the first token has nothing before it and cannot be trained")
		case s.Weight != nil && !(s.Weight[i] >= 0 && s.Weight[i] < 1e30):
			return Errorf(KindInternal, at(i, "Weight"), "loss weight %g is not a finite number >= 0", s.Weight[i])
		case s.Credit != nil && s.Credit[i]-s.Credit[i] != 0:
			return Errorf(KindInternal, at(i, "Credit"), "credit %g is not finite", s.Credit[i])
		}
	}
	return nil
}

// Slice returns tokens [from, to) of s, with all columns cut to that range. The columns
// stay shared with s. A range outside s is a KindInput error; a column whose length is
// neither that of IDs nor 0 is a KindInternal error.
func (s *Sequence) Slice(from, to int) (Sequence, error) {
	for _, n := range []int{len(s.Source), len(s.Flags), len(s.Turn), len(s.Logprob), len(s.Version), len(s.Weight), len(s.Credit)} {
		if n > 0 && n != len(s.IDs) {
			return Sequence{}, s.columns()
		}
	}
	if from < 0 || to < from || to > len(s.IDs) {
		return Sequence{}, Errorf(KindInput, Where{Rollout: s.Rollout}, "cannot slice tokens [%d, %d) of %d", from, to, len(s.IDs))
	}
	out := *s
	out.IDs, out.Source, out.Flags, out.Turn = cut(s.IDs, from, to), cut(s.Source, from, to), cut(s.Flags, from, to), cut(s.Turn, from, to)
	out.Logprob, out.Version = cut(s.Logprob, from, to), cut(s.Version, from, to)
	out.Weight, out.Credit = cut(s.Weight, from, to), cut(s.Credit, from, to)
	return out, nil
}

func cut[T any](column []T, from, to int) []T {
	if len(column) == 0 {
		return column
	}
	return column[from:to:to]
}

// WithWeight returns s with loss weights w, which are kept, not copied.
func (s *Sequence) WithWeight(w []float32) (Sequence, error) {
	out := *s
	if len(w) != len(s.IDs) {
		return out, Errorf(KindInput, Where{Rollout: s.Rollout, Field: "Weight"}, "got %d weights for %d tokens", len(w), len(s.IDs))
	}
	out.Weight = w
	return out, nil
}

// WithCredit returns s with credits c, which are kept, not copied.
func (s *Sequence) WithCredit(c []float32) (Sequence, error) {
	out := *s
	if len(c) != len(s.IDs) {
		return out, Errorf(KindInput, Where{Rollout: s.Rollout, Field: "Credit"}, "got %d credits for %d tokens", len(c), len(s.IDs))
	}
	out.Credit = c
	return out, nil
}

// Trained returns the number of tokens with a positive loss weight, 0 without weights.
func (s *Sequence) Trained() int {
	n := 0
	for _, w := range s.Weight {
		if w > 0 {
			n++
		}
	}
	return n
}
