package ssr_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/reward/patch"
	"github.com/turnpack/turnpack/reward/ssr"
	"github.com/turnpack/turnpack/rollout"
)

// repo is a tiny repository whose "suite" is one test per line of a test file, in the form "function
// want"; the test passes if the function's file contains "want".
var repo = patch.Tree{
	"src/add.txt":   {Content: "plus\n"},
	"src/mul.txt":   {Content: "times\n"},
	"src/neg.txt":   {Content: "minus\n"},
	"tests/t_a.txt": {Content: "add plus\nmul times\n"},
	"tests/t_b.txt": {Content: "neg minus\n"},
}

// memoryEnv is an environment that builds each state of repo in memory.
type memoryEnv struct {
	artifact ssr.Artifact
	test     func(ctx context.Context, tree patch.Tree) (string, error)
}

func (m memoryEnv) HasFile(_ context.Context, path string) (bool, error) {
	_, there := repo[path]
	return there, nil
}

// Run runs the tests in a state. If a patch does not apply, no test passes.
func (m memoryEnv) Run(ctx context.Context, state ssr.State) (string, error) {
	tree, err := m.artifact.Tree(repo, state)
	if err != nil {
		return "", nil
	}
	return m.test(ctx, tree)
}

func suite(_ context.Context, tree patch.Tree) (string, error) {
	results := map[string]string{}
	for name, file := range tree {
		if !strings.HasPrefix(name, "tests/") {
			continue
		}
		for line := range strings.Lines(file.Content) {
			f := strings.Fields(line)
			if len(f) != 2 {
				continue
			}
			results[name+"::"+f[0]] = "failed"
			if strings.TrimSpace(tree["src/"+f[0]+".txt"].Content) == f[1] {
				results[name+"::"+f[0]] = "passed"
			}
		}
	}
	b, err := json.Marshal(results)
	return string(b), err
}

func replace(path, from, to string) string {
	return "--- a/" + path + "\n+++ b/" + path + "\n@@ -1 +1 @@\n-" + from + "\n+" + to + "\n"
}

func artifact() ssr.Artifact {
	return ssr.Artifact{
		TestScript: "run", TestParser: "parse", TestFiles: []string{"tests/t_a.txt", "tests/t_b.txt"},
		Bug:    replace("src/add.txt", "plus", "broken") + replace("src/mul.txt", "times", "broken"),
		Weaken: "--- a/tests/t_a.txt\n+++ b/tests/t_a.txt\n@@ -1,2 +1,2 @@\n-add plus\n+add broken\n mul times\n",
	}
}

func settings(passing, files, failing int) ssr.Settings {
	return ssr.Settings{MinPassingTests: &passing, MinChangedFiles: &files, MinFailingTests: &failing}
}

func judge(t *testing.T, a ssr.Artifact, s ssr.Settings) ssr.Verdict {
	v, err := ssr.Judge(context.Background(), memoryEnv{a, suite}, a, repo, s)
	require.NoError(t, err)
	return v
}

func TestChecksInOrder(t *testing.T) {
	v := judge(t, artifact(), settings(2, 2, 2))
	require.True(t, v.Valid(), v)
	require.Len(t, v.Checks, 7)
	require.Equal(t, []string{"tests/t_a.txt::add", "tests/t_a.txt::mul"}, v.Broken)
	for i, c := range v.Checks {
		require.Equal(t, i+1, c.Number)
		require.True(t, c.OK)
		require.NotEmpty(t, c.Evidence, "check %d says what it saw", c.Number)
	}

	for _, c := range []struct {
		reason string
		change func(*ssr.Artifact)
		s      ssr.Settings
		number int
		why    string
	}{
		{"a listed file is missing", func(a *ssr.Artifact) { a.TestFiles = append(a.TestFiles, "tests/t_c.txt") }, settings(2, 2, 2), 1, "test_file_missing"},
		{"weakening outside the list", func(a *ssr.Artifact) { a.TestFiles = a.TestFiles[1:] }, settings(2, 2, 2), 1, "weaken_touches_other_file"},
		{"not more tests than asked", func(*ssr.Artifact) {}, settings(3, 2, 2), 3, "too_few_passing"},
		{"too few files", func(*ssr.Artifact) {}, settings(2, 3, 2), 4, "too_few_files"},
		{"too few failures", func(*ssr.Artifact) {}, settings(2, 2, 3), 5, "too_few_failing"},
		{"weakening of another test", func(a *ssr.Artifact) { a.Weaken = replace("tests/t_b.txt", "neg minus", "neg other") }, settings(2, 2, 2), 6, "weakening_hides_nothing"},
		{"deleted tests do not pass", func(a *ssr.Artifact) {
			a.Weaken = "--- a/tests/t_a.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-add plus\n-mul times\n"
		}, settings(2, 2, 2), 6, "weakening_hides_nothing"},
		{"a changed file that no test needs", func(a *ssr.Artifact) {
			a.Bug += "--- /dev/null\n+++ b/src/extra.txt\n@@ -0,0 +1 @@\n+x\n"
		}, settings(2, 2, 2), 7, "src/extra.txt"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			a := artifact()
			c.change(&a)
			v := judge(t, a, c.s)
			require.Equal(t, c.number, v.FirstFailing)
			require.Equal(t, c.why, v.Reason)
			require.Len(t, v.Checks, c.number, "later checks are not run")
			require.False(t, v.Checks[c.number-1].OK)
			require.NotEmpty(t, v.Checks[c.number-1].Evidence)
		})
	}
}

