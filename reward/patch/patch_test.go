package patch_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/reward/patch"
	"github.com/turnpack/turnpack/rollout"
)

// files holds file contents by path.
type files = map[string]string

// treeOf returns a tree of regular files.
func treeOf(contents files) patch.Tree {
	t := patch.Tree{}
	for name, content := range contents {
		t[name] = patch.File{Content: content}
	}
	return t
}

const modify = `diff --git a/src/a.go b/src/a.go
index 1111111..2222222 100644
--- a/src/a.go
+++ b/src/a.go
@@ -1,4 +1,5 @@
 one
-two
+TWO
+two and a half
 three
 four
`

func parse(t *testing.T, text string) *patch.Patch {
	p, err := patch.Parse(text)
	require.NoError(t, err)
	return p
}

func TestApply(t *testing.T) {
	tree := treeOf(files{"src/a.go": "one\ntwo\nthree\nfour\nfive\n", "b": "x"})
	after, err := parse(t, modify).Apply(tree)
	require.NoError(t, err)
	require.Equal(t, treeOf(files{"src/a.go": "one\nTWO\ntwo and a half\nthree\nfour\nfive\n", "b": "x"}), after)
	require.Equal(t, "one\ntwo\nthree\nfour\nfive\n", tree["src/a.go"].Content, "the tree that was given stays")

	back, err := parse(t, modify).Reverse()
	require.NoError(t, err)
	again, err := back.Apply(after)
	require.NoError(t, err)
	require.Equal(t, tree, again)
}

