package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/examples/turnpack/internal/shape"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/recipe"
	"github.com/turnpack/turnpack/reward"
)

// parsed returns the flags of a convert command line.
func parsed(t *testing.T, args ...string) *convertCmd {
	var line commandLine
	parser, err := kong.New(&line, kong.Resolvers(kong.ResolverFunc(shape.Defaults)))
	require.NoError(t, err)
	_, err = parser.Parse(append([]string{"convert"}, args...))
	require.NoError(t, err)
	return &line.Convert
}

// estimatorOf returns the estimator record of a pipeline.
func estimatorOf(p turnpack.Pipeline) reward.Estimator {
	switch e := p.Estimator.(type) {
	case reward.Estimator:
		return e
	case *reward.Estimator:
		return *e
	}
	return reward.GRPO()
}

// The flags of a recipe give the same pipeline as Pipeline.With, and the file metadata
// records them.
func TestRecipeFlags(t *testing.T) {
	kit.Long(t)
	for _, r := range recipe.All() {
		c := parsed(t, "--recipe", r.Name, "dumps")
		got, err := c.flags()
		require.NoError(t, err, r.Name)
		want, err := turnpack.Pipeline{}.With(r)
		require.NoError(t, err)
		require.Equal(t, want.Shaping, got.Shaping, r.Name)
		require.Equal(t, want.Scale, got.Scale, r.Name)
		require.Equal(t, want.Detector, got.Detector, r.Name)
		require.Equal(t, want.Window, got.Window, r.Name)
		require.Equal(t, want.Encode.Mode, got.Encode.Mode, r.Name)
		require.Equal(t, want.Mask, got.Mask, r.Name)
		require.Equal(t, estimatorOf(want), estimatorOf(got), r.Name)
		m, err := c.recipeMetadata(&got)
		require.NoError(t, err)
		require.Equal(t, r.Name, m["recipe"])
		require.Equal(t, r.Digest(), m["recipe.digest"], r.Name)
		require.Empty(t, m["recipe.changed"], r.Name)
	}
}

// Each setting of a recipe can be changed by its flag, and the file records which were.
func TestRecipeFlagsWin(t *testing.T) {
	kit.Long(t)
	other := map[string]string{"mode": "merged", "window": "none", "max-tokens": "7", "scale": "partial", "step-coef": "0.5", "infra-unresolved": "true", "truncated-coef": "0.25",
		"stop-properly": "true", "soft-overlong": "10:5:1", "length-of": "response", "reward-affine": "1:2", "reward-clip": "-3:3", "overlong": "train", "max-age": "5",
		"min-valid": "2", "min-solved": "2", "min-unsolved": "2", "group-filter": "skyrl", "filter-raw": "true", "estimator": "nemo_grpo_group_std", "masked": "leave",
		"invalid-call-advantage": "none", "malformed-thinking-advantage": "-1", "detect": "all", "advantage-clip": "none", "drop-zero": "true", "keep": "best:2", "length-penalty": "0.25:0.1:0.1", "discount": "0.9",
		"importance-weights": "0.5:3:zero", "logprob-error": "none"}
	r, err := recipe.Named("nemotron-swe2")
	require.NoError(t, err)
	for _, s := range r.Settings() {
		value, ok := other[s.Flag]
		require.True(t, ok, "--%s is not tried", s.Flag)
		args := []string{"--recipe", r.Name, "--" + s.Flag + "=" + value, "dumps"}
		switch s.Flag {
		case "mode":
			args[2] = "--mode=perstep"
		case "window":
			args[2] = "--window=refill:100"
		case "discount":
			args = append(args, "--estimator=verl_reinforce_pp", "--advantage-clip=none", "--invalid-call-advantage=none", "--malformed-thinking-advantage=none", "--detect=all")
		case "filter-raw":
			args = append(args, "--group-filter=slime")
		}
		c := parsed(t, args...)
		p, err := c.flags()
		require.NoError(t, err, s.Flag)
		m, err := c.recipeMetadata(&p)
		require.NoError(t, err)
		require.Contains(t, strings.Fields(m["recipe.changed"]), s.Flag)
		require.NotEqual(t, r.Digest(), m["recipe.digest"], s.Flag)
	}
}

