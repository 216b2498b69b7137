package tokenize_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/embedded"
	"github.com/turnpack/turnpack/tokenize/engine"
)

func embeddedModel(t testing.TB) *tokenize.Model {
	t.Helper()
	m, err := embedded.Model()
	require.NoError(t, err)
	return m
}

// loaded caches the kits' models, which take seconds to load under the race detector. Tests that
// use them must not run in parallel.
var loaded struct {
	qwen3     *tokenize.Model
	templates map[string]*tokenize.Model
}

// qwen3 is the Qwen3 model folder of the tokenizers kit, a copy for the test.
func qwen3(t testing.TB) *tokenize.Model {
	t.Helper()
	if loaded.qwen3 == nil {
		m, err := tokenize.Load(".", tokenize.LoadOptions{FS: kit.Qwen3(t)})
		require.NoError(t, err)
		loaded.qwen3 = m
	}
	m := *loaded.qwen3
	return &m
}

// say builds messages from "role: text" lines; assistant messages are sampled.
func say(lines ...string) []rollout.Message {
	var out []rollout.Message
	for _, l := range lines {
		role, text, _ := strings.Cut(l, ": ")
		m := rollout.Message{Role: rollout.Role(role), Content: text}
		if m.Role == rollout.RoleAssistant {
			m.Sampled = rollout.SampledByPolicy
		}
		out = append(out, m)
	}
	return out
}

// encode encodes one rollout and checks what holds for every result.
func encode(t testing.TB, m *tokenize.Model, o tokenize.Options, r *rollout.Rollout) []rollout.Sequence {
	t.Helper()
	enc, err := tokenize.NewEncoder(m, o)
	require.NoError(t, err)
	return encodeBy(t, enc, r)
}

// encodeBy is encode with a given encoder.
func encodeBy(t testing.TB, enc *tokenize.Encoder, r *rollout.Rollout) []rollout.Sequence {
	t.Helper()
	seqs, _, err := enc.Encode(t.Context(), r)
	require.NoError(t, err)
	for i := range seqs {
		require.NoError(t, seqs[i].Check())
		require.Equal(t, i, seqs[i].SampleIndex)
	}
	return seqs
}

// sampled returns the text of each turn's sampled run in a sequence.
func sampled(t testing.TB, m *tokenize.Model, seq *rollout.Sequence) []string {
	t.Helper()
	var out []string
	for i := 0; i < seq.Len(); {
		if seq.Flags[i]&rollout.FlagSampled == 0 {
			i++
			continue
		}
		end := i
		for end < seq.Len() && seq.Flags[end]&rollout.FlagSampled != 0 && seq.Turn[end] == seq.Turn[i] {
			end++
		}
		out = append(out, decode(t, m, seq.IDs[i:end]))
		i = end
	}
	return out
}

func decode(t testing.TB, m *tokenize.Model, ids []rollout.TokenID) string {
	t.Helper()
	s, err := m.Tokenizer.Decode(ids)
	require.NoError(t, err)
	return s
}

// plainIDs encodes text with the added tokens that keep accepts.
func plainIDs(t testing.TB, m *tokenize.Model, text string, keep func(engine.AddedMatch) bool) []rollout.TokenID {
	t.Helper()
	var e engine.Encoding
	require.NoError(t, m.Tokenizer.Encode(&e, text, engine.EncodeOptions{Added: keep}))
	return e.IDs
}
