package turnpack_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// longRecord is a rollout of n bytes of text without repetition, spread over a number of
// observations.
func longRecord(n, observations int) *rollout.Rollout {
	rng := rand.New(rand.NewPCG(1, 2))
	r := attempt("long", 0, true)
	words := []string{"handler", "request", "response", "parser", "undefined", "value", "expected", "result"}
	var text strings.Builder
	r.Messages = r.Messages[:0]
	for range observations {
		text.Reset()
		for text.Len() < n/observations {
			fmt.Fprintf(&text, "a line of what the command printed: module %d, %s of the %s\n", rng.IntN(1e6), words[rng.IntN(len(words))], words[rng.IntN(len(words))])
		}
		r.Messages = append(r.Messages,
			rollout.Message{Role: rollout.RoleUser, Content: text.String()},
			rollout.Message{Role: rollout.RoleAssistant, Content: "next", Sampled: rollout.SampledByPolicy})
	}
	return r
}

// peakOf returns the largest heap while f runs, garbage included.
func peakOf(f func()) uint64 {
	runtime.GC()
	done, peak := make(chan struct{}), make(chan uint64)
	go func() {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		most := uint64(0)
		for {
			metrics.Read(s)
			most = max(most, s[0].Value.Uint64())
			select {
			case <-done:
				peak <- most
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	f()
	close(done)
	return <-peak
}

// digits is a rollout of n digits, spread over a number of messages of role.
func digits(n, messages int, role rollout.Role) *rollout.Rollout {
	rng := rand.New(rand.NewPCG(1, 2))
	r := attempt("digits", 0, true)
	r.Messages = r.Messages[:0]
	for range messages {
		text := make([]byte, n/messages)
		for i := range text {
			text[i] = '0' + byte(rng.IntN(10))
		}
		asked, reply := "go on", "next"
		if role == rollout.RoleUser {
			asked = string(text)
		} else {
			reply = string(text)
		}
		r.Messages = append(r.Messages,
			rollout.Message{Role: rollout.RoleUser, Content: asked},
			rollout.Message{Role: rollout.RoleAssistant, Content: reply, Sampled: rollout.SampledByPolicy})
	}
	return r
}

// A long record takes a small multiple of its text in memory, garbage included, also if the text
// has a token per byte.
func TestMemoryOfOneLongRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: encodes records of 30 MB; run without -short")
	}
	const size, most = 30 << 20, 20
	for name, r := range map[string]func() *rollout.Rollout{
		"text":                       func() *rollout.Rollout { return longRecord(size, 1) },
		"text in 300 observations":   func() *rollout.Rollout { return longRecord(size, 300) },
		"digits":                     func() *rollout.Rollout { return digits(size, 1, rollout.RoleUser) },
		"digits in 300 observations": func() *rollout.Rollout { return digits(size, 300, rollout.RoleUser) },
		"digits in 300 replies":      func() *rollout.Rollout { return digits(size, 300, rollout.RoleAssistant) },
		"digits as Arrow":            func() *rollout.Rollout { return digits(size, 1, rollout.RoleUser) },
	} {
		t.Run(name, func(t *testing.T) {
			r := r()
			p := turnpack.Pipeline{Model: model(t), TempDir: t.TempDir()}
			o, most := export.Options{Trace: true}, most
			if strings.HasSuffix(name, "Arrow") { // holds a batch both in full and compressed: 19.9
				o, most = export.Options{Format: "arrow"}, most+4
			}
			w, err := export.NewWriter(io.Discard, o)
			require.NoError(t, err)
			peak := peakOf(func() {
				_, err := p.Run(t.Context(), turnpack.Slice{r}, w)
				require.NoError(t, err)
				require.NoError(t, w.Close())
			})
			tokens := w.Stats().Tokens
			t.Logf("%d tokens, %.0f MB, %.1f bytes for a byte", tokens, float64(peak)/1e6, float64(peak)/size)
			require.Less(t, float64(peak)/size, float64(most))
		})
	}
}

// Rows that do not join, since prompts differ from the history, each hold the whole history. They
// are made and written one after the other, so many of them take little more memory than the
// longest.
func TestMemoryOfRowsThatDoNotJoin(t *testing.T) {
	kit.OneGoroutine(t)
	const asked = `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
<think>

</think>

{% endif %}`
	m, err := tokenize.Load("tokenize/embedded", tokenize.LoadOptions{TemplateText: asked})
	require.NoError(t, err)
	const turns, size = 60, 1 << 20
	p := turnpack.Pipeline{Model: m, TempDir: t.TempDir()}
	r := digits(size, turns, rollout.RoleUser)
	var h heap
	var tokens int64
	peak := peakOf(func() {
		report, err := p.Run(t.Context(), turnpack.Slice{r}, &h)
		require.NoError(t, err)
		tokens = report.Tokens
	})
	t.Logf("%d rows of %d tokens in all, %.0f MB", h.rows, tokens, float64(peak)/1e6)
	require.EqualValues(t, turns, h.rows)
	require.Greater(t, tokens, int64(turns*size/2))
	require.Less(t, peak, uint64(4*tokens), "less than their ids alone")
}

// Rows that are held as runs are written like other rows, with every setting.
func TestRowsAsRuns(t *testing.T) {
	kit.Long(t)
	scored := func(r *rollout.Rollout) *rollout.Rollout {
		for i := range rollout.TurnsOf(r) {
			if r.Steps = append(r.Steps, rollout.StepScore{Step: i, Score: new(float64(i%3) - float64(r.ID[0]-'a')/2)}); i == 4 {
				r.Steps[i].Score = nil
			}
		}
		return r
	}
	plain := func() turnpack.Slice {
		return turnpack.Slice{scored(steps("a", 6, 80)), scored(steps("b", 1, 80)), scored(steps("c", 9, 80))}
	}
	recorded := func() (src turnpack.Slice) {
		for i, r := range plain() {
			r := captured(t, r)
			for k := range r.Turns {
				r.Turns[k].Version = new(int32(i))
				r.Turns[k].Sampling = &rollout.Sampling{Temperature: new(float32(1 + k%2*i))} // c has two
			}
			if i == 0 {
				r.Turns[2].Versions = []rollout.VersionRun{{From: 0, Version: 3}, {From: 1, Version: 4}}
			}
			src = append(src, r)
		}
		return src
	}
	reset, discounted := reward.TokenEstimator{Name: "reset", Center: "none", ResetAtMask: true}, reward.TokenEstimator{Name: "discounted", Center: "none", Discount: 0.9}
	for name, c := range map[string]struct {
		src turnpack.Slice
		set turnpack.Pipeline
	}{
		"plain":      {plain(), turnpack.Pipeline{}},
		"recorded":   {recorded(), turnpack.Pipeline{}},
		"version":    {plain(), turnpack.Pipeline{PolicyVersion: new(int32(7))}},
		"steps":      {plain(), turnpack.Pipeline{Estimator: new(preset(t, "openclaw_step_wise")), Scale: reward.OutcomePolicy{StepCoef: 1}}},
		"tokens":     {plain(), turnpack.Pipeline{Tokens: &reset}},
		"discounted": {plain(), turnpack.Pipeline{Tokens: &discounted}},
	} {
		for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep, tokenize.Whole} {
			write := func(p turnpack.Pipeline) (rows []rollout.Sample, report turnpack.Report) {
				p.Model, p.TempDir, p.Encode.Mode, p.Mask.TrainSeparator = model(t), t.TempDir(), mode, name != "steps"
				var file bytes.Buffer
				w, err := export.NewWriter(&file, export.Options{Trace: true})
				require.NoError(t, err)
				report, err = p.Run(t.Context(), c.src, w)
				require.NoError(t, err, "%s, %s", name, mode)
				require.NoError(t, w.Close())
				r, err := export.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
				require.NoError(t, err)
				for {
					s, err := r.Read()
					if err == io.EOF {
						return rows, report
					}
					require.NoError(t, err)
					rows = append(rows, s)
				}
			}
			want, told := write(c.set)
			got, again := write(turnpack.WithHeldLimit(c.set, 100))
			require.Equal(t, want, got, "%s, %s", name, mode)
			require.Equal(t, told, again, "%s, %s", name, mode)
		}
	}
}
