package recipe

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/reward/weights"
	"github.com/turnpack/turnpack/rollout"
)

func ExampleNamed() {
	r, err := Named("nemotron-swe2")
	if err != nil {
		panic(err)
	}
	for _, s := range r.Settings() {
		if s.Flag == "estimator" || s.Flag == "overlong" || s.Flag == "advantage-clip" {
			fmt.Printf("--%s=%s\n", s.Flag, s.Value)
		}
	}
	// Output:
	// --overlong=mask
	// --estimator=nemo_grpo_loo_std@7ea279abf
	// --advantage-clip=-100:100
}

func TestRecipes(t *testing.T) {
	names, digests := map[string]bool{}, map[string]string{}
	plain := Recipe{}.Settings()
	for _, r := range All() {
		require.NoError(t, r.Validate(), r.Name)
		require.False(t, names[r.Name], r.Name)
		names[r.Name] = true
		require.Empty(t, digests[r.Digest()], r.Name)
		digests[r.Digest()] = r.Name
		require.NotEmpty(t, r.Differs, "%s: nothing is wholly as the system has it", r.Name)
		for i, s := range r.Settings() {
			if s.Value != plain[i].Value {
				require.NotEmpty(t, s.Source, "%s: --%s has no source", r.Name, s.Flag)
			}
		}
		for _, s := range r.Trainer {
			require.NotEmpty(t, s.Source, "%s: %s has no source", r.Name, s.Flag)
		}
		for flag := range r.Sources {
			found := false
			for _, s := range plain {
				found = found || s.Flag == flag
			}
			require.True(t, found, "%s: a source of --%s, which is no setting", r.Name, flag)
		}
		if r.Loss != "" {
			_, ok := weights.Preset(r.Loss)
			require.True(t, ok, r.Loss)
		}
	}
}

func TestNamed(t *testing.T) {
	for _, name := range []string{"swe-rl", "swe-rl@0d034dd", "swe-rl@0d034dd5e", "swe-rl@0d034dd5e65399fc1cc7c266feb9eddbb4c8c3a5"} {
		r, err := Named(name)
		require.NoError(t, err, name)
		require.Equal(t, "swe-rl@0d034dd5e", r.Name)
	}
	for _, name := range []string{"", "swe", "swe-rl@", "swe-rl@0d0", "swe-rl@1d034dd", "@0d034dd5e"} {
		_, err := Named(name)
		require.ErrorIs(t, err, rollout.KindInput, name)
		require.ErrorContains(t, err, "nemo-rl@7ea279abf")
	}
}

func TestValidateReportsAll(t *testing.T) {
	bad := Recipe{Mode: "x", Window: "refill", MaxTokens: -1, Loss: "no such mean"}
	bad.Shaping.MinSolved = -1
	err := bad.Validate()
	for _, what := range []string{"Mode", "refill", "MaxTokens", "no such mean", "MinSolved"} {
		require.ErrorContains(t, err, what)
	}
}

// The digest differs for a change in any setting.
func TestDigest(t *testing.T) {
	was := swerl()
	for name, change := range map[string]func(*Recipe){
		"age":    func(r *Recipe) { r.Shaping.MaxAge = nil },
		"window": func(r *Recipe) { r.Window = "refill:12288" },
		"bounds": func(r *Recipe) { o := *nemotron22().Shaping.OffPolicy; r.Shaping.OffPolicy = &o },
		"loss":   func(r *Recipe) { r.Loss = "" },
	} {
		r := swerl()
		change(&r)
		require.NotEqual(t, was.Digest(), r.Digest(), name)
	}
	require.Equal(t, was.Digest(), swerl().Digest())
}

// TestDocs: docs/recipes.md equals what the recipes print. UPDATE_GOLDEN=1 writes it.
func TestDocs(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Recipes

<!-- Written by go test ./recipe with UPDATE_GOLDEN=1. Do not edit. -->

A recipe is what a system does between rollouts and rows, under its name and revision: a value in Go (package ` + "`recipe`" + `, ` + "`Pipeline.With`" + `) and a name on the command line:

` + "```" + `
turnpack recipe                    # list them
turnpack recipe nemotron-swe2      # print one, with its sources
turnpack convert --recipe nemotron-swe2 --model examples/tutorial/model --in examples/tutorial/dumps --out batch
turnpack convert --recipe nemotron-swe2 --max-age 4 --model examples/tutorial/model --in examples/tutorial/dumps --out older    # a flag beside it wins
turnpack view batch --model examples/tutorial/model    # what the run counted, as plots, and every row
` + "```" + `

Rewards come from the dumps, or from other verbs: test logs of SWE-bench, the verifier of the pivot stage, a judge of steps.

` + "```" + `
turnpack grade --instances instances.jsonl --predictions predictions.jsonl --logs logs --out graded
turnpack convert --recipe swe-rl --rewards graded/results.jsonl --model examples/tutorial/model --in dumps --out solved
turnpack pivot score steps.jsonl --out scored-steps.jsonl
turnpack score --judge http://judge:8000/v1 --model judge --prompt swe-rl --submit skip --command-less skip --votes 3 --out scored.jsonl examples/tutorial/dumps
turnpack convert --recipe swe-rl-prm --model examples/tutorial/model --in scored.jsonl --out judged
turnpack convert --recipe swe-rl-prm --mode merged --target openclaw --pt --model examples/tutorial/model --in scored.jsonl --out pt    # rows of several steps, for the slime of OpenClaw-RL
` + "```" + `

Dumps that hold one step a row of the pivot stage, with the reward of ` + "`pivot score`" + `, go through ` + "`--recipe nemotron-pivot`" + `. From Go, steps can be judged while the agent runs (` + "`prm.Scorer.Live`" + `).

The file's metadata holds the recipe's name, the digest and the settings it was made with (` + "`recipe`, `recipe.digest`, `recipe.settings`" + `) and which of them flags changed (` + "`recipe.changed`" + `). Settings that are not listed below are at their default.

| recipe | in short |
|---|---|
`)
	for _, r := range All() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", r.Name, r.About)
	}
	plain := Recipe{}.Settings()
	for _, r := range All() {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| setting | source |\n|---|---|\n", r.Name, r.About)
		for i, s := range r.Settings() {
			if s.Source != "" || s.Value != plain[i].Value {
				fmt.Fprintf(&b, "| `--%s=%s` | %s |\n", s.Flag, s.Value, s.Source)
			}
		}
		if a, ok := weights.Preset(r.Loss); ok || len(r.Trainer) > 0 {
			b.WriteString("\nLeft to the trainer:")
			if ok {
				fmt.Fprintf(&b, " losses averaged as `%s` (%s).", a.Name, strings.ReplaceAll(a.Mode, "_", " "))
			}
			var left []string
			for _, s := range r.Trainer {
				left = append(left, fmt.Sprintf("`%s` %s", s.Flag, s.Value))
			}
			b.WriteString(" " + strings.Join(left, "; ") + "\n")
		}
		b.WriteString("\nNot as the system:\n")
		for _, d := range r.Differs {
			fmt.Fprintf(&b, "- %s\n", d)
		}
	}
	path := filepath.Join("..", "docs", "recipes.md")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(got), "docs/recipes.md is written by UPDATE_GOLDEN=1 go test ./recipe")
}
