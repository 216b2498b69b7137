package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/examples/turnpack/internal/tokens"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
)

const (
	exitOK     = cli.OK
	exitFailed = cli.Failed
	exitUsage  = cli.Usage
)

// call runs the command line and returns exit code, stdout and stderr.
func call(t *testing.T, args ...string) (int, string, string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(&cli.Program{Ctx: t.Context(), In: strings.NewReader(""), Out: &out, Err: &errOut}, args)
	return code, out.String(), errOut.String()
}

// modelDir writes the embedded model to a folder, changes it with edit and returns the
// folder.
func modelDir(t *testing.T, edit func(dir string)) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range []string{"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "tokenize", "embedded", f))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, f), b, 0o644))
	}
	if edit != nil {
		edit(dir)
	}
	return dir
}

// dump writes lines as a dump file and returns its folder.
func dump(t *testing.T, lines ...string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dump.jsonl"), []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	return dir
}

func chatLine(id string, resolved bool) string {
	b, _ := json.Marshal(map[string]any{"instance_id": "task", "traj_id": id, "resolved": resolved, "messages": []map[string]string{
		{"role": "user", "content": "do it"}, {"role": "assistant", "content": "done by " + id}}})
	return string(b)
}

func goodDump(t *testing.T) string { return dump(t, chatLine("a", true), chatLine("b", false)) }

func TestDemo(t *testing.T) {
	out := t.TempDir()
	code, stdout, stderr := call(t, "demo", "--out", out)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "24 in 6 groups")
	require.Contains(t, stdout, "1 with equal rewards")
	require.Contains(t, stdout, "1 aborted")
	require.Contains(t, stdout, "1 truncated")
	require.True(t, strings.HasSuffix(strings.TrimSpace(stdout), filepath.Join(out, "batch.parquet")))
	rows, info, err := export.ReadAll(filepath.Join(out, "batch.parquet"))
	require.NoError(t, err)
	require.EqualValues(t, len(rows), info.Rows)
	for _, r := range rows {
		require.NoError(t, r.Check())
	}
}

// The demo replaces its own batch, and no other.
func TestDemoSparesBatches(t *testing.T) {
	out := t.TempDir()
	code, _, stderr := call(t, "convert", goodDump(t), "--model", modelDir(t, nil), "--out", out)
	require.Zero(t, code, stderr)
	code, _, stderr = call(t, "demo", "--out", out)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "holds a batch of convert")
}

func TestConvert(t *testing.T) {
	out := filepath.Join(t.TempDir(), "batch")
	code, stdout, stderr := call(t, "convert", "--model", modelDir(t, nil), "--in", goodDump(t), "--out", out)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "2 in 1 groups")
	require.NoError(t, os.Remove(filepath.Join(out, cli.RecordName)))
	rows, _, err := export.ReadAll(filepath.Join(out, "batch.parquet"))
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.InDelta(t, -*rows[1].Advantage, *rows[0].Advantage, 1e-12)

	code, _, stderr = call(t, "convert", "--model", modelDir(t, nil), "--in", goodDump(t), "--out", out)
	require.Equal(t, exitFailed, code, "an output that exists is refused")
	require.Contains(t, stderr, "exists")
	killed := filepath.Join(out, ".batch.parquet.17.partial")
	require.NoError(t, os.WriteFile(killed, []byte("half"), 0o600))
	code, _, stderr = call(t, "convert", "--model", modelDir(t, nil), "--in", goodDump(t), "--out", out, "--force")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "removed what earlier runs that were killed left")
	require.NoFileExists(t, killed)

	code, stdout, _ = call(t, "convert", "--model", modelDir(t, nil), "--in", goodDump(t), "--out", out, "--dry-run", "--json")
	require.Zero(t, code)
	var s summary
	require.NoError(t, json.Unmarshal([]byte(stdout), &s))
	require.Equal(t, 2, s.Rollouts)
	require.Empty(t, s.Output)
}

