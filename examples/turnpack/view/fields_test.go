package view_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/examples/turnpack/internal/tokens"
	"github.com/turnpack/turnpack/examples/turnpack/view"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize"
)

// If the dumps are known, a token shows its recorded field and bytes.
func TestFields(t *testing.T) {
	tutorial := filepath.Join("..", "..", "tutorial")
	model, err := tokenize.Load(filepath.Join(tutorial, "model"), tokenize.LoadOptions{})
	require.NoError(t, err)
	src, err := traj.NewSource([]string{filepath.Join(tutorial, "dumps")}, traj.Options{})
	require.NoError(t, err)
	batch := filepath.Join(t.TempDir(), "batch.parquet")
	dst, err := export.Create(batch, export.Options{Trace: true, Tokenizer: model.Tokenizer.Digest()})
	require.NoError(t, err)
	_, err = turnpack.Pipeline{Model: model, Trace: true}.Run(t.Context(), src, dst)
	require.NoError(t, err)
	require.NoError(t, dst.Close())

	enc, err := tokenize.NewEncoder(model, tokenize.Options{})
	require.NoError(t, err)
	rollouts := map[string]*rollout.Rollout{}
	for r, err := range src.Rollouts(t.Context()) {
		require.NoError(t, err)
		rollouts[r.ID] = r
	}
	tracers := func(ctx context.Context, _ *tokenize.Model, _ string, in []string, wanted map[string]bool) (func(*rollout.Sample) *tokens.Tracer, error) {
		require.Equal(t, []string{"dumps"}, in)
		require.Len(t, wanted, 16)
		return func(s *rollout.Sample) *tokens.Tracer {
			seqs, _, err := enc.Encode(ctx, rollouts[s.Rollout])
			require.NoError(t, err)
			return tokens.NewTracer(enc, tokenize.Merged, tokens.NewSpeller(model.Tokenizer), rollouts[s.Rollout], &seqs[0])
		}, nil
	}
	file := filepath.Join(t.TempDir(), "page.html")
	var out, errs bytes.Buffer
	require.Zero(t, run(t, view.Cmd{Tracers: tracers}, []string{batch, "--model", filepath.Join(tutorial, "model"), "--in", "dumps", "--out", file}, &out, &errs), errs.String())

	rows, _, err := export.ReadAll(batch)
	require.NoError(t, err)
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	all := contents(string(page))
	spell, checked := tokens.NewSpeller(model.Tokenizer), 0
	at := -1 // index of a trained token of row 0 with a field
	for i, s := range rows {
		row := unpack(t, all[fmt.Sprintf("row-%d", i)])
		for k, n := range row.values["field"] {
			if row.Fields[int(n)] != "content" {
				continue
			}
			text, _ := spell.Bytes(s.IDs[k])
			message := rollouts[s.Rollout].Messages[int(row.values["source"][k])]
			require.Equal(t, string(text), message.Content[int(row.values["offset"][k]):int(row.values["until"][k])])
			checked++
			if i == 0 && s.Weight[k] > 0 {
				at = k
			}
		}
	}
	require.Greater(t, checked, 4000)

	b := chromium(t, 1300, 850)
	b.open(file, fmt.Sprintf("#row=0&token=%d", at))
	token := fmt.Sprintf(`document.querySelector('.tk[data-t="%d"]')`, at)
	b.until(token)
	b.eval(fmt.Sprintf(`(() => { const e = %s, r = e.getBoundingClientRect(); e.dispatchEvent(new MouseEvent("mousemove", {bubbles: true, clientX: r.left + 2, clientY: r.top + 2})); })()`, token), nil)
	require.Regexp(t, `source *message 12, content, bytes \d+ to \d+step`, b.text(`document.getElementById("tip").textContent`))
	require.Empty(t, b.events)
	b.shot("fields")
}
