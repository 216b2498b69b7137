package tokenize_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// BenchmarkEncodeWhole measures what a trainer calls: the recorded rollouts, one after the other
// and each once, from messages to sequences in mode Whole. Its metrics are the mean processor time
// per rollout, its ratio to plain encoding of the same text, without offsets, on a tokenizer that
// saw the same texts, and its allocations.
func BenchmarkEncodeWhole(b *testing.B) {
	dumps, err := traj.Open([]string{kit.Dir(b, "data", "trajectories")}, traj.Options{})
	require.NoError(b, err)
	var recorded []*rollout.Rollout
	for r, err := range dumps.All() {
		if err == nil && len(r.Messages) > 0 {
			recorded = append(recorded, r)
		}
	}
	for _, m := range []struct{ name, template, stops string }{
		{"qwen3", "qwen3", "[151645,151643]"}, {"llama3", "llama3_1", "[128001,128008,128009]"}, {"gptoss", "gptoss", "[200002,199999,200012]"},
	} {
		source, err := os.ReadFile(filepath.Join(kit.Templates(b), m.template+".jinja"))
		require.NoError(b, err)
		files := fstest.MapFS{"tokenizer.json": {Data: kit.Tokenizer(b, m.name)}, "chat_template.jinja": {Data: source},
			"generation_config.json": {Data: []byte(`{"eos_token_id":` + m.stops + `}`)}}
		b.Run(m.name, func(b *testing.B) {
			for range b.N {
				benchmarkEncodeWhole(b, files, recorded)
			}
		})
	}
}

func benchmarkEncodeWhole(b *testing.B, files fstest.MapFS, recorded []*rollout.Rollout) {
	load := func() *tokenize.Model {
		m, err := tokenize.Load(".", tokenize.LoadOptions{FS: files})
		require.NoError(b, err)
		m.SpecialTokens["bos_token"] = "<s>"
		return m
	}
	enc, err := tokenize.NewEncoder(load(), tokenize.Options{Mode: tokenize.Whole})
	require.NoError(b, err)
	other := load().Tokenizer
	var whole, plain time.Duration
	var before, after runtime.MemStats
	var texts []string
	for _, r := range recorded {
		if prompt, _, err := enc.Texts(b.Context(), r, 0); err == nil {
			texts = append(texts, prompt.Text)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := kit.CPUTime()
	n := 0
	for _, r := range recorded {
		if _, _, err := enc.Encode(b.Context(), r); err == nil {
			n++
		}
	}
	whole = kit.CPUTime() - start
	runtime.ReadMemStats(&after)
	start = kit.CPUTime()
	var out engine.Encoding
	for _, text := range texts {
		out.Reset()
		require.NoError(b, other.Encode(&out, text, engine.EncodeOptions{}))
	}
	plain = kit.CPUTime() - start
	b.ReportMetric(float64(n), "rollouts")
	b.ReportMetric(float64(whole.Nanoseconds())/1e3/float64(n), "whole-µs")
	b.ReportMetric(float64(whole)/float64(plain), "whole/plain")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/1e3/float64(n), "kB/rollout")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(n), "allocs/rollout")
}