func TestPlace(t *testing.T) {
	hunk := func(position int, context string) string {
		return fmt.Sprintf("--- a/f\n+++ b/f\n@@ -%d,3 +%d,3 @@\n %s\n-x\n+y\n %s\n", position, position, context, context)
	}
	for _, c := range []struct {
		reason, file, patch, want string
	}{
		{"where it says", "p\nc\nx\nc\nq\n", hunk(2, "c"), "p\nc\ny\nc\nq\n"},
		{"moved down", "p\np\np\nc\nx\nc\nq\n", hunk(2, "c"), "p\np\np\nc\ny\nc\nq\n"},
		{"moved up", "p\nc\nx\nc\nq\n", hunk(90, "c"), "p\nc\ny\nc\nq\n"},
		{"the nearest of two", "c\nx\nc\np\np\nc\nx\nc\nq\n", hunk(5, "c"), "c\nx\nc\np\np\nc\ny\nc\nq\n"},
		{"a hunk at line 1 must match at the start", "p\nc\nx\nc\n", hunk(1, "c"), ""},
		{"without trailing context it must match at the end", "c\nx\nq\n", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n c\n-x\n+y\n", ""},
		{"no match", "c\nz\nc\n", hunk(1, "c"), ""},
		{"longer than the file", "c\n", hunk(5, "c"), ""},
		{"white space counts", "c \nx\nc\n", hunk(1, "c"), ""},
		{"no end of line at the end", "c\nx", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n c\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n", "c\ny"},
		{"an end of line that the file lacks", "c\nx", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n c\n-x\n+y\n", ""},
		{"positions beyond all files", "c\nx\nc\nq\n", hunk(1<<60, "c"), "c\ny\nc\nq\n"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			after, err := parse(t, c.patch).Apply(treeOf(files{"f": c.file}))
			if c.want == "" {
				require.ErrorIs(t, err, rollout.KindInput)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, after["f"].Content)
		})
	}
}

func TestKinds(t *testing.T) {
	const many = `diff --git a/new.txt b/new.txt
new file mode 100644
--- /dev/null
+++ b/new.txt
@@ -0,0 +1,2 @@
+hello
+world
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/old.py b/tests/moved_test.py
similarity index 60%
rename from old.py
rename to tests/moved_test.py
--- a/old.py
+++ b/tests/moved_test.py
@@ -1,2 +1,2 @@
 a
-b
+B
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
`
	p := parse(t, many)
	tree := treeOf(files{"gone.txt": "bye\n", "old.py": "a\nb\n", "run.sh": "ls\n"})
	after, err := p.Apply(tree)
	require.NoError(t, err)
	want := treeOf(files{"new.txt": "hello\nworld\n", "tests/moved_test.py": "a\nB\n", "run.sh": "ls\n"})
	want["run.sh"] = patch.File{Content: "ls\n", Mode: "100755"}
	require.Equal(t, want, after)
	require.Equal(t, []string{"new.txt", "gone.txt", "old.py", "tests/moved_test.py", "run.sh"}, p.Touched())
	require.Equal(t, []patch.Change{
		{Kind: "add", New: "new.txt"},
		{Kind: "delete", Old: "gone.txt"},
		{Kind: "rename", Old: "old.py", New: "tests/moved_test.py"},
		{Kind: "modify", Old: "run.sh", New: "run.sh"},
	}, p.Changes())

	back, err := p.Reverse()
	require.NoError(t, err)
	again, err := back.Apply(after)
	require.NoError(t, err)
	require.Equal(t, tree, again)
	printed, err := parse(t, back.String()).Apply(after)
	require.NoError(t, err)
	require.Equal(t, tree, printed, "the printed reverse does the same")

	for _, c := range []struct {
		reason string
		tree   patch.Tree
	}{
		{"a file to add exists", treeOf(files{"new.txt": "", "gone.txt": "bye\n", "old.py": "a\nb\n", "run.sh": ""})},
		{"a file to delete is missing", treeOf(files{"old.py": "a\nb\n", "run.sh": ""})},
		{"a file to delete has more lines", treeOf(files{"gone.txt": "bye\nbye\n", "old.py": "a\nb\n", "run.sh": ""})},
		{"a rename's target exists", treeOf(files{"gone.txt": "bye\n", "old.py": "a\nb\n", "tests/moved_test.py": "", "run.sh": ""})},
	} {
		_, err := p.Apply(c.tree)
		require.ErrorIs(t, err, rollout.KindInput, c.reason)
	}
	only := p.Only(func(path string) bool { return strings.Contains(path, "test") })
	require.Equal(t, []string{"old.py", "tests/moved_test.py"}, only.Touched())
	require.Nil(t, p.Only(func(string) bool { return false }))
}

func TestFaults(t *testing.T) {
	for _, c := range []struct{ reason, text string }{
		{"empty", ""},
		{"prose", "I fixed the bug by adding a check.\n"},
		{"no hunk body", "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n"},
		{"hunk too short", "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+c\n"},
		{"negative counts", "--- a/f\n+++ b/f\n@@ -1,-1 +1,1 @@\n+c\n"},
		{"leaves the repository", "--- a/../f\n+++ b/../f\n@@ -1 +1 @@\n-b\n+c\n"},
	} {
		_, err := patch.Parse(c.text)
		require.ErrorIs(t, err, rollout.KindFormat, c.reason)
	}
}

// TestRandomEdits: for random files and edits, the patch made of them applies, its reverse undoes it,
// even in a shifted file, and printing preserves it.
func TestRandomEdits(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 7))
	for range 300 {
		before := make([]string, 20+rng.IntN(30))
		for i := range before {
			before[i] = fmt.Sprintf("line %d %d", i, rng.IntN(3))
		}
		text, after := randomPatch(rng, before)
		if text == "" {
			continue
		}
		p := parse(t, text)
		old := strings.Join(before, "\n") + "\n"
		got, err := p.Apply(treeOf(files{"f": old}))
		require.NoError(t, err, "seed %d\n%s", seed, text)
		require.Equal(t, strings.Join(after, "\n")+"\n", got["f"].Content, "seed %d\n%s", seed, text)
		r, err := p.Reverse()
		require.NoError(t, err)
		for _, q := range []*patch.Patch{r, parse(t, r.String())} {
			back, err := q.Apply(got)
			require.NoError(t, err, "seed %d\n%s", seed, r)
			require.Equal(t, old, back["f"].Content, "seed %d", seed)
		}
		rr, err := r.Reverse()
		require.NoError(t, err)
		require.Equal(t, p.String(), rr.String(), "reversing twice is nothing")
		if !strings.Contains(text, "@@ -1,") {
			shifted, err := p.Apply(treeOf(files{"f": "head\nhead\n" + old}))
			require.NoError(t, err, "seed %d\n%s", seed, text)
			require.Equal(t, "head\nhead\n"+got["f"].Content, shifted["f"].Content)
		}
	}
}

