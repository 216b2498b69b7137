package verbs

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/internal/plumb/pipe"
)

// Each case is answered from its inputs alone, so that no stored answer can leak, and
// every field of the kit is compared.
func TestSeedParityKit(t *testing.T) {
	dir := t.TempDir()
	for to, from := range map[string]string{"tokenizer.json": "qwen3.tokenizer.json.zst", "tokenizer_config.json": "qwen3.tokenizer_config.json"} {
		r, err := pipe.Open(kit.Dir(t, "conformance", "tokenizers", from))
		require.NoError(t, err)
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.NoError(t, os.WriteFile(filepath.Join(dir, to), b, 0o600))
	}
	r, err := pipe.Open(kit.Dir(t, "conformance", "seed_parity", "seed_parity.jsonl.gz"))
	require.NoError(t, err)
	defer r.Close()
	inputs, err := os.Create(filepath.Join(dir, "cases.jsonl"))
	require.NoError(t, err)
	var want []map[string]any
	for dec := json.NewDecoder(r); dec.More(); {
		var row map[string]any
		require.NoError(t, dec.Decode(&row))
		want = append(want, row)
		in := map[string]any{}
		for _, k := range []string{"id", "config", "messages", "reward"} {
			in[k] = row[k]
		}
		require.NoError(t, json.NewEncoder(inputs).Encode(in))
	}
	require.NoError(t, inputs.Close())
	got := runLines(t, "seed-parity", "--model", dir, inputs.Name())
	require.Len(t, got, 40)
	for i, w := range want {
		for _, k := range []string{"id", "prompt_ids", "response_ids", "loss_mask", "assistant_spans", "n_steps", "steps"} {
			require.Equal(t, w[k], got[i][k], "%v: %s", w["id"], k)
		}
		sample := got[i]["default_sample"].(map[string]any)
		for k, v := range w["default_sample"].(map[string]any) {
			require.Equal(t, v, sample[k], "%v: default_sample.%s", w["id"], k)
		}
		n := int(sample["response_length"].(float64))
		require.Equal(t, append(append([]any{}, w["prompt_ids"].([]any)...), w["response_ids"].([]any)[:n]...), sample["tokens"])
		require.Equal(t, w["loss_mask"].([]any)[:n], sample["loss_mask"])
	}
}
