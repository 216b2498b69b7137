package reward

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEstimatorsDoc checks that docs/estimators.md matches the code. Run with UPDATE_GOLDEN=1 to write
// the page.
func TestEstimatorsDoc(t *testing.T) {
	path := filepath.Join("..", "docs", "estimators.md")
	want := estimatorsDoc(t)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run UPDATE_GOLDEN=1 go test ./reward")
}

const docHead = `# Advantage estimators

<!-- Written by go test ./reward with UPDATE_GOLDEN=1. Do not edit. -->

An estimator is a record of independent choices (package ` + "`reward`, type `Estimator`" + `):

    advantage = clip(factor × (reward − centre) / (scale ⊕ ε))

Presets are named after system and revision, because formulas change between revisions. ` + "`grpo`" + ` is this module's default; the others reproduce a system, its shortcomings included. In every preset a rollout without a usable reward leaves the statistics.

` + "`convert --estimator` and `Pipeline` take all but those that go by position or by order: STREAMLESS (`NAME:key` groups by key where NAME goes by position, but for TWICE, which looks at all advantages a second time). One that compares steps, `openclaw_step_wise@0d034dd5e`, takes their scores from the rollouts. Package `reward` has them all." + `

## Choices

- **group**: *key* compares rollouts that carry the same key. *position* cuts the batch into slices of fixed size, so one dropped row shifts every later group.
- **unit**: *rollout* counts each rollout once, *row* once per training row, so that rollouts cut into many rows weigh more, *step* compares agent steps of the same number (` + "`StepAdvantages`" + `).
- **masked**: what a rollout does that the loss mask leaves out whole (below).
- **centre**: what is subtracted. **scale**: what it is divided by. Both over the group unless the batch is named.
- **single**: a group of one. **constant**: a group whose rewards are all alike. *zero* finds it by spread before any division; *as is* leaves what rounding makes of it.
- **sums mean of squares**: where the rewards, or the others, are alike and no binary fraction (0.1), rounding alone decides whether a row is divided by about 10⁻⁶ or left as it is, here and in NeMo RL, whose own order of sums depends on group size and processor from seven rewards on: the one 1.0 beside 0.1s may get 0.9 or 900,000. Set a clip.

| preset | group | unit | masked | centre | scale | ε | single | constant | also |
|---|---|---|---|---|---|---|---|---|---|
`

const docMasked = `
## Rollouts that are masked

Overlong filtering, and every other mask over a whole rollout, takes its tokens out of the loss. Whether its reward stays in the mean and deviation of its group is another choice (field ` + "`Masked`" + `), and presets make it as their system does. A rollout that stays counts with as many rows as it would have; one of which no row can be made at all always leaves. The summary counts who left, and why.

| system | masked rollouts | source |
|---|---|---|
| slime, OpenClaw-RL | stay | ` + "`remove_sample`" + ` empties the loss mask after the rewards of all samples are normalised (` + "`_convert_samples_to_train_data`, slime/ray/rollout.py" + `) |
| verl | stay | no mask for long replies, only a soft penalty of the reward (` + "`overlong_buffer`" + ` of reward_manager/dapo.py); every row of a prompt is in its mean (core_algos.py) |
| SkyRL | stay | ` + "`apply_overlong_filtering`" + ` empties loss masks in the generator, ` + "`compute_advantages_and_returns`" + ` reads the rewards of all trajectories, of those in steps the last row's (train/trainer.py). Its filter for groups without variance looks at unmasked ones alone: ` + "`reward/filter`" + ` |
| NeMo RL | stay | baseline and deviation are taken over all rows before ` + "`overlong_filtering` and `mask_sample`" + ` set the loss multiplier to 0 (algorithms/grpo.py) |
| TRL | stay | ` + "`mask_truncated_completions`" + ` empties the completion mask, the rewards of all completions are normalised (grpo_trainer.py); a completion that no function scores leaves |
| prime-rl | leave | algorithms see traces without an error that have a trained token, each once (` + "`iter_trainable_traces`" + `, orchestrator/algo/base.py) |
| AReaL | stay | ` + "`mask_no_eos_with_zero`" + ` sets advantages to 0 after ` + "`reward_norm`" + ` saw every reward (trainer/ppo/actor.py) |
| ` + "`grpo`" + `, this module | stay | DAPO (arXiv:2503.14476, section 3.4) masks the loss of truncated samples |

Rewards 1, 0, 1 and two masked rollouts of reward 0: ` + "`nemo_grpo_loo_std`" + ` gives the three MASKED_NEMO, ` + "`prime_grpo`" + ` MASKED_PRIME.
`

