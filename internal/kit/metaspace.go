package kit

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// WithMetaspace returns a SentencePiece style tokenizer.json that marks the beginnings of texts by
// the pre-tokenizer Metaspace with the given prepend_scheme, in place of its normalizer.
func WithMetaspace(t testing.TB, definition []byte, scheme string) []byte {
	t.Helper()
	var d map[string]any
	require.NoError(t, json.Unmarshal(definition, &d))
	d["normalizer"] = nil
	d["pre_tokenizer"] = map[string]any{"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": false}
	if scheme == "never" {
		d["decoder"] = map[string]any{"type": "Sequence", "decoders": []any{
			map[string]any{"type": "Replace", "pattern": map[string]any{"String": "\u2581"}, "content": " "},
			map[string]any{"type": "ByteFallback"}, map[string]any{"type": "Fuse"}}}
	}
	out, err := json.Marshal(d)
	require.NoError(t, err)
	return out
}