func TestMalformedArtifactsAreInvalid(t *testing.T) {
	a := artifact()
	a.Bug = "I broke it"
	v := judge(t, a, settings(2, 2, 2))
	require.False(t, v.Valid())
	require.ErrorIs(t, v.Malformed, rollout.KindFormat)
	require.Equal(t, "malformed", v.Reason)

	a = artifact()
	a.Bug = replace("src/add.txt", "something else", "broken")
	v = judge(t, a, settings(2, 1, 1))
	require.Equal(t, 6, v.FirstFailing, "a bug that does not apply breaks everything and nothing hides it")
}

func TestParserOutput(t *testing.T) {
	for output, reason := range map[string]string{
		`{"a":"passed"}`:              "",
		`{"a":"failed","a":"passed"}`: "",
		`3 passed`:                    "not_json",
		``:                            "not_json",
		`{"a":"passed"} x`:            "not_json",
		`[["a","passed"]]`:            "bad_map",
		`NaN`:                         "bad_map",
		`{}`:                          "bad_map",
		`{"a":true}`:                  "bad_map",
		`{"a":"PASSED"}`:              "bad_map",
		`{"a":null}`:                  "bad_map",
	} {
		_, got := ssr.ParseResults(output)
		require.Equal(t, reason, got, output)
	}
}

func TestFailingEnvironmentIsNoVerdict(t *testing.T) {
	a := artifact()
	boom := errors.New("container lost")
	env := memoryEnv{a, func(context.Context, patch.Tree) (string, error) { return "", boom }}
	_, err := ssr.Judge(context.Background(), env, a, nil, settings(2, 2, 2))
	require.ErrorIs(t, err, rollout.KindScorer)
	require.ErrorIs(t, err, boom)
	attempt, _, err := ssr.Grade(context.Background(), env, replace("src/add.txt", "broken", "plus"), ssr.Results{"x": "passed"})
	require.ErrorIs(t, err, boom)
	require.Equal(t, ssr.InfraError, attempt)
	_, err = ssr.Judge(context.Background(), env, a, nil, ssr.Settings{})
	require.ErrorIs(t, err, rollout.KindInput)
	require.ErrorContains(t, err, "min_passing_tests")
	require.ErrorContains(t, err, "min_failing_tests", "all missing thresholds at once")
}

