package patch_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/reward/patch"
	"github.com/turnpack/turnpack/rollout"
)

// repository is a git repository in a temporary folder.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) repository {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not installed; install it to compare with git diff and git apply")
	}
	r := repository{t, t.TempDir()}
	r.git("init", "-q")
	return r
}

func (r repository) run(args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-c", "core.fileMode=true", "-c", "core.symlinks=true", "-c", "core.autocrlf=false",
		"-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.abbrev=40"}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (r repository) git(args ...string) string {
	r.t.Helper()
	out, err := r.run(args...)
	require.NoError(r.t, err, "git %v: %s", args, out)
	return out
}

// hold replaces the contents of the work tree and stages them.
func (r repository) hold(t patch.Tree) {
	r.t.Helper()
	entries, err := os.ReadDir(r.dir)
	require.NoError(r.t, err)
	for _, e := range entries {
		if e.Name() != ".git" {
			require.NoError(r.t, os.RemoveAll(filepath.Join(r.dir, e.Name())))
		}
	}
	for name, f := range t {
		at := filepath.Join(r.dir, name)
		require.NoError(r.t, os.MkdirAll(filepath.Dir(at), 0o755))
		if f.Mode == "120000" {
			require.NoError(r.t, os.Symlink(f.Content, at))
			continue
		}
		perm := os.FileMode(0o644)
		if f.Mode == "100755" {
			perm = 0o755
		}
		require.NoError(r.t, os.WriteFile(at, []byte(f.Content), perm))
	}
	r.git("add", "-A", "-f", ".")
}

var treeNames = []string{"a", "b", "c.sh", "dir/a", "dir/b c", "dir/deep/x", "link", "dir/link", "ünï", "tab\there", `quo"te`, "back\\slash", "new\nline", "run", "dir2/run", "-dash", "dir/deep"}

func randomFile(rng *rand.Rand) patch.File {
	var b strings.Builder
	switch rng.IntN(6) {
	case 0: // empty
	case 1:
		for range 20 {
			b.WriteByte(byte(rng.IntN(8)))
		}
	default:
		for range 1 + rng.IntN(12) {
			fmt.Fprintf(&b, "line %d\n", rng.IntN(5))
		}
		if rng.IntN(3) == 0 {
			b.WriteString("no line end")
		}
	}
	f := patch.File{Content: b.String()}
	switch rng.IntN(4) {
	case 0:
		f.Mode = "100755"
	case 1:
		f = patch.File{Content: []string{"a", "../dir", "no/such file", "/etc/hostname", "dir/b c"}[rng.IntN(5)], Mode: "120000"}
	}
	return f
}

// put adds a file and removes the entries that are in its way.
func put(t patch.Tree, name string, f patch.File) {
	maps.DeleteFunc(t, func(other string, _ patch.File) bool {
		return strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/")
	})
	t[name] = f
}

func randomTree(rng *rand.Rand) patch.Tree {
	t := patch.Tree{}
	for range 2 + rng.IntN(7) {
		put(t, treeNames[rng.IntN(len(treeNames))], randomFile(rng))
	}
	return t
}

// changed returns a tree near t: with files added, removed, moved, copied, edited, or given another
// mode or type.
func changed(rng *rand.Rand, t patch.Tree) patch.Tree {
	t = maps.Clone(t)
	for range 1 + rng.IntN(5) {
		names := slices.Sorted(maps.Keys(t))
		if len(names) == 0 {
			break
		}
		name := names[rng.IntN(len(names))]
		f := t[name]
		other := treeNames[rng.IntN(len(treeNames))]
		switch rng.IntN(7) {
		case 0:
			delete(t, name)
		case 1:
			put(t, other, randomFile(rng))
		case 2: // chmod
			if f.Mode != "120000" {
				f.Mode = map[string]string{"": "100755", "100755": ""}[f.Mode]
			}
			t[name] = f
		case 3: // another type
			put(t, name, randomFile(rng))
		case 4: // moved
			delete(t, name)
			put(t, other, f)
		case 5: // copied
			put(t, other, f)
		default:
			if f.Mode == "120000" {
				f.Content += "x"
			} else {
				f.Content = "first\n" + f.Content
			}
			t[name] = f
		}
	}
	return t
}