// randomPatch replaces single lines, each with one line of context around it.
func randomPatch(rng *rand.Rand, before []string) (text string, after []string) {
	after = append(after, before...)
	var b strings.Builder
	for i := 1 + rng.IntN(5); i+1 < len(before); i += 4 + rng.IntN(9) {
		after[i] = "changed " + before[i]
		fmt.Fprintf(&b, "@@ -%d,3 +%d,3 @@\n %s\n-%s\n+%s\n %s\n", i, i, before[i-1], before[i], after[i], before[i+1])
	}
	if b.Len() == 0 {
		return "", nil
	}
	return "diff --git a/f b/f\n--- a/f\n+++ b/f\n" + b.String(), after
}

// As in git, a rename or a copy starts from the file as it was before the patch, and two files may
// swap places.
func TestMovesReadTheTreeAsItWas(t *testing.T) {
	for _, row := range []struct {
		reason, text string
		tree, want   patch.Tree
	}{
		{"the source of a copy changes too", "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1 @@\n-one\n two\n" +
			"diff --git a/a b/b\nsimilarity index 90%\ncopy from a\ncopy to b\n--- a/a\n+++ b/b\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n",
			treeOf(files{"a": "one\ntwo\n"}), treeOf(files{"a": "two\n", "b": "one\nthree\n"})},
		{"two files change places", "diff --git a/b b/a\nsimilarity index 100%\nrename from b\nrename to a\n" +
			"diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n",
			treeOf(files{"a": "1\n", "b": "2\n"}), treeOf(files{"a": "2\n", "b": "1\n"})},
		{"a file that was moved away changes", "diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n" +
			"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n",
			treeOf(files{"a": "1\n"}), nil},
		{"a file changes twice", "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-2\n+3\n",
			treeOf(files{"a": "1\n"}), treeOf(files{"a": "3\n"})},
		{"a file goes twice", "--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n",
			treeOf(files{"a": "1\n"}), nil},
	} {
		p, err := patch.Parse(row.text)
		require.NoError(t, err, row.reason)
		got, err := p.Apply(row.tree)
		if row.want == nil {
			require.ErrorIs(t, err, rollout.KindInput, row.reason)
			continue
		}
		require.NoError(t, err, row.reason)
		require.Equal(t, row.want, got, row.reason)
	}
}

// A binary change holds whole contents, so only the id identifies the content that it applies to.
func TestBinaryChangeOfAnotherContent(t *testing.T) {
	p, err := patch.Parse("diff --git a/z b/z\nindex 0f49c4ae77b43dff338093c78e009676e7e308ba..3a5944c1eaf3b738d4bde137ea8d43ea9045d66b 100644\n" +
		"GIT binary patch\nliteral 7\nOcmZQz%`eGFEdl@rlmaLK\n\nliteral 9\nQcmZQzWJ=1+ODw7c00^)Gi2wiq\n\n")
	require.NoError(t, err)
	before, after := "\x00\x01\x02binary", "\x00\x05other"
	got, err := p.Apply(treeOf(files{"z": before}))
	require.NoError(t, err)
	require.Equal(t, treeOf(files{"z": after}), got)
	_, err = p.Apply(treeOf(files{"z": "\x00\x01\x02Binary"}))
	require.ErrorContains(t, err, "another content")
	back, err := p.Reverse()
	require.NoError(t, err)
	got, err = back.Apply(got)
	require.NoError(t, err)
	require.Equal(t, treeOf(files{"z": before}), got)
}