func TestSolver(t *testing.T) {
	a := artifact()
	env := memoryEnv{a, suite}
	output, err := env.Run(context.Background(), ssr.State{Kind: ssr.Original})
	require.NoError(t, err)
	original, reason := ssr.ParseResults(output)
	require.Empty(t, reason)

	fixAdd, fixMul := replace("src/add.txt", "broken", "plus"), replace("src/mul.txt", "broken", "times")
	for _, c := range []struct {
		reason, fix string
		want        ssr.Attempt
	}{
		{"both files repaired", fixAdd + fixMul, ssr.Solved},
		{"one file repaired", fixAdd, ssr.Unsolved},
		{"a patch that does not apply", replace("src/add.txt", "nothing", "plus"), ssr.Unsolved},
		{"no patch", "", ssr.Unsolved},
		{"weakening the tests further changes nothing", fixAdd + replace("tests/t_b.txt", "neg minus", "x y"), ssr.Unsolved},
	} {
		got, _, err := ssr.Grade(context.Background(), env, c.fix, original)
		require.NoError(t, err)
		require.Equal(t, c.want, got, c.reason)
	}
	got, _, err := ssr.Grade(context.Background(), env, fixAdd+fixMul, nil)
	require.NoError(t, err)
	require.Equal(t, ssr.Unsolved, got, "no test proves a repair")

	spec, err := a.Spec()
	require.NoError(t, err)
	weakened, err := a.Tree(repo, ssr.State{Kind: ssr.Weakened})
	require.NoError(t, err)
	p, err := patch.Parse(spec)
	require.NoError(t, err)
	after, err := p.Apply(weakened)
	require.NoError(t, err)
	require.Equal(t, repo["tests/t_a.txt"], after["tests/t_a.txt"], "the specification restores the tests")
}

func TestHigherOrder(t *testing.T) {
	a := artifact()
	failed := replace("src/add.txt", "broken", "plus") + replace("src/neg.txt", "minus", "worse")
	harder, err := a.Harder(failed)
	require.NoError(t, err)
	require.Equal(t, 2, harder.Order())
	require.Equal(t, 1, a.Order(), "the first bug stays")

	tree, err := harder.Tree(repo, ssr.State{Kind: ssr.Buggy})
	require.NoError(t, err)
	require.Equal(t, "plus\n", tree["src/add.txt"].Content)
	require.Equal(t, "worse\n", tree["src/neg.txt"].Content)
	require.Equal(t, repo["tests/t_a.txt"], tree["tests/t_a.txt"])
	facts, err := harder.Facts(nil)
	require.NoError(t, err)
	require.Equal(t, []string{"src/add.txt", "src/mul.txt", "src/neg.txt"}, facts.ChangedFiles)
	facts, err = harder.Facts(repo)
	require.NoError(t, err)
	require.Equal(t, []string{"src/mul.txt", "src/neg.txt"}, facts.ChangedFiles, "the attempt repaired add")

	v := judge(t, harder, settings(2, 1, 1))
	require.Equal(t, 6, v.FirstFailing, "this one breaks other tests than the weakening hides: %v", v)

	_, err = harder.Harder(failed)
	require.ErrorIs(t, err, rollout.KindInput, "order 2 is the limit")
	_, err = a.Harder(replace("tests/t_b.txt", "neg minus", "x y"))
	require.ErrorIs(t, err, rollout.KindInput, "test files are restored, so this is the same bug")
	_, err = a.Harder("no patch")
	require.ErrorIs(t, err, rollout.KindFormat)
}

func TestFingerprintsAndKeys(t *testing.T) {
	a, b, c := artifact(), artifact(), artifact()
	b.Bug = replace("src/mul.txt", "times", "broken") + replace("src/add.txt", "plus", "  broken")
	b.TestScript, b.Weaken = "other", replace("tests/t_b.txt", "neg minus", "neg other")
	c.Bug = replace("src/add.txt", "plus", "otherwise")
	inject := ssr.InjectKey("org/repo", "abc", "removal", 3)
	ka, err := ssr.SolveKey(inject, a)
	require.NoError(t, err)
	kb, err := ssr.SolveKey(inject, b)
	require.NoError(t, err)
	kc, err := ssr.SolveKey(inject, c)
	require.NoError(t, err)
	require.Equal(t, ka, kb)
	require.NotEqual(t, ka, kc)
	require.True(t, strings.HasPrefix(ka, inject+"/"))
	require.NotEqual(t, ssr.InjectKey("a/b", "c", "d", 1), ssr.InjectKey("a", "b/c", "d", 1))
	harder, err := a.Harder(replace("src/neg.txt", "minus", "worse"))
	require.NoError(t, err)
	kh, err := ssr.SolveKey(inject, harder)
	require.NoError(t, err)
	require.NotEqual(t, ka, kh)
}