const docOverride = `
## Messages at fault

An ` + "`Override`" + ` gives sampled messages with an invalid tool call, or with malformed reasoning, an advantage of their own, after all comparison and before the clip; an invalid call wins over malformed reasoning, as in NeMo RL's ` + "`invalid_tool_call_advantage` and `malformed_thinking_advantage`" + ` (Nemotron 3: −5 each). ` + "`Pipeline.Detector`" + ` finds such messages: ` + "`convert --invalid-call-advantage=-5 --malformed-thinking-advantage=-5`" + `.

| ` + "`--detect`" + ` | invalid call | malformed reasoning |
|---|---|---|
| ` + "`all`" + ` | a tool that was not offered; arguments that are no JSON object or break the tool's schema; a call left in the text that is not whole, names no tool or breaks its schema | markers without counterpart, twice, or after parsed reasoning |
| ` + "`nemotron`" + ` | NeMo RL's (environments/nemo_gym.py): ` + "`<tool_call>` or `<function_call>`" + ` in the text, or in reasoning that nothing follows; replies with parsed calls pass | ` + "`<think>`" + ` or its end in the text; twice in reasoning that nothing follows |

Messages that the dump flags (` + "`is_invalid_tool_call`, `has_malformed_thinking`" + `) count under both. Merged rows of such rollouts have more than one advantage: trainers that read one for each row take them with ` + "`--mode perstep`" + `.
`

const docWeights = `
## Loss weights

` + "`turnpack convert --weights`" + ` writes weights by which a trainer's mean over tokens becomes another mean over the same tokens: ` + "`rollout-mean`" + ` (a rollout counts once, however many rows a window or drift made of it), ` + "`prompt-mean`, `sequence-mean`" + `. Weights of an optimizer step average to 1; a step is ` + "`--groups-per-step`" + ` groups, else the whole batch. For a trainer that reads no weights, ` + "`rollout-mean`" + ` goes into its advantages, and the others are refused. The aggregations of trainers stand under their own names, such as ` + "`slime_rollout_mean@624b824a8`" + `.
`

func estimatorsDoc(t *testing.T) string {
	var b strings.Builder
	var whole, twice []string
	for _, e := range Presets() {
		if _, err := ByKey(e).Statistics(nil); err != nil && e.Grouping == groupByPosition {
			twice = append(twice, "`"+e.Name+"`")
		}
		if e.Grouping == groupByPosition {
			e.Size = 1
		}
		if _, err := e.Statistics(nil); err != nil && e.Unit != unitStep {
			whole = append(whole, "`"+e.Name+"`")
		}
	}
	b.WriteString(strings.NewReplacer("STREAMLESS", strings.Join(whole, ", "), "TWICE", strings.Join(twice, ", ")).Replace(docHead))
	for _, e := range Presets() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", e.Name, word(e.Grouping, "key"), word(e.Unit, "rollout"), word(e.Masked, "stay"),
			over(word(e.Center, "mean"), e.CenterOver), over(word(e.Divisor, "σ₁"), e.ScaleOver), docEpsilon(e), word(e.Singleton, "zero"), docConstant(e), docAlso(e))
	}
	b.WriteString(strings.NewReplacer("MASKED_NEMO", maskedExample(t, "nemo_grpo_loo_std"), "MASKED_PRIME", maskedExample(t, "prime_grpo")).Replace(docMasked))
	b.WriteString(`
AReaL's record has its own builder, ` + "`ArealNorm`" + `: mean and deviation each over the group, the batch or not at all, leave-one-out or not, σ₀ or σ₁, and the deviation is taken about the mean actually subtracted.

## Golden numbers

One group of n rollouts, the first quarter solved (reward 1), the rest not (reward 0), rows of 10, 20, 30 … tokens; the value of a solved and of an unsolved rollout. Positional presets have slices of n. ` + "`verl_grpo_passk`" + ` gives every rollout 0 where two are best.

| preset | n = 4 | n = 8 | n = 16 | n = 32 |
|---|---|---|---|---|
`)
	for _, e := range Presets() {
		fmt.Fprintf(&b, "| `%s` |", e.Name)
		for _, n := range []int{4, 8, 16, 32} {
			solved, unsolved := golden(t, e, n)
			fmt.Fprintf(&b, " %s / %s |", number(solved), number(unsolved))
		}
		b.WriteString("\n")
	}
	b.WriteString(`
## Token estimators

These give every trained token a value of its own (type ` + "`TokenEstimator`" + `): the reward less the centre, paid on the last trained token, discounted back, and whitened over all trained tokens of the batch. ` + "`" + `Pipeline.Tokens` + "`" + ` and ` + "`" + `convert --estimator NAME` + "`" + ` (` + "`" + `--discount` + "`" + ` where nothing is subtracted) run all but ` + "`" + `verl_remax` + "`" + `, which needs the reward of a greedy rollout for each prompt; every row counts as a response. Targets that read one advantage for a row refuse rows in which they differ, which are those with a discount or with gaps that reset the return.

| preset | centre | tool tokens | whitening |
|---|---|---|---|
`)
	for _, e := range TokenPresets() {
		flow := "carry the return"
		if e.ResetAtMask {
			flow = "reset it"
		} else if e.Gaps {
			flow = "carry the return, discounted"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", e.Name, word(e.Center, "mean"), flow, docWhiten(e.Whiten))
	}
	b.WriteString(docOverride)
	b.WriteString(docWeights)
	return b.String()
}

