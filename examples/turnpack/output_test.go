package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/tokenize"
)

// Flags without effect or in conflict are all reported at once, before any input is read.
func TestOutputFlagsAreChecked(t *testing.T) {
	kit.Long(t)
	for flags, want := range map[string]string{
		"--target prime-rl": "--seq-len: prime-rl packs rows by it",
		"--target megatron": "--seq-len: megatron packs rows by it",
		"--target megatron --seq-len 1000 --pad-multiple 3":          "no multiple of PadMultiple 3",
		"--target prime-rl --seq-len 1000 --pad-multiple 3":          "expected a divisor of SeqLen 1000",
		"--target prime-rl --seq-len 1000 --ranks 0":                 "--ranks: found 0, expected 1 or more",
		"--target verl --ranks 2":                                    "--ranks: does nothing with --target verl",
		"--pad-multiple 8":                                           "--pad-multiple: does nothing with --target none",
		"--target slime --pt --rows-per-shard 3":                     "does nothing with --target slime",
		"--groups-per-step 2 --bytes-per-shard 100":                  "--groups-per-step: a file is one training step",
		"--groups-per-step=-1":                                       "--groups-per-step: found -1",
		"--target megatron --seq-len 64 --trace on":                  "--trace: does nothing",
		"--policy-version=-7":                                        "--policy-version: found -7",
		"--pt":                                                       "--pt: does nothing with --target none",
		"--step-coef NaN":                                            "--step-coef: NaN is not finite",
		"--max-tokens=-1":                                            "--max-tokens: limit -1",
		"--mode whole --window tail:300":                             "--window: does nothing with --mode whole",
		"--mode perstep --drift splice":                              "--drift: does nothing with --mode perstep",
		"--length-penalty 0:0.1:0.1 --scale signed":                  "--length-penalty: it takes shares of a group's mean reward",
		"--edges document":                                           "--edges: merged rows cannot hold tokens that cross turns",
		"--drift auto --max-drop-tokens=-2":                          "--max-drop-tokens: found -2, expected -1 (none)",
		"--drift auto --max-sub-tokens=-8":                           "--max-sub-tokens: found -8, expected -1 (none)",
		"--workers=-1":                                               "--workers: found -1",
		"--weights foo --window foo --estimator foo --target nobody": "--target: no trainer is named",
	} {
		code, stdout, stderr := call(t, append([]string{"convert", "--model", "nowhere", "--in", "nothing"}, strings.Fields(flags)...)...)
		require.Equal(t, exitUsage, code, flags)
		require.Empty(t, stdout, flags)
		require.Contains(t, stderr, want, flags)
		require.NotContains(t, stderr, "nowhere", flags)
	}
	_, _, stderr := call(t, "convert", "--model", "nowhere", "--in", "nothing", "--weights", "foo", "--window", "foo", "--estimator", "foo")
	require.Equal(t, 3, strings.Count(stderr, "turnpack: "), stderr)
	_, _, stderr = call(t, "convert", "--model", "nowhere", "--in", "nothing", "--estimator", "trl_rloo_batchnorm:key")
	require.Equal(t, 1, strings.Count(stderr, "cannot stream"), stderr)
}