func TestLoad(t *testing.T) {
	a := artifact()
	files := func(parser, bug, weaken string) fstest.MapFS {
		return fstest.MapFS{
			"test_script.sh": {Data: []byte(a.TestScript)},
			"test_files.txt": {Data: []byte("# tests\n./tests/t_a.txt\n\ntests/t_b.txt\n")},
			parser:           {Data: []byte(a.TestParser)},
			bug:              {Data: []byte(a.Bug)},
			weaken:           {Data: []byte(a.Weaken)},
		}
	}
	for _, dir := range []fstest.MapFS{
		files("test_parser.py", "bug_inject.diff", "test_weaken.diff"),
		files("parse_test_output.py", "bug_patch.diff", "test_patch.diff"),
		files("test_parser.py", "bug_patch.diff", "test_weaken.diff"),
	} {
		got, err := ssr.Load(dir)
		require.NoError(t, err)
		require.Equal(t, a, got)
		require.NoError(t, got.Validate())
	}
	_, err := ssr.Load(fstest.MapFS{"test_script.sh": {}})
	require.ErrorIs(t, err, rollout.KindInput)
	require.ErrorContains(t, err, "test_parser.py or parse_test_output.py")
	require.ErrorContains(t, err, "test_weaken.diff or test_patch.diff", "all missing files at once")

	both := files("test_parser.py", "bug_inject.diff", "test_weaken.diff")
	both["bug_patch.diff"] = &fstest.MapFile{Data: []byte("other")}
	_, err = ssr.Load(both)
	require.ErrorContains(t, err, "differ")
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		reason string
		change func(*ssr.Artifact)
		says   string
	}{
		{"no script", func(a *ssr.Artifact) { a.TestScript = " \n" }, "test_script.sh"},
		{"no tests", func(a *ssr.Artifact) { a.TestFiles = nil }, "no test file"},
		{"a test listed twice", func(a *ssr.Artifact) { a.TestFiles = []string{"a", "a"} }, "twice"},
		{"a test outside", func(a *ssr.Artifact) { a.TestFiles = []string{"../a"} }, "inside the repository"},
		{"a bug that is no patch", func(a *ssr.Artifact) { a.Bug = "oops" }, "unified diff"},
		{"a weakening that is no patch", func(a *ssr.Artifact) { a.Weaken = "oops" }, "unified diff"},
		{"a bug in the tests", func(a *ssr.Artifact) { a.Bug = replace("tests/t_a.txt", "add plus", "x") }, "restored"},
		{"a script of other bytes", func(a *ssr.Artifact) { a.TestScript += "# caf\xe9\n" }, "test_script.sh: the file is not UTF-8"},
		{"a test of other bytes", func(a *ssr.Artifact) { a.TestFiles = []string{"caf\xe9"} }, `"caf\xe9" is not UTF-8`},
		{"order three", func(a *ssr.Artifact) { a.Attempts = []string{a.Bug, a.Bug} }, "order 3"},
	} {
		a := artifact()
		c.change(&a)
		err := a.Validate()
		require.Error(t, err, c.reason)
		require.ErrorContains(t, err, c.says, c.reason)
	}
	err := ssr.Artifact{}.Validate()
	for _, part := range []string{"test_script.sh", "test_parser.py", "bug_inject.diff", "test_weaken.diff", "test_files.txt"} {
		require.ErrorContains(t, err, part, "all faults at once")
	}
}

func TestRewards(t *testing.T) {
	for bad, field := range map[[2]int]string{{0, 0}: "attempts:", {0, -1}: "attempts:", {-1, 4}: "solved:", {5, 4}: "solved:"} {
		_, err := ssr.InjectReward(bad[0], bad[1], true, 0.8)
		require.ErrorIs(t, err, rollout.KindInput)
		require.ErrorContains(t, err, field)
	}
	_, err := ssr.InjectReward(1, 2, true, math.NaN())
	require.ErrorIs(t, err, rollout.KindInput)
	r, err := ssr.InjectReward(0, 0, false, 0.8)
	require.NoError(t, err, "an invalid artifact is never attempted")
	require.Equal(t, -1.0, r)
	_, err = ssr.SolveReward(nil)
	require.ErrorIs(t, err, rollout.KindInput, "no test, no proof")
	r, err = ssr.SolveReward([]string{"passed", "skipped"})
	require.NoError(t, err)
	require.Equal(t, -1.0, r)

	s, err := ssr.Resolve([]ssr.Attempt{ssr.Aborted, ssr.InfraError}, 0, 0.8)
	require.NoError(t, err)
	require.Nil(t, s.Inject, "nothing live: no reward, not a bad one")
	require.Equal(t, []*float64{nil, nil}, s.Solve)
	_, err = ssr.Resolve([]ssr.Attempt{"won"}, 1, 0.8)
	require.ErrorIs(t, err, rollout.KindInput)
}