func TestShapingFlagsAreRead(t *testing.T) {
	for flag, value := range map[string]string{"soft-overlong": "x", "reward-clip": "1", "advantage-clip": "2:1", "max-age": "-2", "overlong": "keep", "length-of": "all",
		"masked": "no", "group-filter": "none such", "reward-affine": "1:2:3", "min-solved": "-1", "keep": "reward<1", "length-penalty": "1:2", "truncated-coef": "2"} {
		code, _, stderr := call(t, "convert", "--"+flag+"="+value, "--model", modelDir(t, nil), goodDump(t))
		require.Equal(t, exitUsage, code, flag)
		require.NotEmpty(t, stderr)
	}
	for _, value := range []string{"soft-overlong=4096.5:512", "soft-overlong=inf:5", "reward-affine=0:0", "reward-affine=1:0"} { // 4096, and no change, would be another rule
		_, err := parsed(t, "--"+value, "dumps").flags()
		require.ErrorContains(t, err, "expected", value)
	}
	code, _, stderr := call(t, "convert", "--recipe", "none such", "--overlong=keep", "--max-age=x", "--model", modelDir(t, nil), goodDump(t))
	require.Equal(t, exitUsage, code)
	for _, fault := range []string{"--recipe: no recipe is named", "--overlong", "--max-age"} {
		require.Contains(t, stderr, fault, "all faults are named")
	}
	require.Contains(t, stderr, "nemotron-swe2@7ea279abf")
}

// Targets whose trainers read no advantages refuse flags that would be lost.
func TestLostAdvantagesAreRefused(t *testing.T) {
	kit.Long(t)
	for _, target := range []string{"megatron"} {
		for _, flag := range []string{"--estimator=openclaw_step_wise", "--estimator=verl_reinforce_pp", "--advantage-clip=-1:1", "--recipe=swe-rl-prm"} {
			_, err := parsed(t, "--target="+target, flag, "dumps").flags()
			require.Error(t, err, "%s %s", target, flag)
			require.ErrorContains(t, err, "--target "+target)
		}
	}
	for _, target := range []string{"none", "slime", "verl", "skyrl", "nemo-rl", "prime-rl"} {
		_, err := parsed(t, "--target="+target, "--recipe=swe-rl-prm", "dumps").flags()
		require.NoError(t, err, target)
	}
}

func TestConvertByRecipe(t *testing.T) {
	kit.Long(t)
	out := filepath.Join(t.TempDir(), "batch")
	code, stdout, stderr := call(t, "convert", "--recipe", "verl-grpo", "--json", "--model", modelDir(t, nil), "--in", goodDump(t), "--out", out)
	require.Zero(t, code, stderr)
	var s struct {
		Batch struct {
			ResolveRate float64 `json:"resolve_rate"`
			Solves      []struct{ Solved, Of, Groups int }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &s))
	require.Equal(t, 0.5, s.Batch.ResolveRate)
	require.Len(t, s.Batch.Solves, 1)
	_, info, err := export.ReadAll(filepath.Join(out, "batch.parquet"))
	require.NoError(t, err)
	require.Equal(t, "verl-grpo@1dda039b9", info.Metadata["recipe"])
	r, err := recipe.Named("verl-grpo")
	require.NoError(t, err)
	require.Equal(t, r.Digest(), info.Metadata["recipe.digest"])
	require.Equal(t, "verl_grpo@1dda039b9", info.Estimator)

	code, stdout, _ = call(t, "recipe")
	require.Zero(t, code)
	for _, r := range recipe.All() {
		require.Contains(t, stdout, r.Name)
		code, text, _ := call(t, "recipe", r.Name)
		require.Zero(t, code)
		require.Contains(t, text, r.Digest())
		code, text, _ = call(t, "recipe", r.Name, "--json")
		require.Zero(t, code)
		require.True(t, json.Valid([]byte(text)))
	}
}

