package patch_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/reward/patch"
)

// TestAgainstGit makes patches with git and applies them, with git and with this package, to modified
// versions of the files: both must accept and refuse the same patches and produce the same text.
func TestAgainstGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not installed; install it to run this test")
	}
	if testing.Short() {
		t.Skip("SKIPPED: starts many processes; run without -short")
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	text := func(lines []string) string {
		if len(lines) == 0 {
			return ""
		}
		return strings.Join(lines, "\n") + "\n"
	}
	// drift changes, removes or adds up to n lines.
	drift := func(lines []string, n int, letters string) []string {
		lines = slices.Clone(lines)
		for range n {
			letter := string(letters[rng.IntN(len(letters))])
			i := rng.IntN(len(lines) + 1)
			switch k := rng.IntN(3); {
			case k == 0 || i == len(lines):
				lines = slices.Insert(lines, i, letter)
			case k == 1:
				lines = slices.Delete(lines, i, i+1)
			default:
				lines[i] = letter
			}
		}
		return lines
	}
	dir := t.TempDir()
	git := func(args ...string) (string, error) {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		return string(out), err
	}
	write := func(name, content string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	applied, refused := 0, 0
	for range 80 {
		var before []string
		for range 2 + rng.IntN(14) {
			before = append(before, string("abc"[rng.IntN(3)]))
		}
		write("a/f", text(before))
		write("b/f", text(drift(before, 1+rng.IntN(3), "xyz")))
		diff, _ := git("diff", "--no-index", "--src-prefix=", "--dst-prefix=", fmt.Sprintf("-U%d", 1+rng.IntN(3)), "a/f", "b/f")
		if diff == "" {
			continue // the changes cancelled out
		}
		target := text(drift(before, rng.IntN(3), "abc"))
		write("f", target)
		write("p", diff)
		_, gitErr := git("apply", "p")
		want, err := os.ReadFile(filepath.Join(dir, "f"))
		require.NoError(t, err)

		p, err := patch.Parse(diff)
		require.NoError(t, err, "seed %d\n%s", seed, diff)
		got, err := p.Apply(treeOf(files{"f": target}))
		if gitErr != nil {
			require.Error(t, err, "seed %d: git refuses\n%s\nfor %q", seed, diff, target)
			refused++
			continue
		}
		require.NoError(t, err, "seed %d: git applies\n%s\nto %q", seed, diff, target)
		require.Equal(t, string(want), got["f"].Content, "seed %d\n%s\nto %q", seed, diff, target)
		applied++
	}
	require.Greater(t, applied, 10, "seed %d", seed)
	require.Greater(t, refused, 3, "seed %d", seed)
}