// word returns the wording of a choice on the page.
func word(c Choice, empty string) string {
	words := map[Choice]string{
		"": empty, divideStd0: "σ₀", divideOthersStd: "σ₁ of the others", epsilonIfSpread: "added where the divisor > 0, else unscaled",
		populationZero: "valid, excluded get 0", singletonUnit: "reward / (1 + ε)", singletonAsIs: "as is", constantDropPlural: "drop, singletons kept",
		arithmeticMeanOfSquares: "mean of squares", factorNonzero: "rows / nonzero rows",
	}
	return cmp.Or(words[c], string(c))
}

func over(what string, l Choice) string {
	if l == levelBatch {
		return what + " of the batch"
	}
	return what
}

func docEpsilon(e Estimator) string {
	if e.Divisor == divideNone && !e.Normalize || e.Place == epsilonNone {
		return "–"
	}
	return number(e.epsilon()) + " " + word(e.Place, "added")
}

func docConstant(e Estimator) string {
	s := word(e.Constant, "zero")
	if e.Constant != constantAsIs {
		s += " (" + word(e.ToleranceOf, "spread") + " ≤ " + number(e.tolerance()) + ")"
	}
	return s
}

func docAlso(e Estimator) string {
	var also []string
	if e.KeepConstant > 0 {
		also = append(also, fmt.Sprintf("at least %d group stays", e.KeepConstant))
	}
	if e.Grouping == groupByPosition {
		also = append(also, "rows beyond the slices: "+word(e.Remainder, "error"))
	}
	if e.Population != populationValid {
		also = append(also, "population "+word(e.Population, "valid"))
	}
	if e.Normalize {
		also = append(also, "then a batch z-score")
	}
	if e.Factor != factorOne {
		also = append(also, "factor "+word(e.Factor, "1"))
	}
	if e.Decay != 0 {
		also = append(also, "decay "+number(e.Decay))
	}
	if e.ScaleAboutCenter {
		also = append(also, "scale about the centre")
	}
	if e.Arithmetic != arithmeticExact {
		also = append(also, "sums "+word(e.Arithmetic, "exact"))
	}
	return strings.Join(also, "; ")
}

func docWhiten(w Whiten) string {
	if w.Off {
		return "–"
	}
	s, eps := "σ₁, ε 1e-08 under the root", ""
	if w.Population {
		s = "σ₀"
	}
	if w.Floor {
		s += ", variance at least 1e-08"
	}
	if w.CountEpsilon > 0 {
		eps = ", token count + " + number(w.CountEpsilon)
	}
	return s + eps
}

func golden(t *testing.T, e Estimator, n int) (solved, unsolved float64) {
	if e.Grouping == groupByPosition {
		e.Size = n
	}
	g := GroupRewards{Key: "g"}
	for i := range n {
		r := RolloutReward{ID: strconv.Itoa(i), Length: 10 * (i + 1)}
		if i < n/4 {
			r.Reward = 1
		}
		g.Rollouts = append(g.Rollouts, r)
	}
	got, _, err := Advantages([]GroupRewards{g}, e)
	require.NoError(t, err, e.Name)
	return got[0][0].Value, got[0][n-1].Value
}

// overlong returns a group of three trained and two masked rollouts.
func overlong() GroupRewards {
	g := GroupRewards{Key: "g"}
	for i, r := range []float64{1, 0, 1, 0, 0} {
		g.Rollouts = append(g.Rollouts, RolloutReward{ID: strconv.Itoa(i), Reward: r, Rows: 1, MaskedRows: i / 3})
	}
	return g
}

func maskedExample(t *testing.T, name string) string {
	e, ok := Preset(name)
	require.True(t, ok)
	got, _, err := Advantages([]GroupRewards{overlong()}, e)
	require.NoError(t, err)
	var out []string
	for _, a := range got[0][:3] {
		out = append(out, number(a.Value))
	}
	return strings.Join(out, ", ")
}

func number(x float64) string {
	if x == 0 {
		return "0"
	}
	if a := math.Abs(x); a < 1e-3 {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return strconv.FormatFloat(math.Round(x*1e6)/1e6, 'f', -1, 64)
}

// The golden numbers of the default estimator, computed by hand: mean ¼, σ₁² = n/(n − 1) · 3/16.
func TestGoldenNumbersByHand(t *testing.T) {
	for _, n := range []int{4, 8, 16, 32} {
		sd := math.Sqrt(float64(n) / float64(n-1) * 3 / 16)
		solved, unsolved := golden(t, GRPO(), n)
		require.InDelta(t, 0.75/(sd+1e-6), solved, 1e-14)
		require.InDelta(t, -0.25/(sd+1e-6), unsolved, 1e-14)
	}
}
