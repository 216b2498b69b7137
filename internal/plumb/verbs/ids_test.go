package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/internal/plumb/pipe"
)

// The ids and decode verbs give the kit's results for its stored tokenizers.
func TestIDsKit(t *testing.T) {
	kit.OneGoroutine(t)
	for name, file := range map[string]string{
		"tiny_bytelevel": "tiny_bytelevel.tokenizer.json",
		"tiny_spm":       "tiny_spm.tokenizer.json",
		"qwen3":          "qwen3.tokenizer.json.zst",
	} {
		t.Run(name, func(t *testing.T) {
			tokenizer := kit.Dir(t, "conformance", "tokenizers", file)
			cases := kit.Dir(t, "conformance", "tokenizers", name+".jsonl.gz")
			rows := runLines(t, "ids", "--tokenizer", tokenizer, "--offsets", cases)
			literal := runLines(t, "ids", "--literal", "--tokenizer", tokenizer, cases)
			plain := runLines(t, "ids", "--plain", "--tokenizer", tokenizer, cases)
			decoded := runLines(t, "decode", "--tokenizer", tokenizer, cases)
			r, err := pipe.Open(cases)
			require.NoError(t, err)
			defer r.Close()
			dec := json.NewDecoder(r)
			for i := range rows {
				var want map[string]any
				require.NoError(t, dec.Decode(&want))
				or := func(field, instead string) any {
					if v, ok := want[field]; ok {
						return v
					}
					return want[instead]
				}
				require.Equal(t, want["id"], rows[i]["id"])
				require.Equal(t, want["ids"], rows[i]["ids"], want["id"])
				require.Equal(t, want["offsets"], rows[i]["offsets"], want["id"])
				require.Equal(t, or("ids_literal", "ids"), literal[i]["ids"], want["id"])
				require.Equal(t, or("ids_plain", "ids"), plain[i]["ids"], want["id"])
				require.Equal(t, or("decoded", "text"), decoded[i]["text"], want["id"])
			}
			require.False(t, dec.More(), "an answer for every line")
		})
	}
}

func runLines(t *testing.T, args ...string) []map[string]any {
	t.Helper()
	var out, diagnostics bytes.Buffer
	code := Main(context.Background(), args, nil, &out, &diagnostics)
	require.Equal(t, 0, code, diagnostics.String())
	var rows []map[string]any
	for line := range bytes.Lines(out.Bytes()) {
		var row map[string]any
		require.NoError(t, json.Unmarshal(line, &row))
		rows = append(rows, row)
	}
	return rows
}

func TestIDsFaults(t *testing.T) {
	tokenizer := kit.Dir(t, "conformance", "tokenizers", "tiny_bytelevel.tokenizer.json")
	var out, diagnostics bytes.Buffer
	in := bytes.NewBufferString("{\"id\":1}\n{\"id\":2,\"ids\":[99999999]}\n")
	code := Main(context.Background(), []string{"decode", "--tokenizer", tokenizer}, in, &out, &diagnostics)
	require.Equal(t, 1, code)
	require.Contains(t, out.String(), `"id":1,"error":{"kind":"input"`)
	require.Contains(t, out.String(), `"id":2,"error":{"kind":"tokenizer"`)
	require.Equal(t, 2, Main(context.Background(), []string{"ids"}, in, &out, &diagnostics), "--tokenizer is required")
	require.Equal(t, 2, Main(context.Background(), []string{"ids", "--engine", "none", "--tokenizer", tokenizer}, in, &out, &diagnostics))
}
