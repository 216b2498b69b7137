package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/internal/kit"
)

// many writes a dump of that many groups of two, with log probabilities for trainers that
// need them.
func many(t *testing.T, groups int) string {
	var lines []string
	for g := range groups {
		for i := range 2 {
			id, resolved := fmt.Sprint("t", g, "-", i), i == 0
			b, err := json.Marshal(map[string]any{"id": id, "group": fmt.Sprint("g", g), "status": "completed", "temperature": 1, "outcome": map[string]any{"resolved": resolved},
				"turns": []map[string]any{{"prompt_ids": []int{1, 2, g}, "output_ids": []int{3, 4 + i, 5}, "logprobs": []float64{-1, -0.5, -0.25}}}})
			require.NoError(t, err)
			lines = append(lines, string(b))
		}
	}
	return dump(t, lines...)
}

// manyAborted is many with groups of four: every third group has an aborted rollout,
// every fourth one with two rows.
func manyAborted(t *testing.T, groups int) string {
	var lines []string
	for g := range groups {
		for i := range 4 {
			status, prompt := "completed", []int{1, 2, g}
			if i == 3 && g%3 == 0 {
				status = "aborted"
			}
			if i == 2 && g%4 == 0 {
				prompt = []int{9, 9, g}
			}
			b, err := json.Marshal(map[string]any{"id": fmt.Sprint("t", g, "-", i), "group": fmt.Sprint("g", g), "status": status, "temperature": 1, "outcome": map[string]any{"resolved": i == 0},
				"turns": []map[string]any{{"prompt_ids": []int{1, 2, g}, "output_ids": []int{3, 4 + i}, "logprobs": []float64{-1, -0.5}, "version": 3},
					{"prompt_ids": append(prompt, 3, 4+i, 7), "output_ids": []int{5}, "logprobs": []float64{-0.25}, "version": 4}}})
			require.NoError(t, err)
			lines = append(lines, string(b))
		}
	}
	return dump(t, lines...)
}

// An uninterrupted run, a run resumed after kills and a run that finds the batch complete
// report the same left-out rollouts.
func TestLeftOutForTheTargetAfterKills(t *testing.T) {
	kit.Long(t)
	model, in := modelDir(t, nil), manyAborted(t, 40)
	for name, x := range map[string]struct {
		flags []string
		want  map[string]int
	}{
		"areal": {[]string{"--target", "areal", "--rows-per-shard", "6"}, map[string]int{"excluded: aborted": 14}},
		"slime": {[]string{"--target", "slime", "--groups-per-step", "2", "--pt"}, map[string]int{"excluded: aborted": 14}},
		"trl": {[]string{"--target", "trl", "--rows-per-shard", "6", "--group-size", "3"},
			map[string]int{"excluded: aborted": 14, "rollout of several rows": 10, "rollout of an incomplete group": 88}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := func(out string) []string {
				return append([]string{"convert", "--model", model, "--in", in, "--out", out, "--json", "--format", "native"}, x.flags...)
			}
			told := func(out string) map[string]int {
				text, err := process(args(out)...).Output()
				require.NoError(t, err, string(text))
				var s summary
				require.NoError(t, json.Unmarshal(text, &s))
				all := maps.Clone(s.WithoutRows)
				maps.Copy(all, s.Target)
				return all
			}
			whole := filepath.Join(t.TempDir(), "b")
			begin := time.Now()
			require.Equal(t, x.want, told(whole))
			took := time.Since(begin)
			want := tree(t, whole)
			require.Equal(t, x.want, told(whole), "of a batch that is complete")
			code, stdout, stderr := call(t, slices.DeleteFunc(args(whole), func(a string) bool { return a == "--json" })...)
			require.Equal(t, 0, code, stderr)
			require.Contains(t, stdout, "already complete")
			for why, n := range x.want {
				if !strings.HasPrefix(why, "excluded") { // excluded by the mask, for any target
					require.Contains(t, stdout, fmt.Sprint(n, " ", why))
				}
			}
			went := 0
			for round := range 2 {
				out := filepath.Join(t.TempDir(), "b")
				run := process(args(out)...)
				require.NoError(t, run.Start())
				time.Sleep(took * time.Duration(40+30*round) / 100)
				_ = run.Process.Kill()
				_ = run.Wait()
				if files, _ := filepath.Glob(filepath.Join(out, shard.ProgressName)); len(files) > 0 {
					went++
				}
				require.Equal(t, x.want, told(out), "round %d", round)
				require.Equal(t, want, tree(t, out), "round %d", round)
			}
			t.Logf("%d of 2 runs went on from shards", went)
		})
	}
}

