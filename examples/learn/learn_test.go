package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// python returns an interpreter with torch, by default the one that make learn installs.
func python(t *testing.T) string {
	t.Helper()
	path := os.Getenv("TURNPACK_LEARN_PYTHON")
	if path == "" {
		cache, err := os.UserCacheDir()
		require.NoError(t, err)
		path = filepath.Join(cache, "turnpack", "venv-learn", "bin", "python")
	}
	if os.Getenv("TURNPACK_LEARN") == "" {
		t.Skip("SKIPPED: these tests start torch, which takes longer than a test may: run make learn once, then set TURNPACK_LEARN=1 to run them")
	}
	if err := exec.Command(path, "-c", "import torch, transformers, pyarrow").Run(); err != nil {
		t.Skipf("SKIPPED: %s has no torch, transformers and pyarrow: run make learn once, or name another by TURNPACK_LEARN_PYTHON", path)
	}
	return path
}

func load(t *testing.T, folder string) *tokenize.Model {
	t.Helper()
	m, err := tokenize.Load(folder, tokenize.LoadOptions{})
	require.NoError(t, err)
	return m
}

const said = `<tool_call>` + "\n" + `{"name": "get", "arguments": {"key": "b"}}` + "\n" + `</tool_call>`

// A tool call is one token, and the template writes it so.
func TestVocabulary(t *testing.T) {
	ids, err := encode(load(t, "model"), "a"+said+"bab<|end|>")
	require.NoError(t, err)
	require.Equal(t, []rollout.TokenID{0, 7, 1, 3, 9}, ids)
}

// recorded returns a recorded rollout of two turns whose sampled ids spell the answer
// differently from the tokenizer. If sub is set, the second turn is of a subagent, which
// sees only its brief.
func recorded(t *testing.T, m *tokenize.Model, sub bool) *rollout.Rollout {
	t.Helper()
	ids := func(text string) []rollout.TokenID {
		out, err := encode(m, text)
		require.NoError(t, err)
		return out
	}
	answer := append([]rollout.TokenID{0, 1}, ids("<|end|>")...) // a and b, though ab is a token
	first, second := "<|user|>b<|end|><|assistant|>", "<|user|>b<|end|><|assistant|>"+said+"<|end|><|tool|>ab<|end|><|assistant|>"
	messages := []rollout.Message{
		{Role: rollout.RoleUser, Content: "b"},
		{Role: rollout.RoleAssistant, ToolCalls: []rollout.ToolCall{{ID: "c", Name: "get", Arguments: `{"key": "b"}`}}, Sampled: rollout.SampledByPolicy},
		{Role: rollout.RoleTool, Content: "ab", ToolCallID: "c"},
		{Role: rollout.RoleAssistant, Content: "ab", Sampled: rollout.SampledByPolicy},
	}
	if sub {
		second = "<|system|>b<|end|><|assistant|>"
		messages[2] = rollout.Message{Role: rollout.RoleSystem, Content: "b"}
	}
	version := int32(3)
	var index rollout.PromptIndex
	turn := func(message int, prompt string, out []rollout.TokenID) rollout.Turn {
		lp := make([]float32, len(out))
		for i := range lp {
			lp[i] = -float32(i+1) / 10
		}
		return rollout.Turn{Message: message, Step: message / 2, Prompt: index.Add(ids(prompt), out), Output: out, Logprobs: lp, FinishReason: "stop", Version: &version}
	}
	reward, one := 1.0, float32(1)
	r := &rollout.Rollout{ID: "r", Group: "g", Status: rollout.StatusCompleted, Outcome: rollout.Outcome{Reward: &reward}, Temperature: &one, Messages: messages}
	r.Turns = append(r.Turns, turn(1, first, ids(said+"<|end|>")))
	r.Turns = append(r.Turns, turn(3, second, answer))
	return r
}