// The same input gives the same bytes for any number of workers.
func TestConvertIsDeterministic(t *testing.T) {
	model, in := modelDir(t, nil), filepath.Join("demo", "dumps")
	var first []byte
	for _, workers := range []string{"1", "2", "5"} {
		out := t.TempDir()
		code, _, stderr := call(t, "convert", "--model", model, "--in", in, "--out", out, "--workers", workers)
		require.Zero(t, code, stderr)
		b, err := os.ReadFile(filepath.Join(out, "batch.parquet"))
		require.NoError(t, err)
		if first == nil {
			first = b
		}
		require.Equal(t, first, b, "with %s workers", workers)
	}
}

// Files may follow as arguments, as a shell expands a pattern.
func TestConvertArguments(t *testing.T) {
	out := t.TempDir()
	code, stdout, stderr := call(t, "convert", "--model", modelDir(t, nil), "--out", out, "--json", "--in", dump(t, chatLine("a", true)), dump(t, chatLine("b", false)))
	require.Zero(t, code, stderr)
	var s summary
	require.NoError(t, json.Unmarshal([]byte(stdout), &s))
	require.Equal(t, 2, s.Rollouts)
	code, _, stderr = call(t, "convert", "--model", modelDir(t, nil), "--out", out)
	require.NotZero(t, code)
	require.Contains(t, stderr, "no dump is named")
}

// The summary says how to apply a context window that the dump does not store.
func TestWindowHint(t *testing.T) {
	s := summary{Notes: map[string]int{"context_not_stored": 2}}
	require.Len(t, s.hints(), 1)
	s.windowed = true
	require.Empty(t, s.hints())
}

// Joined rewards are counted; rewards that match no rollout are listed.
func TestRewards(t *testing.T) {
	in := dump(t, `{"id": "run/a1.traj", "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]}`)
	file := filepath.Join(t.TempDir(), "r.csv")
	convert := func(rewards string) (int, string, string) {
		require.NoError(t, os.WriteFile(file, []byte("id,reward\n"+rewards), 0o600))
		return call(t, "convert", "--model", modelDir(t, nil), "--in", in, "--out", t.TempDir(), "--rewards", file)
	}
	code, _, stderr := convert("a1.traj,1\n")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, `none of 1 rewards names a rollout: `+file+`:2: a1.traj (the rollout "run/a1.traj" looks alike`)
	code, stdout, stderr := convert("run/a1.traj,1\nzz,1\n")
	require.Zero(t, code, stderr)
	require.Regexp(t, `rewards joined +1\n.*without a rollout +1: .*: zz\n`, stdout)
}

// Verdicts and plain numbers in one group have no common scale.
func TestMixedScale(t *testing.T) {
	number := `{"instance_id": "task", "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}], "reward": 0.5}`
	verdict := strings.Replace(number, `"reward": 0.5`, `"resolved": true`, 1)
	in, model := dump(t, number, verdict), modelDir(t, nil)
	code, _, stderr := call(t, "convert", "--model", model, "--in", in, "--out", t.TempDir())
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, `2 its group holds verdicts and numbers (choose the scale`)
	code, _, stderr = call(t, "convert", "--model", model, "--in", in, "--out", t.TempDir(), "--scale", "signed")
	require.Zero(t, code, stderr)

	// If there are other groups, the mixed group is left out and listed.
	in = dump(t, number, strings.Replace(verdict, "task", "other", 1), verdict)
	code, stdout, _ := call(t, "convert", "--model", model, "--in", in, "--out", t.TempDir())
	require.Equal(t, exitLeftOut, code)
	require.Regexp(t, `rows +1\n`, stdout)
	require.Regexp(t, `out of the statistics +2 its group holds verdicts and numbers \(first: `, stdout)
	require.Regexp(t, `records left out +2 of 3\n.*group "task" holds rollouts with a verdict`, stdout)
}

func TestReadOnlyOutput(t *testing.T) {
	if syscall.Geteuid() == 0 {
		// Permissions do not bind root, but a file in place of the folder does.
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		code, _, stderr := call(t, "convert", "--model", modelDir(t, nil), "--in", goodDump(t), "--out", filepath.Join(file, "batch"))
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr, "cannot be made")
		return
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o500))
	code, _, stderr := call(t, "convert", "--model", modelDir(t, nil), "--in", goodDump(t), "--out", filepath.Join(dir, "batch"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "permission")
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"convert"}, {"nonsense"}, {"convert", "--model", "x", "--in", "y", "--mode", "sideways"}} {
		code, _, stderr := call(t, args...)
		require.Equal(t, exitUsage, code, args)
		require.NotEmpty(t, stderr)
	}
	code, stdout, _ := call(t)
	require.Zero(t, code)
	require.Contains(t, stdout, "convert")
}

