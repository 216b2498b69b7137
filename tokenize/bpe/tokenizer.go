package bpe

import (
	"math"
	"sync"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/model"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/norm"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/pretok"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/added"
	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// tokenizer keeps working memory for as many callers as can run at once, up to 12 MiB each, for texts of any length.
type tokenizer struct {
	u           *uni.Tables
	normalizers []norm.Normalizer
	form        *norm.Form // the only normalizer, if it is a normal form, else nil
	model       *model.Model
	splitter    pretok.Splitter // one scanner for the whole pre-tokenizer, or nil
	stages      []pretok.Stage  // used if splitter is nil
	raw         bool            // the model takes pieces as plain bytes
	exact       bool            // offsets are not widened to whole characters
	timed       bool            // a pattern that may backtrack matches the text
	trim        []trimmer
	measured    bool // if the normalizer changes nothing, token widths divide the text
	decoder     chain
	digest      string

	// added tokens to find in the text itself, and in the normalised text
	early, late               []engine.AddedToken
	earlyMatcher, lateMatcher *added.Matcher
	// respelled maps added tokens to their normalised spelling if it differs from their content; the reference
	// searches for it and prints it
	respelled map[rollout.TokenID]string

	facts *facts
	bytes func() *byteTable // bytes that each id decodes to, if decoding joins bytes; built on first use

	measure sync.Once
	widths  []uint16 // by id; built by measure

	mu   sync.Mutex
	idle []*encoder // encoders not in use
}

var (
	_ engine.Tokenizer = (*tokenizer)(nil)
	_ engine.Measured  = (*tokenizer)(nil)
)

// normalize applies the normalizers in order.
func (t *tokenizer) normalize(text *norm.Text) error {
	for _, n := range t.normalizers {
		if err := n(t.u, text); err != nil {
			return err
		}
	}
	return nil
}

// Digest returns "sha256:<hex>" of the file that t was loaded from; for a tiktoken model, of its ranks, patterns and
// special tokens.
func (t *tokenizer) Digest() string { return t.digest }

// Vocab returns the vocabulary.
func (t *tokenizer) Vocab() engine.Vocab { return t.facts }

// Widths implements [engine.Measured]. The first call computes the widths.
func (t *tokenizer) Widths() []uint16 {
	t.measure.Do(func() { t.widths = t.measureAll() })
	return t.widths
}

// mostMeasured is the largest vocabulary size for which widths are kept.
const mostMeasured = 1 << 20

func (t *tokenizer) measureAll() []uint16 {
	size := t.Vocab().Size()
	if size > mostMeasured {
		return nil
	}
	widths := make([]uint16, size)
	for id := range widths {
		n := 0
		if id < t.model.Vocab.Size() {
			n = t.model.Width(model.ID(id))
		}
		if n == 0 {
			if i, ok := t.facts.byID[rollout.TokenID(id)]; ok {
				n = len(t.facts.added[i].Content)
			}
		}
		if n > math.MaxUint16 {
			return nil
		}
		widths[id] = uint16(n)
	}
	return widths
}

// facts implements engine.Vocab.
type facts struct {
	vocab   *model.Vocab
	added   []engine.AddedToken
	byID    map[rollout.TokenID]int
	printed map[rollout.TokenID]string // normalised spellings, as in tokenizer.respelled
	content map[string]rollout.TokenID
	size    int
}

func newFacts(t *tokenizer) *facts {
	f := &facts{vocab: t.model.Vocab, size: t.model.Vocab.Size(), byID: map[rollout.TokenID]int{}, printed: t.respelled, content: map[string]rollout.TokenID{}}
	for _, list := range [][]engine.AddedToken{t.early, t.late} {
		f.added = append(f.added, list...)
	}
	sortAdded(f.added)
	for i, a := range f.added {
		f.byID[a.ID] = i
		f.content[a.Content] = a.ID
		f.size = max(f.size, int(a.ID)+1)
	}
	return f
}

// Size implements engine.Vocab.
func (f *facts) Size() int { return f.size }

// Added implements engine.Vocab.
func (f *facts) Added() []engine.AddedToken { return f.added }

// ID implements engine.Vocab.
func (f *facts) ID(token string) (rollout.TokenID, bool) {
	if id, ok := f.content[token]; ok {
		return id, true
	}
	id := f.vocab.Find([]byte(token))
	return id, id >= 0
}

// Token implements engine.Vocab.
func (f *facts) Token(id rollout.TokenID) (string, bool) {
	b, ok := f.spelling(id)
	return string(b), ok
}

func (f *facts) spelling(id rollout.TokenID) ([]byte, bool) {
	if i, ok := f.byID[id]; ok {
		return []byte(f.added[i].Content), true
	}
	return f.vocab.Bytes(int(id))
}

// printing returns the spelling that decoders see.
func (f *facts) printing(id rollout.TokenID) ([]byte, bool) {
	if s, ok := f.printed[id]; ok {
		return []byte(s), true
	}
	return f.spelling(id)
}