// What each fault does to the rows, and the share of trained tokens that are still the
// engine's own.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		fault    fault
		sub      bool
		rows     int
		text     string // trained parts of the last row, between |
		fidelity float64
	}{
		{"", false, 1, said + "<|end|>|a·b<|end|>", 1},
		{stopMasked, false, 1, said + "|a·b", 1},
		{retokenised, false, 1, said + "<|end|>|ab<|end|>", 0.5},
		{"", true, 2, "a·b<|end|>", 1},
		{perMessage, true, 1, said + "<|end|>|ab<|end|>", 0.5},
	} {
		t.Run(fmt.Sprint(c.fault, c.sub), func(t *testing.T) {
			m := load(t, "model")
			r := recorded(t, m, c.sub)
			path := filepath.Join(t.TempDir(), "b.parquet")
			w, err := export.Create(path, export.Options{})
			require.NoError(t, err)
			p := &spoiler{ctx: t.Context(), fault: c.fault, model: m, rollouts: map[string]*rollout.Rollout{"r": r}, w: w}
			_, err = turnpack.Pipeline{Model: m, Scale: reward.OutcomePolicy{Outcome: "auto"}}.Run(t.Context(), turnpack.Slice{r}, p)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			rows, _, err := export.ReadAll(path)
			require.NoError(t, err)
			require.Len(t, rows, c.rows)
			s := rows[len(rows)-1]
			var parts []string
			for i := range s.Len() {
				if s.Weight[i] == 0 {
					continue
				}
				text, err := m.Tokenizer.Decode(s.IDs[i : i+1])
				require.NoError(t, err)
				switch {
				case s.Weight[i-1] == 0:
					parts = append(parts, text)
				case len(text) == 1 && strings.HasSuffix(parts[len(parts)-1], "a"):
					parts[len(parts)-1] += "·" + text
				default:
					parts[len(parts)-1] += text
				}
			}
			require.Equal(t, c.text, strings.Join(parts, "|"))
			require.InDelta(t, c.fidelity, p.trust.share(), 1e-9)
		})
	}
}

func TestFlags(t *testing.T) {
	c, err := parse([]string{"--arms", "lookup,subagent-per-message", "--seeds", "2"}, io.Discard, io.Discard)
	require.NoError(t, err)
	require.Len(t, c.arms, 2)
	for _, args := range [][]string{{"--arms", "x"}, {"--seeds", "0"}, {"--lost", "1"}, {"x"}} {
		_, err := parse(args, io.Discard, io.Discard)
		require.Error(t, err, args)
	}
	c.named, c.arms = false, arms
	require.Len(t, c.jobs(), len(arms)+1, "two of the first arm, one of each other")
}

// An engine with another vocabulary is refused before the first call.
func TestOtherVocabulary(t *testing.T) {
	m := load(t, "model")
	same := httptest.NewServer(fakeengine.New(fakeengine.Options{Model: m}))
	defer same.Close()
	require.NoError(t, sameVocabulary(t.Context(), same.URL, m))
	other := httptest.NewServer(fakeengine.New(fakeengine.Options{}))
	defer other.Close()
	err := sameVocabulary(t.Context(), other.URL, m)
	require.ErrorContains(t, err, "another vocabulary: token 0")
	require.ErrorContains(t, err, "tokenizer.json")
}

// short returns a worker and an arm for a run of a few steps with torch.
func short(t *testing.T, steps int) (*worker, arm) {
	t.Helper()
	c := config{python: python(t), here: ".", out: t.TempDir(), seeds: 1, parallel: 1, steps: steps, groups: 2, lost: 0.15, log: io.Discard}
	x := &worker{config: c, trainers: map[string]*trainer{}}
	t.Cleanup(x.close)
	return x, arms[0]
}

// Each arm runs three steps. Arms without a fault train exactly on what was sampled, with
// the recorded log probabilities.
func TestLoop(t *testing.T) {
	x, _ := short(t, 3)
	for _, a := range arms {
		steps, err := x.loop(t.Context(), a, 0, func(step) error { return nil })
		require.NoError(t, err, a.Name)
		require.Len(t, steps, 3)
		for i, s := range steps {
			require.Equal(t, i+1, s.Version, a.Name)
			if a.Fault == "" {
				require.EqualValues(t, 1, s.Fidelity, a.Name)
				require.Less(t, s.Largest, 1e-3, a.Name)
				require.Positive(t, s.Trained, a.Name)
			}
		}
	}
}