func TestShow(t *testing.T) {
	kit.Long(t)
	out := t.TempDir()
	code, _, stderr := call(t, "demo", "--out", out)
	require.Zero(t, code, stderr)
	file := filepath.Join(out, "batch.parquet")
	code, stdout, stderr := call(t, "show", file, "1")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "«")
	require.NotContains(t, stdout, "\x1b", "no colour when it is not a terminal")
	require.Contains(t, stdout, "── message 0")
	code, stdout, _ = call(t, "show", file, "1", "--color", "always")
	require.Zero(t, code)
	require.Contains(t, stdout, "\x1b[1;32m")
	code, _, stderr = call(t, "show", file, "999")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "rows 0 to")
}

func TestTargets(t *testing.T) {
	kit.Long(t)
	model, in := modelDir(t, nil), filepath.Join("demo", "dumps")
	for _, c := range []struct {
		name  string
		flags []string
		files []string
	}{
		{"one file", []string{"--target", "slime"}, []string{"batch.parquet"}},
		{"a file a step", []string{"--target", "slime", "--groups-per-step", "4"}, []string{"data", "manifest.json"}},
		{"shards by rows", []string{"--rows-per-shard", "10"}, []string{"data", "manifest.json"}},
		{"slime pt", []string{"--target", "slime", "--pt", "--groups-per-step", "4"}, []string{"0.pt", "1.pt", "manifest.json"}},
		{"megatron", []string{"--target", "megatron", "--seq-len", "4096", "--estimator", "none"}, []string{"manifest.json", "train-00000.idx.parquet", "train-00000.metadata.json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := t.TempDir()
			code, _, stderr := call(t, append([]string{"convert", "--model", model, "--in", in, "--out", out}, c.flags...)...)
			require.Zero(t, code, stderr)
			entries, err := os.ReadDir(out)
			require.NoError(t, err)
			var names []string
			for _, e := range entries {
				if !strings.HasPrefix(e.Name(), ".") {
					names = append(names, e.Name())
				}
			}
			require.Equal(t, c.files, names)
		})
	}
	code, _, stderr := call(t, "convert", "--model", model, "--in", in, "--out", t.TempDir(), "--target", "trl-async")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "log probabilities", "the target's rule says what is missing")
	code, _, _ = call(t, "convert", "--model", model, "--in", in, "--out", t.TempDir(), "--target", "nobody")
	require.Equal(t, exitUsage, code)
}

// Flags out of range, and those that would do nothing, are refused.
func TestShowRefusesFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--token", "-2"}, "--token: expected 0 or more, found -2"},
		{[]string{"--width", "-5"}, "--width: expected 0 (that of the terminal) or more, found -5"},
		{[]string{"--in", "dumps"}, "--in: does nothing without --token"},
	} {
		code, _, stderr := call(t, append([]string{"show", "batch.parquet"}, c.args...)...)
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, c.want)
	}
}

// The colour modes of show: what colours a token, and what the rules print without
// colour.
func TestShowModes(t *testing.T) {
	kit.Long(t)
	out := t.TempDir()
	code, _, stderr := call(t, "demo", "--out", out)
	require.Zero(t, code, stderr)
	file := filepath.Join(out, "batch.parquet")
	code, stdout, stderr := call(t, "show", file, "2", "--by", "advantage")
	require.Zero(t, code, stderr)
	require.NotContains(t, stdout, "\x1b")
	require.Contains(t, stdout, "advantage -1.5000 ─")
	code, stdout, _ = call(t, "show", file, "2", "--by", "advantage", "--color", "always")
	require.Zero(t, code)
	require.Contains(t, stdout, "\x1b[1;38;5;208m", "negative advantages are orange")
	require.NotContains(t, stdout, "\x1b[1;32m")
	code, _, stderr = call(t, "show", file, "2", "--by", "logprob")
	require.Equal(t, exitFailed, code, "the demo has no log probabilities")
	require.Contains(t, stderr, "--by mask")
}