// TestRewardShape: between the extremes the injector's reward falls with s, both extremes have the
// same reward, and so does the expectation at p = 0 and 1.
func TestRewardShape(t *testing.T) {
	for _, alpha := range []float64{0, 0.3, 0.8, 1} {
		for n := 1; n <= 70; n++ {
			last := math.Inf(1)
			for k := 1; k < n; k++ {
				r, err := ssr.InjectReward(k, n, true, alpha)
				require.NoError(t, err)
				require.Less(t, r, last)
				require.GreaterOrEqual(t, r, -alpha, "no inner share is worse than an end")
				last = r
			}
			e := ssr.Expectation{Attempts: n, Alpha: alpha}
			for _, p := range []float64{0, 1} {
				require.InDelta(t, -alpha, e.Inject(p), 1e-12)
			}
			p, value, ok := e.Best(1000)
			require.Equal(t, n > 1, ok)
			if ok {
				require.GreaterOrEqual(t, value, e.Inject(0.5))
				require.Equal(t, value, e.Inject(p))
			}
		}
	}
	require.InDelta(t, 1, ssr.Expectation{Attempts: 3000, Alpha: 0.8}.Inject(0.01), 0.02, "large groups stay finite")
	require.InDelta(t, 0.1, ssr.Expectation{Attempts: 1 << 40, Alpha: 0.8}.Inject(0.5), 1e-12, "the work does not grow with the group")
}

// FuzzChecks: any recorded outputs give a verdict with matching number and evidence, and a valid
// verdict has broken and revived tests.
func FuzzChecks(f *testing.F) {
	f.Add(`{"a":"passed"}`, `{"a":"failed"}`, `{"a":"passed"}`, `{"a":"passed"}`)
	f.Add(`{"a":"passed"}`, `crash`, `{}`, `[]`)
	f.Fuzz(func(t *testing.T, original, buggy, weakened, inverse string) {
		env := outputs{ssr.Original: original, ssr.Buggy: buggy, ssr.Weakened: weakened, ssr.Inverse: inverse}
		v, err := ssr.Check(context.Background(), env, ssr.Facts{TestFiles: []string{"t"}, WeakenFiles: []string{"t"}, ChangedFiles: []string{"s"}}, settings(0, 1, 1))
		require.NoError(t, err)
		if v.Valid() {
			require.Len(t, v.Checks, 7)
			require.NotEmpty(t, v.Broken)
			return
		}
		require.NotEmpty(t, v.Reason)
		require.Equal(t, v.FirstFailing, v.Checks[len(v.Checks)-1].Number)
	})
}

type outputs map[ssr.StateKind]string

func (o outputs) HasFile(context.Context, string) (bool, error) { return true, nil }

func (o outputs) Run(_ context.Context, s ssr.State) (string, error) { return o[s.Kind], nil }

// Restored files replace the entries that the bug put in their place.
func TestTypesAreRestored(t *testing.T) {
	original := patch.Tree{"a/x": {Content: "1\n"}, "a/y": {Content: "2\n"}, "f": {Content: "3\n"}, "t": {Content: "t\n"}}
	a := ssr.Artifact{TestScript: "run", TestParser: "parse", TestFiles: []string{"t"}, Weaken: replace("t", "t", "u"), Bug: `diff --git a/a b/a
new file mode 120000
--- /dev/null
+++ b/a
@@ -0,0 +1 @@
+f
\ No newline at end of file
diff --git a/a/x b/a/x
deleted file mode 100644
--- a/a/x
+++ /dev/null
@@ -1 +0,0 @@
-1
diff --git a/a/y b/a/y
deleted file mode 100644
--- a/a/y
+++ /dev/null
@@ -1 +0,0 @@
-2
diff --git a/f b/f
deleted file mode 100644
--- a/f
+++ /dev/null
@@ -1 +0,0 @@
-3
diff --git a/f/z b/f/z
new file mode 100755
--- /dev/null
+++ b/f/z
@@ -0,0 +1 @@
+4
`}
	require.NoError(t, a.Validate())
	tree, err := a.Tree(original, ssr.State{Kind: ssr.Buggy})
	require.NoError(t, err)
	require.Equal(t, patch.Tree{"a": {Content: "f", Mode: "120000"}, "f/z": {Content: "4\n", Mode: "100755"}, "t": {Content: "t\n"}}, tree)
	facts, err := a.Facts(original)
	require.NoError(t, err)
	require.Len(t, facts.ChangedFiles, 5)
	for _, file := range facts.ChangedFiles {
		tree, err := a.Tree(original, ssr.State{Kind: ssr.Inverse, File: file})
		require.NoError(t, err)
		require.NoError(t, tree.Check(), file)
		require.Equal(t, original[file], tree[file])
	}
}