// Training dumps of swe-rl get the same advantages from its recipe as from the reference
// (_drop_constant_reward_groups, then _post_process_rewards): a reward of ±1 per rollout,
// (r − mean) / (σ + 1e-6) on all its steps, and no groups of equal rewards. A run whose
// evaluation failed has no outcome and counts in no mean.
func TestOpenClawByRecipe(t *testing.T) {
	kit.Long(t)
	src := kit.Dir(t, "data", "trajectories", "openclaw-rl")
	in := t.TempDir()
	groups := [][]string{
		{"train-resolved", "train-unresolved", "train-apply-failed", "train-no-patch", "train-eval-failed", "train-resolved"},
		{"train-unresolved", "train-no-patch"}, // equal rewards
		{"train-eval-timeout", "train-resolved"},
	}
	reward := map[string]float64{"train-resolved": 1, "train-unresolved": -1, "train-apply-failed": -1, "train-no-patch": -1, "train-eval-timeout": -1}
	want := map[string]float64{}
	for g, names := range groups {
		sum, square, n := 0.0, 0.0, 0.0
		for i, name := range names {
			dir := filepath.Join(in, fmt.Sprintf("task__g%d__i%d__1", g, 10*g+i))
			require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(src, name))))
			for _, file := range []string{"traj.json", "meta.json"} {
				text, err := os.ReadFile(filepath.Join(dir, file))
				require.NoError(t, err)
				text = regexp.MustCompile(`"group_index": \d+`).ReplaceAll(text, fmt.Appendf(nil, `"group_index": %d`, g))
				text = regexp.MustCompile(`"index": \d+`).ReplaceAll(text, fmt.Appendf(nil, `"index": %d`, 10*g+i))
				text = regexp.MustCompile(`"instance_id": "[^"]*"`).ReplaceAll(text, fmt.Appendf(nil, `"instance_id": "task-%d"`, g))
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), text, 0o600))
			}
			if r, ok := reward[name]; ok {
				sum, square, n = sum+r, square+r*r, n+1
			}
		}
		mean := sum / n
		deviation := math.Sqrt((square - n*mean*mean) / (n - 1))
		for i, name := range names {
			if r, ok := reward[name]; ok && deviation > 0 {
				want[fmt.Sprintf("i%d", 10*g+i)] = (r - mean) / (deviation + 1e-6)
			}
		}
	}
	out := filepath.Join(t.TempDir(), "batch")
	code, stdout, stderr := call(t, "convert", "--recipe", "swe-rl@0d034dd", "--json", "--model", modelDir(t, nil), "--in", in, "--out", out)
	require.Zero(t, code, stderr+stdout)
	rows, _, err := export.ReadAll(filepath.Join(out, "batch.parquet"))
	require.NoError(t, err)
	got := map[string]float64{}
	for _, r := range rows {
		_, index, _ := strings.Cut(r.Rollout, "__g")
		_, index, _ = strings.Cut(index, "__")
		value, ok := want[index]
		require.True(t, ok, "%s has rows", r.Rollout)
		require.InDelta(t, value, *r.Advantage, 1e-6, r.Rollout)
		got[index] = value
	}
	require.Equal(t, want, got, "each of them has rows")
	require.Contains(t, stdout, `"all rewards are alike": 1`)
	require.Contains(t, stdout, "infrastructure failure")
}