func TestHelpListsEveryCommand(t *testing.T) {
	_, stdout, _ := call(t, "--help")
	for _, f := range reflect.VisibleFields(reflect.TypeFor[commandLine]()) {
		require.Regexp(t, "\n  "+strings.ToLower(f.Name)+"[ \n]", stdout)
	}
}

// Rank files of prime-rl can be shown, audited and viewed like other files; they hold the
// rows that were packed.
func TestRankFiles(t *testing.T) {
	kit.Long(t)
	tutorial := filepath.Join("..", "tutorial")
	model, out, plain := filepath.Join(tutorial, "model"), t.TempDir(), t.TempDir()
	for dir, flags := range map[string][]string{out: {"--target", "prime-rl", "--seq-len", "2048", "--pad-multiple", "512"}, plain: nil} {
		code, _, stderr := call(t, append([]string{"convert", "--model", model, "--in", filepath.Join(tutorial, "dumps"), "--out", dir}, flags...)...)
		require.Zero(t, code, stderr)
	}
	bin := filepath.Join(out, "rollouts", "step_1", "rank_0.bin")
	packed, err := tokens.OpenRows(bin)
	require.NoError(t, err)
	defer packed.Close()
	rows, _, err := export.ReadAll(filepath.Join(plain, "batch.parquet"))
	require.NoError(t, err)
	left := map[string]rollout.Sample{}
	for _, r := range rows {
		left[fmt.Sprint(r.IDs)] = r
	}
	for range rows {
		s, err := packed.Read()
		require.NoError(t, err)
		want, ok := left[fmt.Sprint(s.IDs)]
		require.True(t, ok, "%s is no row of the batch", s.ID)
		require.Equal(t, want.Weight, s.Weight)
		require.InDeltaSlice(t, want.Logprob, s.Logprob, 1e-6)
		require.InDeltaSlice(t, want.Credit, s.Credit, 1e-6)
	}
	_, err = packed.Read()
	require.ErrorIs(t, err, io.EOF)
	code, stdout, stderr := call(t, "show", bin, "1", "--model", model, "--by", "logprob")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "row batch 0, sequence 1")
	require.Contains(t, stderr, "prime-rl rank file")
	code, stdout, _ = call(t, "audit", bin, "--model", model)
	require.Zero(t, code, stdout)
	require.Contains(t, stdout, "16 rows, 6198 tokens, 2456 trained")
	code, stdout, stderr = call(t, "view", bin, "--model", model)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "rank_0.html: 16 rows")
}