// FuzzPatch: no text causes a panic; a parsed patch can be printed and parsed again with the same
// effect; a reverse that applies restores the original.
func FuzzPatch(f *testing.F) {
	f.Add(modify, "one\ntwo\nthree\nfour\n")
	f.Add("--- a/f\n+++ b/f\n@@ -9223372036854775807,1 +1,1 @@\n-a\n+b\n", "a\n")
	f.Add("diff --git a/x b/x\nnew file mode 100644\nindex 0000000..e69de29\n", "")
	f.Add("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", "")
	f.Fuzz(func(t *testing.T, text, content string) {
		if len(text) > 1<<12 || len(content) > 1<<12 {
			return
		}
		p, err := patch.Parse(text)
		if err != nil {
			return
		}
		tree := patch.Tree{}
		for _, c := range p.Changes() {
			if c.Kind != "add" {
				tree[c.Old] = patch.File{Content: content}
			}
		}
		after, err := p.Apply(tree)
		if err != nil {
			return
		}
		if r, err := p.Reverse(); err == nil {
			if back, err := r.Apply(after); err == nil && len(p.Changes()) == 1 {
				require.Equal(t, tree, back)
			}
		}
	})
}

// Model answers mix sections with and without git's header.
func TestPlainSectionsBesideThoseOfGitLoseTheirPrefixToo(t *testing.T) {
	plain := "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-old\n+new\n--- /dev/null\n+++ b/c.txt\n@@ -0,0 +1 @@\n+c\n"
	for _, git := range []string{
		"diff --git a/b/a.txt b/b/a.txt\nindex 1111111..2222222 100644\n--- a/b/a.txt\n+++ b/b/a.txt\n@@ -1 +1 @@\n-old\n+new\n",
		"diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n",
	} {
		for _, text := range []string{git + plain, plain + git} {
			p, err := patch.Parse(text)
			require.NoError(t, err)
			tree, err := p.Apply(treeOf(files{"a.txt": "old\n", "b/a.txt": "old\n", "b.txt": "old\n"}))
			require.NoError(t, err, text)
			require.Equal(t, "new\n", tree["b.txt"].Content)
			require.Equal(t, "c\n", tree["c.txt"].Content)
			again, err := patch.Parse(p.String())
			require.NoError(t, err)
			require.Equal(t, p.Touched(), again.Touched())
		}
	}
}

// A section with git's header needs no index or mode lines to keep a directory named like a prefix.
func TestGitSectionsBesidePlainOnesLoseTheirPrefixOnce(t *testing.T) {
	plain := "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-old\n+new\n"
	git := "diff --git a/b/a.txt b/b/a.txt\n--- a/b/a.txt\n+++ b/b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"
	for _, c := range []struct {
		reason, text string
		want         []string
	}{
		{"git first", git + plain, []string{"b/a.txt", "b.txt"}},
		{"plain first", plain + git, []string{"b.txt", "b/a.txt"}},
		{"after prose", "The fix:\n" + git + "and\n" + plain, []string{"b/a.txt", "b.txt"}},
		{"two of git", git + plain + strings.ReplaceAll(git, "a.txt", "c.txt"), []string{"b/a.txt", "b.txt", "b/c.txt"}},
		{"two plain ones between", git + plain + strings.ReplaceAll(plain, "b.txt", "b/b.txt") + strings.ReplaceAll(git, "a.txt", "c.txt"),
			[]string{"b/a.txt", "b.txt", "b/b.txt", "b/c.txt"}},
	} {
		require.Equal(t, c.want, parse(t, c.text).Touched(), c.reason)
	}
}

// The fault of a deletion names the file that goes.
func TestFaultsOfDeletionsNameTheFile(t *testing.T) {
	p, err := patch.Parse("diff --git a/gone.bin b/gone.bin\ndeleted file mode 100644\nindex 0f49c4ae77b43dff338093c78e009676e7e308ba..0000000000000000000000000000000000000000\nGIT binary patch\nliteral 0\nHcmV?d00001\n\n")
	require.NoError(t, err)
	_, err = p.Reverse()
	require.ErrorIs(t, err, rollout.KindInput)
	require.ErrorContains(t, err, "gone.bin")
}