// Off-policy bounds apply to log probabilities that a trainer recorded next to the
// engine's: the ratio of the two policies is bounded at 5, and a row whose log
// probabilities differ too much is masked, as in nemotron-swe2. Other rows are left to
// the trainer and counted.
func TestOffPolicyOfDumps(t *testing.T) {
	kit.Long(t)
	type row struct {
		generation, prev []float64
		weights          []float32 // nil = masked
	}
	ratio := func(x float64) float32 { return float32(math.Exp(x)) }
	all := []row{
		{[]float64{-0.5, -1}, []float64{-0.25, -1.5}, []float32{ratio(0.25), ratio(-0.5)}},
		{[]float64{-2.5, -0.1}, []float64{-0.5, -0.1}, nil}, // mean of e² and 1 exceeds 2
		{[]float64{-1, -1}, []float64{-1, -1}, []float32{1, 1}},
		{[]float64{-1, -1}, []float64{0, 0}, []float32{1, 1}}, // the trainer computed none
	}
	list := func(x []float64) string { return fmt.Sprintf("[0,0,%g,%g,0]", x[0], x[1]) }
	var nemo, native []string
	for i, r := range all {
		nemo = append(nemo, fmt.Sprintf(`{"rewards":[%d],"input_lengths":[4],"token_ids":[[1,2,3,%d,0]],"token_loss_mask":[[0,0,1,1,0]],"sample_loss_mask":[1.0],"generation_logprobs":[%s],"prev_logprobs":[%s],"idx":%d}`,
			i%2, 4+i, list(r.generation), list(r.prev), i))
		train := fmt.Sprintf(`,"train_logprobs":[%g,%g]`, r.prev[0], r.prev[1])
		if r.prev[0] == 0 {
			train = ""
		}
		native = append(native, fmt.Sprintf(`{"turnpack_version":1,"id":"r%d","group":"g","messages":[{"role":"user","content":"x"}],"status":"completed","outcome":{"reward":%d,"resolved":%t},"turns":[{"prompt_ids":[1,2],"output_ids":[3,%d],"logprobs":[%g,%g]%s,"version":0}]}`,
			i, i%2, i%2 == 1, 4+i, r.generation[0], r.generation[1], train))
	}
	scale := map[string]string{"native": "binary", "nemo-rl": "recorded"}
	for name, lines := range map[string][]string{"nemo-rl": nemo, "native": native} {
		for _, flags := range [][]string{{"--recipe", "nemotron-swe2"}, {"--importance-weights", "0:5", "--logprob-error", "2"}} {
			out := t.TempDir()
			code, stdout, stderr := call(t, append([]string{"convert", "--in", dump(t, lines...), "--out", out, "--quiet", "--scale", scale[name]}, flags...)...)
			require.Zero(t, code, "%s %v: %s", name, flags, stderr)
			require.Contains(t, stdout, "not applied to 1 rows")
			require.Contains(t, stdout, "log probabilities differ too much")
			rows, _, err := export.ReadAll(filepath.Join(out, "batch.parquet"))
			require.NoError(t, err)
			require.Len(t, rows, 3)
			for _, got := range rows {
				want := all[got.IDs[len(got.IDs)-1]-4].weights
				require.NotNil(t, want)
				require.InDeltaSlice(t, []float32{0, 0, want[0], want[1]}, got.Weight, 1e-6, "%s %v", name, flags)
			}
		}
	}
	// The weights column is written even if the first row of the file needs none.
	for _, flags := range [][]string{{"--rows-per-shard", "2"}, {}, {"--dry-run"}} {
		out := t.TempDir()
		args := append([]string{"convert", "--in", dump(t, native[2], native[0]), "--out", out, "--quiet", "--importance-weights", "0:5"}, flags...)
		code, _, stderr := call(t, args...)
		require.Zero(t, code, "%v: %s", flags, stderr)
		files, err := filepath.Glob(filepath.Join(out, "batch.parquet"))
		require.NoError(t, err)
		shards, err := filepath.Glob(filepath.Join(out, "data", "*.parquet"))
		require.NoError(t, err)
		for _, file := range append(files, shards...) {
			rows, info, err := export.ReadAll(file)
			require.NoError(t, err)
			require.True(t, info.Columns.Weights)
			require.Len(t, rows, 2)
			require.Equal(t, []float32{0, 0, 1, 1}, rows[0].Weight)
			require.InDeltaSlice(t, []float32{0, 0, ratio(0.25), ratio(-0.5)}, rows[1].Weight, 1e-6)
		}
		require.Equal(t, len(flags) < 1 || flags[0] != "--dry-run", len(files)+len(shards) == 1)
	}
	out := t.TempDir()
	code, _, stderr := call(t, "convert", "--in", dump(t, native...), "--out", out, "--quiet", "--recipe", "nemotron-swe2", "--importance-weights=0.9:1.1:zero", "--logprob-error=none")
	require.Zero(t, code, stderr)
	rows, info, err := export.ReadAll(filepath.Join(out, "batch.parquet"))
	require.NoError(t, err)
	require.Len(t, rows, 3, "a row of which no token is left is none")
	for _, got := range rows {
		require.NotEqual(t, int32(4), got.IDs[len(got.IDs)-1])
	}
	require.Equal(t, "importance-weights logprob-error", info.Metadata["recipe.changed"])
	for flag, want := range map[string]string{"--importance-weights=5": "found 1 numbers", "--importance-weights=3:1": "is no interval", "--importance-weights=-1:1": "finite number", "--logprob-error=0.5": "1 or more", "--logprob-error=0": "or none"} {
		code, _, stderr := call(t, "convert", flag, goodDump(t))
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, "turnpack: "+flag[:strings.Index(flag, "=")]+": ", flag)
		require.Contains(t, stderr, want, flag)
	}
}