// Weights turn the mean over the trained tokens of each step into the requested mean.
func TestWeights(t *testing.T) {
	kit.Long(t)
	tutorial := filepath.Join("..", "tutorial")
	convert := func(flags ...string) (string, string) {
		out := t.TempDir()
		code, _, stderr := call(t, append([]string{"convert", "--model", filepath.Join(tutorial, "model"), "--in", filepath.Join(tutorial, "dumps"), "--mode", "perstep", "--out", out}, flags...)...)
		if code != 0 {
			return "", stderr
		}
		return out, ""
	}
	for _, c := range []struct {
		weights string
		unit    func(s *rollout.Sample) string
	}{
		{"rollout-mean", func(s *rollout.Sample) string { return s.Rollout }},
		{"prompt-mean", func(s *rollout.Sample) string { return s.Group }},
		{"sequence-mean", func(s *rollout.Sample) string { return s.ID }},
	} {
		out, stderr := convert("--weights", c.weights, "--groups-per-step", "2")
		require.Empty(t, stderr)
		for _, file := range []string{"data/step_0.parquet", "data/step_1.parquet"} {
			rows, _, err := export.ReadAll(filepath.Join(out, file))
			require.NoError(t, err)
			sums, trained, all := map[string]float64{}, 0, 0.0
			for _, s := range rows {
				trained += s.Trained()
				for _, w := range s.Weight {
					sums[c.unit(&s)] += float64(w)
					all += float64(w)
				}
			}
			require.InDelta(t, 1, all/float64(trained), 1e-5, "%s of %s", c.weights, file)
			for unit, sum := range sums {
				require.InDelta(t, all/float64(len(sums)), sum, 1e-3, "%s counts %s once", c.weights, unit)
			}
		}
	}
	// For a trainer without weights, the advantages are scaled to give the mean over
	// rollouts.
	scaled, stderr := convert("--weights", "rollout-mean", "--target", "areal", "--policy-version", "3")
	require.Empty(t, stderr)
	plain, _ := convert("--target", "areal", "--policy-version", "3")
	a, _, err := export.ReadAll(filepath.Join(scaled, "batch.parquet"))
	require.NoError(t, err)
	b, _, err := export.ReadAll(filepath.Join(plain, "batch.parquet"))
	require.NoError(t, err)
	trained, rollouts := int64(0), map[string]bool{}
	for _, s := range b {
		trained += int64(s.Trained())
		rollouts[s.Rollout] = true
	}
	for i, s := range b {
		require.InDelta(t, *s.Advantage*float64(trained)/float64(int64(len(rollouts))*s.RolloutMaskSum), *a[i].Advantage, 1e-5)
	}
	_, stderr = convert("--weights", "sequence-mean", "--target", "areal", "--policy-version", "3")
	require.Contains(t, stderr, "convert --weights rollout-mean")
	_, stderr = convert("--weights", "rollouts")
	require.Contains(t, stderr, "rollout-mean, prompt-mean, sequence-mean")
}

// A mistake is answered with what was expected, what was found and how to fix it, and
// with the matching exit status.
func TestMistakes(t *testing.T) {
	kit.Long(t)
	model, in := modelDir(t, nil), goodDump(t)
	batch := filepath.Join(t.TempDir(), "batch")
	code, _, stderr := call(t, "convert", "--model", model, "--in", in, "--out", batch, "--rows-per-shard", "1", "--group-by", "none", "--estimator", "none")
	require.Zero(t, code, stderr)
	file := filepath.Join(t.TempDir(), "notes.txt")
	require.NoError(t, os.WriteFile(file, []byte("text\n"), 0o600))
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"convert --model nowhere --in x", exitFailed, []string{"nowhere", "no such folder", "tokenizer.json"}},
		{"convert --model " + filepath.Dir(file) + " --in x", exitFailed, []string{filepath.Join(filepath.Dir(file), "tokenizer.json"), "Hugging Face"}},
		{"convert --model " + model + " --in " + in + " --estimator grpp", exitUsage, []string{"--estimator", `"grpp"`, "rloo"}},
		{"convert --model " + model + " --in " + in + " --estimator slime_grpo", exitUsage, []string{`--estimator: the estimator "slime_grpo@`, "slices by position", "choose none, grpo, openclaw_grpo,"}},
		{"convert --model " + model + " --in " + in + " --estimator verl_remax", exitUsage, []string{"--estimator: verl_remax@", "greedy rollout"}},
		{"convert --model " + model + " --in " + in + " --estimator verl_reinforce_pp --discount 0 --advantage-clip=-1:1", exitUsage, []string{"--discount", "above 0", "--advantage-clip"}},
		{"convert --model " + model + " --in " + in + " --discount 0.9", exitUsage, []string{"--discount", "does nothing with --estimator grpo"}},
		{"convert --model " + model + " --in " + in + " --format swe", exitUsage, []string{"--format", `"swe"`, "swe-agent"}},
		{"convert --model " + model + " --keep= --rewards=", exitUsage, []string{"--keep: is empty, expected a value", "--rewards: is empty", "convert --help"}},
		{"convert --model x --mode sideways", exitUsage, []string{"--mode", "merged", "sideways", "convert --help"}},
		{"conver", exitUsage, []string{"convert", "turnpack --help"}},
		{"show nowhere.parquet", exitFailed, []string{"nowhere.parquet", "cannot be opened: no such file", "(check the path"}},
		{"show " + file, exitFailed, []string{"expected a Parquet", `"text`}},
		{"show " + batch, exitFailed, []string{"2 batch files", "part-00000.parquet"}},
		{"show " + filepath.Dir(file), exitFailed, []string{"holds no batch"}},
		{"audit nowhere.parquet", exitUsage, []string{"nowhere.parquet", "no such file", "(check the path"}},
		{"view", exitUsage, []string{"expected one batch file, found 0", "view --help"}},
	} {
		code, stdout, stderr := call(t, strings.Fields(c.args)...)
		require.Equal(t, c.code, code, c.args)
		require.Empty(t, stdout, c.args)
		for _, w := range c.want {
			require.Contains(t, stderr, w, c.args)
		}
		require.NotContains(t, stderr, "open: open", c.args)
	}
	code, stdout, stderr := call(t, "audit", batch, "--model", model)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "2 rows", "a folder stands for its files")
	one := t.TempDir()
	code, _, stderr = call(t, "convert", "--model", model, "--in", in, "--out", one)
	require.Zero(t, code, stderr)
	for _, command := range []string{"show", "view", "audit"} {
		code, _, stderr = call(t, command, filepath.Join(one, "batch.parquet"), "--template", "tool_use")
		require.Equal(t, exitUsage, code, command)
		require.Contains(t, stderr, "--template: it is of a model folder, and none is named (name the folder with --model)")
	}
	code, stdout, stderr = call(t, "diff", one, filepath.Join(one, "batch.parquet"))
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "2 rows equal, 0 differ")
}