// A trainer killed within a step is restarted and resumes from its checkpoint. Each batch
// is trained on once, and the leftovers of the killed step are removed.
func TestTrainerDies(t *testing.T) {
	x, a := short(t, 3)
	first, err := x.trainer(a.Trainer)
	require.NoError(t, err)
	deaths := 0
	first.begun = func(b answer) {
		if b.Begun > 2 && deaths == 0 { // the second step
			deaths++
			require.NoError(t, first.cmd.Process.Kill())
		}
	}
	steps, err := x.loop(t.Context(), a, 0, func(step) error { return nil })
	require.NoError(t, err)
	require.Equal(t, 1, deaths)
	for i, s := range steps {
		require.Equal(t, i+1, s.Version, "a step for each, once")
		require.Equal(t, 2*(i+1), s.Seq)
	}
	left, err := filepath.Glob(filepath.Join(x.out, a.Name, "seed-0", "trainer", "*"))
	require.NoError(t, err)
	require.Len(t, left, 3, "%v", left)
}

// A half-written checkpoint, weights of another vocabulary and a batch of an older policy
// are refused with the reason.
func TestBad(t *testing.T) {
	x, a := short(t, 1)
	_, err := x.loop(t.Context(), a, 0, func(step) error { return nil })
	require.NoError(t, err)
	folder := filepath.Join(x.out, a.Name, "seed-0", "trainer")
	begin := map[string]any{"model": "model", "folder": folder, "engine": x.served.url, "service": "http://127.0.0.1:1", "seed": 0}
	again := func() error {
		trainer, err := startTrainer(&x.config, a.Trainer)
		require.NoError(t, err)
		defer trainer.close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = trainer.say(ctx, map[string]any{"run": begin})
		return err
	}
	weights, err := filepath.Glob(filepath.Join(folder, "weights-*"))
	require.NoError(t, err)
	whole, err := os.ReadFile(weights[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(weights[0], whole[:len(whole)/2], 0o600))
	var no *refused
	err = again()
	require.ErrorAs(t, err, &no)
	require.ErrorContains(t, err, "its digest differs")
	require.NoError(t, os.Remove(weights[0]))
	require.ErrorContains(t, again(), "it is gone")

	t.Run("another vocabulary", func(t *testing.T) {
		other := filepath.Join(t.TempDir(), "model")
		require.NoError(t, os.CopyFS(other, os.DirFS("model")))
		text, err := os.ReadFile(filepath.Join(other, "config.json"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(other, "config.json"), []byte(strings.Replace(string(text), `"vocab_size": 14`, `"vocab_size": 19`, 1)), 0o600))
		begin["model"], begin["folder"] = other, t.TempDir()
		require.ErrorContains(t, again(), "another model or vocabulary")
	})

	t.Run("an older policy", func(t *testing.T) {
		x, a := short(t, 2)
		_, err := x.loop(t.Context(), a, 1, func(s step) error { // an engine that returns to the previous version
			text, err := os.ReadFile(filepath.Join(x.out, a.Name, "seed-1", "trainer", "state.json"))
			require.NoError(t, err)
			var said struct{ Weights, Weights_sha256 string }
			require.NoError(t, json.Unmarshal(text, &said))
			path, err := filepath.Abs(filepath.Join(x.out, a.Name, "seed-1", "trainer", said.Weights))
			require.NoError(t, err)
			var told any
			return (&agent{http: http.DefaultClient, url: x.served.url}).post(t.Context(), "/update_weights", map[string]any{"path": path, "sha256": said.Weights_sha256, "version": 0}, &told)
		})
		require.ErrorAs(t, err, &no)
		require.ErrorContains(t, err, "trains tokens of policy version 0, 1 is the oldest asked for")
	})
}