// A change of mode counts as a changed file, and bugs with different modes are different.
func TestModesAreChanges(t *testing.T) {
	mode := func(from, to string) string {
		return "diff --git a/src/add.txt b/src/add.txt\nold mode " + from + "\nnew mode " + to + "\n"
	}
	a, b := artifact(), artifact()
	a.Bug, b.Bug = mode("100644", "100755"), "diff --git a/src/add.txt b/src/add.txt\ndeleted file mode 100644\n--- a/src/add.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-plus\n"+
		"diff --git a/src/add.txt b/src/add.txt\nnew file mode 120000\n--- /dev/null\n+++ b/src/add.txt\n@@ -0,0 +1 @@\n+plus\n"
	facts, err := a.Facts(repo)
	require.NoError(t, err)
	require.Equal(t, []string{"src/add.txt"}, facts.ChangedFiles)
	prints := map[string]bool{}
	c := a
	c.Bug = "diff --git a/src/add.txt b/src/add.txt\nold mode 100755\nnew mode 100644\n"
	for _, x := range []ssr.Artifact{a, b, c} {
		print, err := x.Fingerprint()
		require.NoError(t, err)
		prints[print] = true
	}
	require.Len(t, prints, 3)
}

// A fault of a patch names the file of the artifact that holds it.
func TestFaultsNameTheirPatch(t *testing.T) {
	hunk := "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+c\n"
	for _, c := range []struct {
		change func(*ssr.Artifact)
		file   string
	}{
		{func(a *ssr.Artifact) { a.Bug = hunk }, "bug_inject.diff"},
		{func(a *ssr.Artifact) { a.Weaken = "prose" }, "test_weaken.diff"},
		{func(a *ssr.Artifact) { a.Attempts = []string{hunk} }, "attempts/0"},
	} {
		a := artifact()
		c.change(&a)
		err := a.Validate()
		require.ErrorIs(t, err, rollout.KindFormat)
		require.ErrorContains(t, err, c.file)
	}
}

// Changes that leave no line of text to tell them apart are different bugs.
func TestFingerprintsOfChangesWithoutText(t *testing.T) {
	prints := map[string]string{}
	for _, bug := range []string{
		"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n a\n+\n b\n",
		"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,3 +1,2 @@\n a\n-\n b\n",
		"diff --git a/f b/f\nnew file mode 100644\n",
		"diff --git a/f b/f\ndeleted file mode 100644\n",
		"diff --git a/g b/f\nsimilarity index 100%\nrename from g\nrename to f\n",
		"diff --git a/h b/f\nsimilarity index 100%\nrename from h\nrename to f\n",
		"diff --git a/g b/f\nsimilarity index 100%\ncopy from g\ncopy to f\n",
	} {
		print, err := ssr.Artifact{Bug: bug}.Fingerprint()
		require.NoError(t, err)
		require.Empty(t, prints[print], bug)
		prints[print] = bug
	}
}

// An injector that adds a folder of a package manager to its bug makes a patch of very many files, each
// of which is looked at once.
func TestManyFiles(t *testing.T) {
	var many strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&many, "diff --git a/modules/%05d b/modules/%05[1]d\nnew file mode 100644\n", i)
	}
	a := artifact()
	a.Bug += many.String()
	began := time.Now()
	require.NoError(t, a.Validate())
	facts, err := a.Facts(repo)
	require.NoError(t, err)
	require.Greater(t, len(facts.ChangedFiles), 40_000)
	_, err = a.Harder(many.String())
	require.NoError(t, err)
	require.Less(t, time.Since(began), 20*time.Second, "the time grows with the square of the files")
}