// A value that does not parse does not hide other errors, and each error names its flag
// as it is typed.
func TestAllFaultsAtOnce(t *testing.T) {
	faulty := []string{"--mode=x", "--scale=x", "--truncated-coef=x", "--min-solved=x", "--no-such-flag", "--discount=x", "--keep=x", "--reward-clip=3:1", "--advantage-clip=4:1",
		"--soft-overlong=1:2:3", "--max-tokens=-1", "--temperature=-1", "--group-by=x", "--recipe=x", "--group-filter=x", "--estimator=x", "--masked=x", "--overlong=x", "--length-of=x",
		"--reward-affine=x", "--length-penalty=0:0:-1", "--max-age=x", "--min-valid=-1", "--min-unsolved=-1", "--filter-raw", "--step-coef=NaN", "--window=x", "--drift=x",
		"--invalid-call-advantage=x", "--malformed-thinking-advantage=Inf", "--workers=-1", "--now=x", "--template-kwargs={", "--format=x", "--on-error=x", "--weights=x",
		"--min-fidelity=3", "--max-stop-loss=-1", "--edges=x", "--target=x"}
	for _, order := range []func([]string){func([]string) {}, slices.Reverse[[]string]} {
		order(faulty)
		code, stdout, stderr := call(t, append([]string{"convert", "--model", "nowhere", "--in", "nothing"}, faulty...)...)
		require.Equal(t, exitUsage, code)
		require.Empty(t, stdout)
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		for _, flag := range faulty {
			name, _, _ := strings.Cut(flag, "=")
			n := 0
			for _, line := range lines {
				if strings.HasPrefix(line, "turnpack: "+name+":") || strings.HasPrefix(line, "turnpack: "+name+" must be") || strings.HasPrefix(line, "turnpack: unknown flag "+name) {
					n++
				}
			}
			require.Equal(t, 1, n, "%s in\n%s", flag, stderr)
		}
		require.Len(t, lines, len(faulty)+1, stderr)
		require.Contains(t, lines[len(faulty)], "turnpack convert --help")
	}
	code, _, stderr := call(t, "certify", "--mode=x", "--no-such-flag")
	require.Equal(t, exitUsage, code)
	for _, what := range []string{"--mode must be one of", "unknown flag --no-such-flag", "missing flags: --model", "run 'turnpack certify --help'"} {
		require.Contains(t, stderr, what)
	}
	code, _, stderr = call(t, "no-such-verb", "--mode=x")
	require.Equal(t, exitUsage, code)
	require.Equal(t, 1, strings.Count(stderr, "turnpack: "), stderr)
}

// A dry run refuses the same rows as the run.
func TestDryRunHoldsRowsToTheTarget(t *testing.T) {
	kit.Long(t)
	model, in := modelDir(t, nil), goodDump(t)
	for flags, want := range map[string]string{
		"--target trl-async":                                      "log probabilities",
		"--target areal":                                          "policy versions",
		"--target areal --policy-version 3":                       "",
		"--target trl --group-by none":                            "takes groups of 2 or more",
		"--seq-len 3":                                             "the limit is 3",
		"--target slime --weights sequence-mean":                  "",
		"--weights prompt-mean":                                   "",
		"--target megatron --seq-len 512":                         "",
		"--target megatron --seq-len 512 --unknown-status refuse": "",
		"--unknown-status refuse":                                 "status unknown is none of",
		"--on-error skip --max-tokens 1":                          "no rollout gave a row",
	} {
		var codes []int
		for _, dry := range []string{"--dry-run", "--quiet"} {
			code, _, stderr := call(t, append([]string{"convert", "--model", model, "--in", in, "--out", t.TempDir(), dry}, strings.Fields(flags)...)...)
			require.Contains(t, stderr, want, "%s %s", flags, dry)
			codes = append(codes, code)
		}
		require.Equal(t, codes[1], codes[0], flags)
		require.Equal(t, want == "", codes[0] == exitOK, flags)
	}
}

// A dry run holds rows that are long enough to come as runs to what a pack can hold, too.
func TestDryRunOfLongRows(t *testing.T) {
	model := modelDir(t, nil)
	m, err := tokenize.Load(model, tokenize.LoadOptions{})
	require.NoError(t, err)
	eos, _ := m.EOS()
	line, err := json.Marshal(map[string]any{"id": "a", "group": "g", "status": "completed", "turns": []map[string]any{
		{"prompt_ids": slices.Repeat([]int32{7}, 600), "output_ids": append(slices.Repeat([]int32{8}, 100), eos, eos)}}})
	require.NoError(t, err)
	for _, dry := range []string{"--dry-run", "--quiet"} {
		code, _, stderr := call(t, "convert", "--model", model, "--in", dump(t, string(line)), "--out", t.TempDir(), "--target", "megatron", "--seq-len", "1024", "--pad-multiple", "16", "--estimator", "none", dry)
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr, "which the reader takes for padding", dry)
	}
}