// A kill between the two steps that name the record leaves a complete batch and a temporary
// file, which the next run removes.
func TestKilledWhileRecordIsNamed(t *testing.T) {
	out := filepath.Join(t.TempDir(), "b")
	args := []string{"convert", "--model", modelDir(t, nil), "--in", many(t, 2), "--out", out, "--quiet", "--format", "native"}
	text, err := process(args...).CombinedOutput()
	require.NoError(t, err, string(text))
	want := tree(t, out)
	require.NoError(t, os.Link(filepath.Join(out, cli.RecordName), filepath.Join(out, "."+cli.RecordName+".7.partial")))
	text, err = process(args...).CombinedOutput()
	require.NoError(t, err, string(text))
	require.Contains(t, string(text), "already complete")
	require.Equal(t, want, tree(t, out))
}

// For every file format, the bytes after any number of kills equal those without a kill.
// Incomplete batches are recognized by audit and by readers, and no rerun is refused.
func TestKilledConverts(t *testing.T) {
	kit.Long(t)
	model, in := modelDir(t, nil), many(t, 40)
	for name, flags := range map[string][]string{
		"one file":   nil,
		"shards":     {"--rows-per-shard", "4"},
		"slime pt":   {"--target", "slime", "--pt", "--groups-per-step", "2"},
		"megatron":   {"--target", "megatron", "--seq-len", "64", "--groups-per-step", "2", "--estimator", "none"},
		"prime-rl":   {"--target", "prime-rl", "--seq-len", "64", "--ranks", "2", "--groups-per-step", "2"},
		"one pt":     {"--target", "slime", "--pt"},
		"step files": {"--target", "skyrl", "--groups-per-step", "2"},
		"weighed":    {"--rows-per-shard", "4", "--weights", "rollout-mean"},
		"counted":    {"--rows-per-shard", "4", "--estimator", "verl_grpo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := func(out string) []string {
				return append([]string{"convert", "--model", model, "--in", in, "--out", out, "--quiet", "--format", "native"}, flags...)
			}
			whole := filepath.Join(t.TempDir(), "b")
			begin := time.Now()
			run := process(args(whole)...)
			text, err := run.CombinedOutput()
			require.NoError(t, err, string(text))
			took := time.Since(begin)
			want := tree(t, whole)
			unfinished := 0
			for round := range 5 {
				out := filepath.Join(t.TempDir(), "b")
				for kill := range 2 {
					run := process(args(out)...)
					require.NoError(t, run.Start())
					time.Sleep(took * time.Duration(20+16*round+7*kill) / 100)
					_ = run.Process.Kill()
					_ = run.Wait()
					unfinished += saysSo(t, out)
				}
				text, err := process(args(out)...).CombinedOutput()
				require.NoError(t, err, "round %d: %s", round, text)
				require.Equal(t, want, tree(t, out), "round %d", round)
			}
			t.Logf("kills left %d parts of the batch", unfinished)
		})
	}
}

// The next run cleans up after a run that was killed between its record and its cleanup,
// and has nothing else to do.
func TestKilledAfterTheEnd(t *testing.T) {
	kit.Long(t)
	out, in := filepath.Join(t.TempDir(), "b"), many(t, 40)
	args := []string{"convert", "--model", modelDir(t, nil), "--in", in, "--out", out, "--quiet", "--format", "native"}
	run := process(args...)
	require.NoError(t, run.Start())
	var left []string
	require.Eventually(t, func() bool {
		left, _ = filepath.Glob(filepath.Join(out, "*.begun"))
		return len(left) == 1
	}, time.Minute, 100*time.Microsecond)
	_ = run.Process.Kill()
	_ = run.Wait()
	text, err := process(args...).CombinedOutput()
	require.NoError(t, err, string(text))
	want := tree(t, out)
	require.NoError(t, os.WriteFile(left[0], nil, 0o600))
	text, err = process(args...).CombinedOutput()
	require.NoError(t, err, string(text))
	require.Contains(t, string(text), "already complete")
	require.Equal(t, want, tree(t, out))
}

// saysSo checks every batch file in a folder without a manifest, checks that the commands
// report one of them as incomplete, and returns the number of files.
func saysSo(t *testing.T, dir string) (parts int) {
	if _, err := os.Stat(filepath.Join(dir, shard.ManifestName)); err == nil {
		return 0
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			return nil
		}
		switch filepath.Ext(path) {
		case ".parquet", ".pt", ".bin":
			if e.Name() == "batch.parquet" {
				return nil // complete by itself
			}
			require.ErrorIs(t, shard.Unfinished(path), export.ErrUnfinished, path)
			if parts++; parts > 1 {
				return nil // the commands need only one
			}
			code, stdout, stderr := call(t, "audit", path)
			require.Equal(t, 1, code, stdout+stderr)
			require.Contains(t, stdout, "unfinished-set")
			code, stdout, stderr = call(t, "show", path)
			require.Equal(t, 0, code, stdout+stderr)
			require.Contains(t, stderr, export.ErrUnfinished.Error())
			code, stdout, stderr = call(t, "view", path, "--out", filepath.Join(t.TempDir(), "page.html"))
			require.Equal(t, 0, code, stdout+stderr)
			require.Contains(t, stdout, export.ErrUnfinished.Error())
		}
		return nil
	})
	return parts
}
