package tokenize_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/tokenize/embedded"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// A long text encoded in sections has the same tokens and ranges as one encoded as a whole.
func TestSectionsAreTheWhole(t *testing.T) {
	kit.OneGoroutine(t)
	model, err := embedded.Model()
	require.NoError(t, err)
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "line %d: naïve 漢字 👩‍💻 %x\n", i, i*i)
		if i%3000 == 2999 {
			b.WriteString("<|im_end|>")
		}
	}
	text := b.String()
	var whole, sections, part engine.Encoding
	require.NoError(t, model.Tokenizer.Encode(&whole, text, engine.EncodeOptions{Offsets: true}))
	take, calls := func(e *engine.Encoding) error {
		sections.IDs = append(sections.IDs, e.IDs...)
		sections.Offsets = append(sections.Offsets, e.Offsets...)
		e.Reset()
		return nil
	}, 0
	require.NoError(t, model.Tokenizer.Encode(&part, text, engine.EncodeOptions{Offsets: true, Section: func(e *engine.Encoding) error {
		calls++
		return take(e)
	}}))
	require.NoError(t, take(&part))
	require.Greater(t, calls, 5)
	require.Equal(t, whole, sections)

	failed := fmt.Errorf("enough")
	err = model.Tokenizer.Encode(&part, text, engine.EncodeOptions{Section: func(*engine.Encoding) error { return failed }})
	require.ErrorIs(t, err, failed)
}