// TestModesAndLinksAgainstGit: a diff by git of two random trees leads from the first to the second,
// and reversed from the second to the first, also after printing and parsing; a diff applied to a
// third tree gives the same result as git apply.
func TestModesAndLinksAgainstGit(t *testing.T) {
	repo := newRepository(t)
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	const seed = 2
	rng := rand.New(rand.NewPCG(seed, 1))
	kinds := map[string]int{}
	for round := range rounds {
		a := randomTree(rng)
		b := changed(rng, a)
		where := fmt.Sprintf("seed %d round %d", seed, round)
		repo.hold(a)
		read, err := patch.ReadDir(repo.dir)
		require.NoError(t, err, where)
		require.Equal(t, a, read, where)
		before := strings.TrimSpace(repo.git("write-tree"))
		repo.hold(b)
		after := strings.TrimSpace(repo.git("write-tree"))
		args := [][]string{{"--no-renames"}, {"-M"}, {"-C", "--find-copies-harder"}, {"-M", "-U1"}}[rng.IntN(4)]
		diff := repo.git(append([]string{"diff", "--binary", "--full-index", before, after}, args...)...)
		if diff == "" {
			continue
		}
		p, err := patch.Parse(diff)
		require.NoError(t, err, "%s\n%s", where, diff)
		got, err := p.Apply(a)
		require.NoError(t, err, "%s\n%s", where, diff)
		require.Equal(t, b, got, "%s\n%s", where, diff)
		again, err := patch.Parse(p.String())
		require.NoError(t, err, "%s\n%s", where, p)
		got, err = again.Apply(a)
		require.NoError(t, err, "%s\n%s\n%s", where, diff, p)
		require.Equal(t, b, got, "%s\n%s", where, diff)
		if back, err := p.Reverse(); err == nil {
			got, err = back.Apply(b)
			require.NoError(t, err, "%s\n%s", where, diff)
			require.Equal(t, a, got, "%s, reversed\n%s", where, diff)
			printed, err := patch.Parse(back.String())
			require.NoError(t, err, where)
			got, err = printed.Apply(b)
			require.NoError(t, err, "%s\n%s\n%s", where, diff, back)
			require.Equal(t, a, got, "%s, reversed and printed\n%s\n%s", where, diff, back)
			kinds["reversed"]++
		}

		third := changed(rng, a)
		repo.hold(third)
		require.NoError(t, os.WriteFile(filepath.Join(repo.dir, ".git", "p"), []byte(diff), 0o644))
		out, gitErr := repo.run("apply", "--index", ".git/p")
		got, err = p.Apply(third)
		if gitErr != nil {
			kinds["refused"]++
			if err == nil && strings.Contains(out, "is beyond a symbolic link") && got.Check() == nil {
				continue // git ignores that the patch moves the link away, even in its own diffs
			}
			require.Error(t, err, "%s: git says %s\n%s\nfor %v", where, out, diff, third)
			continue
		}
		kinds["applied"]++
		require.NoError(t, err, "%s: git applies\n%s\nto %v", where, diff, third)
		want, err := patch.ReadDir(repo.dir)
		require.NoError(t, err)
		require.Equal(t, want, got, "%s\n%s", where, diff)
	}
	t.Log(kinds)
	require.Greater(t, kinds["applied"], rounds/20)
	require.Greater(t, kinds["refused"], rounds/20)
	require.Greater(t, kinds["reversed"], rounds/4)
}

// TestTreesThatNoRepositoryHolds: invalid trees are refused, and so are patches that would create
// them.
func TestTreesThatNoRepositoryHolds(t *testing.T) {
	for _, tree := range []patch.Tree{
		{"../x": {}}, {"/x": {}}, {"a//b": {}}, {"": {}}, {".": {}}, {".git/config": {}}, {"sub/.git/hooks/x": {}}, {"a": {}, "a/b": {}},
		{"out": {Content: "/tmp", Mode: "120000"}, "out/x": {}}, {"x": {Mode: "9"}},
	} {
		require.ErrorIs(t, tree.Check(), rollout.KindInput, "%v", tree)
	}
	for _, text := range []string{
		"diff --git a/.git/config b/.git/config\nnew file mode 100644\n--- /dev/null\n+++ b/.git/config\n@@ -0,0 +1 @@\n+x\n",
		"diff --git a/f/g b/f/g\nnew file mode 100644\n--- /dev/null\n+++ b/f/g\n@@ -0,0 +1 @@\n+x\n",
		"diff --git a/dir b/dir\nnew file mode 100644\n--- /dev/null\n+++ b/dir\n@@ -0,0 +1 @@\n+x\n",
		"diff --git a/sub b/sub\nnew file mode 160000\n--- /dev/null\n+++ b/sub\n@@ -0,0 +1 @@\n+Subproject commit 1111111111111111111111111111111111111111\n",
		"diff --git a/f b/f\nindex 1111111..2222222 120000\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n",
	} {
		_, err := parse(t, text).Apply(treeOf(files{"f": "x\n", "dir/a": ""}))
		require.ErrorIs(t, err, rollout.KindInput, text)
	}
}