// The help of every command fits a terminal of 80 columns.
func TestHelpWidth(t *testing.T) {
	for _, name := range []string{"", "convert", "certify", "show", "demo", "audit", "diff", "score", "view"} {
		code, stdout, _ := call(t, strings.Fields(name+" --help")...)
		require.Zero(t, code, name)
		for line := range strings.Lines(stdout) {
			require.LessOrEqual(t, uniseg.StringWidth(strings.TrimRight(line, "\n")), 80, "turnpack %s --help: %s", name, line)
		}
	}
}

// Invalid messages get their own advantage in the columns with one advantage per token.
// Targets without such columns are refused.
func TestAdvantageOfMessagesAtFault(t *testing.T) {
	kit.Long(t)
	record := func(answer string, resolved bool) string {
		return fmt.Sprintf(`{"instance_id": "task", "resolved": %t, "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}, {"role": "user", "content": "z"}, {"role": "assistant", "content": %q}]}`, resolved, answer)
	}
	in, model, out := dump(t, record("<think>", true), record("fine", false)), modelDir(t, nil), t.TempDir()
	code, stdout, stderr := call(t, "convert", "--model", model, "--in", in, "--out", out, "--malformed-thinking-advantage=-5", "--invalid-call-advantage=-5")
	require.Zero(t, code, stderr)
	require.Regexp(t, `messages at fault +1 malformed_thinking\n`, stdout)
	f, err := export.Open(filepath.Join(out, "batch.parquet"))
	require.NoError(t, err)
	defer f.Close()
	var found []map[float32]bool
	for range 2 {
		s, err := f.Read()
		require.NoError(t, err)
		values := map[float32]bool{}
		for i, w := range s.Weight {
			if w > 0 {
				values[s.Credit[i]] = true
			}
		}
		found = append(found, values)
	}
	require.Len(t, found[0], 2)
	require.True(t, found[0][-5])
	require.Len(t, found[1], 1)

	for _, refused := range [][]string{{"--target", "megatron"}, {"--estimator", "none"}} {
		code, _, stderr = call(t, append([]string{"convert", "--model", model, "--in", in, "--out", t.TempDir(), "--invalid-call-advantage=-5"}, refused...)...)
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, "--invalid-call-advantage")
	}
	code, _, stderr = call(t, "convert", "--model", model, "--in", in, "--out", t.TempDir(), "--detect", "nemotron")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "add --invalid-call-advantage")
	code, _, stderr = call(t, "convert", "--model", model, "--in", in, "--out", t.TempDir(), "--invalid-call-advantage=NaN")
	require.Equal(t, exitUsage, code, stderr)
}
