package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/audit"
	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/ssr/play"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/sandbox/local"
	"github.com/turnpack/turnpack/rollout/sandbox/swerl"
	"github.com/turnpack/turnpack/tokenize/embedded"
)

// project is a repository whose programs are found through a link and must be executable.
type project struct {
	t   *testing.T
	dir string
}

func (p project) git(args ...string) string {
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t"}, args...)...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.Output()
	require.NoError(p.t, err, "git %v", args)
	return string(out)
}

func (p project) write(name, content string, mode os.FileMode) {
	path := filepath.Join(p.dir, name)
	require.NoError(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(p.t, os.WriteFile(path, []byte(content), mode))
	require.NoError(p.t, os.Chmod(path, mode))
}

// change returns the patches of a bug and of the weakened tests on top of it.
func (p project) change(bug, weaken func()) (string, string) {
	defer p.git("reset", "-q", "--hard", "original")
	bug()
	p.git("add", "-A")
	injected := p.git("diff", "--cached", "original")
	p.git("commit", "-q", "-m", "bug")
	weaken()
	return injected, p.git("diff")
}

var sums = map[string]string{"add": "$1 + $2", "sub": "$1 - $2", "mul": "$1 * $2", "div": "$1 / $2", "rem": "$1 % $2", "shl": "$1 << $2", "shr": "$1 >> $2", "and": "$1 & $2"}

func program(sum string) string { return "echo $((" + sum + "))\n" }

func test(name, want string) string {
	return "#!/bin/sh\n[ \"$(lib/current/" + name + ".sh 6 2)\" = " + want + " ]\n"
}

func newProject(t *testing.T) project {
	for _, tool := range []string{"git", "bash", "tar", "awk"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not installed; install it to play on a repository", tool)
		}
	}
	p := project{t, t.TempDir()}
	p.git("init", "-q", "--template=")
	for name, sum := range sums {
		p.write("lib/v1/"+name+".sh", program(sum), 0o755)
	}
	require.NoError(t, os.Symlink("v1", filepath.Join(p.dir, "lib/current")))
	for name, want := range map[string]string{"add": "8", "sub": "4", "mul": "12", "div": "3"} {
		p.write("tests/"+name, test(name, want), 0o755)
	}
	count := filepath.Join(t.TempDir(), "count") // number of runs, so that each gives another result
	p.write("tests/flaky", "#!/bin/sh\nn=0; [ ! -e "+count+" ] || read n < "+count+"\necho $((n + 1)) > "+count+"\n[ $((n % 2)) = 0 ]\n", 0o755)
	p.write("run", "for t in tests/*; do if \"$t\" 2>/dev/null; then echo \"$t ok\"; else echo \"$t not ok\"; fi; done\n", 0o755)
	for _, name := range []string{"README", "docs/add", "docs/sub", "docs/mul", ".gitignore"} {
		p.write(name, "about\n", 0o644)
	}
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "original")
	p.git("tag", "original")
	return p
}

const parser = "#!/bin/sh\nexec awk 'BEGIN { printf \"{\" } { printf \"%s\\\"%s\\\":\\\"%s\\\"\", sep, $1, ($2 == \"ok\" ? \"passed\" : \"failed\"); sep = \",\" } END { print \"}\" }'\n"

var submit = block("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")

func block(command string) string { return "I do this.\n\n```bash\n" + command + "\n```\n" }

// submission returns an injector's replies with an artifact. with replaces files by name.
func submission(bug, weaken string, with map[string]string) []string {
	files := map[string]string{"test_script.sh": "sh ./run\n", "test_files.txt": "tests/add\ntests/sub\ntests/mul\ntests/div\ntests/flaky\n", "test_parser.py": parser, "bug_inject.diff": bug, "test_weaken.diff": weaken}
	for name, content := range with {
		files[name] = content
	}
	var b strings.Builder
	for name, content := range files {
		fmt.Fprintf(&b, "cat > ~/artifact/%s <<'END-OF-FILE'\n%sEND-OF-FILE\n", name, content)
	}
	return []string{block(b.String()), submit}
}

// gone makes tests print nothing; wrong makes programs return 0.
func (p project) gone(names ...string) func() {
	return func() {
		for _, name := range names {
			p.write("tests/"+name, "#!/bin/sh\ntrue\n", 0o755)
		}
	}
}

func (p project) wrong(names ...string) func() {
	return func() {
		for _, name := range names {
			p.write("lib/v1/"+name+".sh", "echo 0\n", 0o755)
		}
	}
}

// scripted is a file of replies by rollout id.
type scripted struct {
	t    *testing.T
	text bytes.Buffer
}

func (s *scripted) say(when string, replies ...string) {
	require.NoError(s.t, json.NewEncoder(&s.text).Encode(map[string]any{"when": when, "replies": replies}))
}

// play runs the command. args override the default flags.
func (s *scripted) play(p project, dir string, args ...string) (string, play.Metrics) {
	file := filepath.Join(s.t.TempDir(), "script.jsonl")
	require.NoError(s.t, os.WriteFile(file, s.text.Bytes(), 0o644))
	var out bytes.Buffer
	require.NoError(s.t, run(s.t.Context(), append([]string{"--repo", p.dir, "--tests", "sh ./run", "--scripted", file, "--out", dir, "--strategies", "direct", "--attempts", "3", "--step-limit", "3",
		"--repeats", "2", "--min-changed-files", "1", "--min-passing-tests", "3", "--max-concurrent", "4"}, args...), &out))
	s.t.Log(out.String())
	rounds, err := filepath.Glob(filepath.Join(dir, "round*", "metrics.json"))
	require.NoError(s.t, err)
	text, err := os.ReadFile(rounds[len(rounds)-1])
	require.NoError(s.t, err)
	var m play.Metrics
	require.NoError(s.t, json.Unmarshal(text, &m))
	return out.String(), m
}

// rewards returns the rewards of a round's rollouts by id.
func rewards(t *testing.T, dir string, each func(*rollout.Rollout)) map[string]any {
	f, err := os.Open(filepath.Join(dir, "rollouts.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	all := map[string]any{}
	for r, err := range jsonl.Read(f, jsonl.Options{}) {
		require.NoError(t, err)
		all[r.ID] = nil
		if r.Outcome.Reward != nil {
			all[r.ID] = *r.Outcome.Reward
		}
		if strings.Contains(r.ID, "/inject/") {
			require.Equal(t, reward.ProposerKey, r.Group)
		}
		each(r)
	}
	return all
}

// Incomplete artifacts and those that fail a check are judged as such, and every injector
// gets its reward except the one ended by the infrastructure.
func TestArtifacts(t *testing.T) {
	p := newProject(t)
	p.write("tests/flaky", "#!/bin/sh\ntrue\n", 0o755) // other scripts than one run it at the same time
	p.git("commit", "-aqm", "steady")
	p.git("tag", "-f", "original")
	two, twoWeak := p.change(p.wrong("add", "mul"), p.gone("add", "mul"))
	harmless, harmlessWeak := p.change(func() { p.write("README", "more\n", 0o644) }, p.gone("add"))
	blind, blindWeak := p.change(p.wrong("add"), p.gone("sub"))
	idle, idleWeak := p.change(func() { p.wrong("add")(); p.write("docs/add", "more\n", 0o644) }, p.gone("add"))
	script := scripted{t: t}
	for i, s := range [][]string{
		{submit},
		submission("no patch\n", twoWeak, nil),
		submission(two, twoWeak, map[string]string{"test_files.txt": "tests/add\ntests/mul\ntests/none\n"}),
		submission(two, twoWeak, map[string]string{"test_parser.py": "#!/bin/sh\necho what\n"}),
		submission(two, twoWeak, map[string]string{"test_script.sh": "sh ./run; echo more not ok\n"}),
		submission(harmless, harmlessWeak, nil),
		submission(blind, blindWeak, nil),
		submission(strings.ReplaceAll(two, "$1 + $2", "$1 +  $2"), twoWeak, nil), // does not apply
		submission(idle, idleWeak, nil),
		{"No block at all.", block("seq 1 9000"), "```bash\nls\n```\n```bash\nls\n```"}, // never ends
	} {
		script.say(fmt.Sprintf("inject/direct/%d", i), s...)
	}
	dir := t.TempDir()
	_, m := script.play(p, dir, "--proposals", "11")
	require.Equal(t, 11, m.Proposals)
	require.Zero(t, m.Accepted)
	require.Equal(t, 3, m.Malformed, "nothing left, a patch that is none, and never submitted")
	require.Equal(t, 1, m.Lost, "the last has no replies, as if the server were gone")
	require.Equal(t, map[string]int{"1 test files exist": 1, "2 parser is valid": 1, "3 original tests pass": 1, "5 bug breaks tests": 1, "6 weakening hides the bug": 2, "7 every file matters": 1}, m.FailedAt)
	got := rewards(t, filepath.Join(dir, "round1"), func(r *rollout.Rollout) {
		if r.ID == "r1/inject/direct/10" {
			require.Equal(t, rollout.StatusFailed, r.Status)
		}
	})
	for i := range 10 {
		require.Equal(t, -1.0, got[fmt.Sprintf("r1/inject/direct/%d", i)])
	}
	require.Nil(t, got["r1/inject/direct/10"])
}

// rated returns the bugs of a store and how many attempts solved each.
func rated(t *testing.T, dir string) map[string]string {
	store, err := play.OpenStore(filepath.Join(dir, "bugs.jsonl"))
	require.NoError(t, err)
	all := map[string]string{}
	for _, b := range store.Bugs() {
		all[fmt.Sprintf("%d %v", b.Order, b.Broken)] = fmt.Sprintf("%d/%d", b.Solved, b.Live)
	}
	return all
}

// requireRewards compares rewards of rollouts; nil means none.
func requireRewards(t *testing.T, want, got map[string]any) {
	t.Helper()
	require.Len(t, got, len(want))
	for id, value := range want {
		if value == nil {
			require.Nil(t, got[id], id)
		} else {
			require.InDelta(t, value, got[id], 1e-12, id)
		}
	}
}

func (p project) mend(name string) string {
	return "printf '%s\\n' 'echo $((" + sums[name] + "))' > lib/v1/" + name + ".sh; "
}

// A bug proposed twice is stored once, a failed repair makes a bug of order two, and the
// rows of both roles pass an audit.
func TestRound(t *testing.T) {
	p := newProject(t)
	two, twoWeak := p.change(p.wrong("add", "mul"), p.gone("add", "mul"))
	script := scripted{t: t}
	script.say("inject/direct/0", submission(two, twoWeak, nil)...)
	script.say("inject/direct/1", append([]string{block("ls # the same again")}, submission(two, twoWeak, nil)...)...)
	script.say("solve/1/0", block("find \"$TMPDIR\" -type f | wc -l; git log --oneline | wc -l; "+p.mend("add")+p.mend("mul")), submit)
	script.say("solve/1/1", block(p.mend("add")+"echo 'echo 1' > lib/v1/sub.sh"), submit) // fixes half and breaks more
	for i := range 3 {
		script.say(fmt.Sprintf("solve/2/%d", i), block(p.mend("sub")+p.mend("mul")+"printf 'caf\\351\\n' > docs/add; "+fmt.Sprint("true ", i)), submit) // what no JSON holds as text
	}

	dir := t.TempDir()
	_, m := script.play(p, dir, "--proposals", "2")
	require.Equal(t, 2, m.Accepted)
	require.Equal(t, 1, m.Duplicates)
	require.Equal(t, []string{"tests/flaky"}, m.Flaky)
	require.Equal(t, map[int]int{1: 1, 2: 1}, m.ByOrder)
	require.Equal(t, 6, m.Attempts)
	require.Equal(t, 1, m.AttemptsUp)
	require.Equal(t, 1+3, m.Solved)
	require.Positive(t, m.TokensPerBug)
	got := rewards(t, filepath.Join(dir, "round1"), func(r *rollout.Rollout) {
		if r.ID == "r1/solve/1/0" {
			require.Contains(t, r.Messages[3].Content, "<output>\n0\n1\n", "nothing of the bug is left lying about, and one commit, no history")
			require.Contains(t, r.Messages[1].Content, "+[ \"$(lib/current/add.sh", "the specification")
		}
	})
	half := 1 - 1.8/2
	requireRewards(t, map[string]any{"r1/inject/direct/0": half, "r1/inject/direct/1": half, "r1/solve/1/0": 1.0, "r1/solve/1/1": -1.0, "r1/solve/1/2": nil,
		"r1/solve/2/0": 1.0, "r1/solve/2/1": 1.0, "r1/solve/2/2": 1.0}, got)
	require.Equal(t, map[string]string{"1 [tests/add tests/mul]": "1/2", "2 [tests/mul tests/sub]": "3/3"}, rated(t, dir))
	report, err := audit.Run(t.Context(), []string{filepath.Join(dir, "round1", "rows.parquet")}, audit.Options{})
	require.NoError(t, err)
	require.Equal(t, audit.Info, report.Worst(), "%+v", report.Findings)
}

// The bugs are a file mode and a link. In a second round one is proposed again and one is
// replayed, and rewards are of that round's attempts.
func TestBugsAreSolvedAgain(t *testing.T) {
	p := newProject(t)
	mode, modeWeak := p.change(func() { require.NoError(t, os.Chmod(filepath.Join(p.dir, "lib/v1/sub.sh"), 0o644)) }, p.gone("sub"))
	link, linkWeak := p.change(func() {
		require.NoError(t, os.Remove(filepath.Join(p.dir, "lib/current")))
		require.NoError(t, os.Symlink("v2", filepath.Join(p.dir, "lib/current")))
	}, p.gone("div"))
	script := scripted{t: t}
	script.say("inject/direct/0", submission(mode, modeWeak, nil)...)
	script.say("inject/direct/1", submission(link, linkWeak, nil)...)
	script.say("solve/1/*", block("chmod +x lib/v1/sub.sh"), submit)
	script.say("solve/2/0", block("rm lib/current; ln -s v1 lib/current"), submit)
	script.say("solve/2/1", block("true 1"), block("true 2"), block("true 3"))
	dir := t.TempDir()
	_, m := script.play(p, dir, "--proposals", "2", "--attempts", "2")
	require.Equal(t, 2, m.Accepted)
	half, all := 1-1.8/2, -0.8
	got := rewards(t, filepath.Join(dir, "round1"), func(*rollout.Rollout) {})
	requireRewards(t, map[string]any{"r1/inject/direct/0": all, "r1/inject/direct/1": half, "r1/solve/1/0": 1.0, "r1/solve/1/1": 1.0, "r1/solve/2/0": 1.0, "r1/solve/2/1": -1.0}, got)
	const moded, linked = "1 [tests/sub]", "1 [tests/add tests/div tests/mul tests/sub]"
	require.Equal(t, map[string]string{moded: "2/2", linked: "1/2"}, rated(t, dir))

	first, err := os.ReadFile(filepath.Join(dir, "bugs.jsonl"))
	require.NoError(t, err)
	said, m := script.play(p, dir, "--round", "2", "--proposals", "1", "--attempts", "1", "--replay", "3")
	require.Contains(t, said, "1 accepted (1 known)")
	require.Equal(t, 1, m.Replayed, "all that there is")
	require.Equal(t, 2, m.Attempts)
	got = rewards(t, filepath.Join(dir, "round2"), func(*rollout.Rollout) {})
	requireRewards(t, map[string]any{"r2/inject/direct/0": all, "r2/solve/1/0": 1.0, "r2/solve/2/0": 1.0}, got)
	counted := map[string]string{moded: "3/3", linked: "2/3"}
	require.Equal(t, counted, rated(t, dir))

	// A run that was killed once the metrics were written, before the bugs were moved.
	bugs, own := filepath.Join(dir, "bugs.jsonl"), filepath.Join(dir, "round2", "bugs.jsonl")
	before, err := os.ReadFile(bugs)
	require.NoError(t, err)
	require.NoError(t, os.Rename(bugs, own))
	said, _ = script.play(p, dir, "--round", "2")
	require.Contains(t, said, "round 2 is there")
	require.Equal(t, counted, rated(t, dir))

	// One that was killed before: the round is played anew, and its attempts count once.
	require.NoError(t, os.Remove(filepath.Join(dir, "round2", "metrics.json")))
	require.NoError(t, os.Rename(bugs, own))
	require.NoError(t, os.WriteFile(bugs, first, 0o644))
	script.play(p, dir, "--round", "2", "--proposals", "1", "--attempts", "1", "--replay", "3")
	after, err := os.ReadFile(bugs)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
	require.NoFileExists(t, own)
}

func TestMistakes(t *testing.T) {
	for _, args := range [][]string{{}, {"--repo", "x", "--out", "y"}, {"--repo", "x", "--out", "y", "--api-base", "u", "--scripted", "s"}, {"--nonsense"}} {
		require.Error(t, run(t.Context(), args, &bytes.Buffer{}))
	}
}

// Rows hold the sampled ids with their log probabilities, over several rounds, and a
// later run continues after the existing rounds.
func TestSampledIDs(t *testing.T) {
	p := newProject(t)
	bug, weaken := p.change(func() { p.write("lib/v1/add.sh", "echo 0\n", 0o755) }, func() { p.write("tests/add", "#!/bin/sh\ntrue\n", 0o755) })
	var script []fakeengine.Reply
	for _, s := range submission(bug, weaken, nil) {
		script = append(script, fakeengine.Reply{Content: s})
	}
	model, err := embedded.Model()
	require.NoError(t, err)
	server := httptest.NewServer(fakeengine.New(fakeengine.Options{Model: model, Name: "policy", Script: script, Weight: "7"}))
	defer server.Close()
	dir := t.TempDir()
	var out bytes.Buffer
	args := []string{"--repo", p.dir, "--api-base", server.URL + "/v1", "--exact", "--model", "../../tokenize/embedded", "--out", dir, "--strategies", "direct,removal", "--proposals", "1",
		"--attempts", "1", "--step-limit", "3", "--min-changed-files", "1", "--min-passing-tests", "3", "--repeats", "2", "--rounds", "2"}
	require.NoError(t, run(t.Context(), args, &out))
	require.Contains(t, out.String(), "round 1: 2 proposals: 2 accepted (1 known)")
	require.Contains(t, out.String(), "round 2: 2 proposals: 2 accepted (2 known)", "the second round knows the bug")

	sampled := map[string][]rollout.TokenID{}
	f, err := os.Open(filepath.Join(dir, "round1", "rollouts.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	for r, err := range jsonl.Read(f, jsonl.Options{}) {
		require.NoError(t, err)
		for _, turn := range r.Turns {
			require.NotEmpty(t, turn.Output)
			require.Len(t, turn.Logprobs, len(turn.Output))
			require.Empty(t, turn.Incomplete)
			require.EqualValues(t, 7, *turn.Version)
			sampled[r.ID] = append(sampled[r.ID], turn.Output...)
		}
	}
	require.Len(t, sampled, 3)
	rows, _, err := export.ReadAll(filepath.Join(dir, "round1", "rows.parquet"))
	require.NoError(t, err)
	require.NotEmpty(t, rows)
	for _, row := range rows {
		var trained []rollout.TokenID
		for i, w := range row.Weight {
			if w != 0 {
				trained = append(trained, row.IDs[i])
			}
		}
		require.Equal(t, sampled[row.Rollout], trained, "%s: the whole rollout is one row of what was sampled", row.Rollout)
	}
	asked := out.Len()
	require.NoError(t, run(t.Context(), args, &out))
	require.Contains(t, out.String()[asked:], "round 1 is there\nround 2 is there\n")

	// Sandboxes of a pool have no standard input, and check 4 requires more changed
	// files.
	images, err := local.New(local.Options{Root: filepath.Dir(p.dir), Work: t.TempDir()})
	require.NoError(t, err)
	node, err := swerl.NewExecServer(t.Context(), swerl.ExecOptions{Driver: images})
	require.NoError(t, err)
	nodeServer := httptest.NewServer(node)
	defer nodeServer.Close()
	pool, err := swerl.NewPool(t.Context(), swerl.PoolOptions{Nodes: []string{nodeServer.URL}})
	require.NoError(t, err)
	poolServer := httptest.NewServer(pool)
	defer poolServer.Close()
	args = append(args, "--pool", poolServer.URL, "--image", filepath.Base(p.dir), "--min-changed-files", "2", "--strategies", "direct", "--rounds", "1", "--out", t.TempDir())
	out.Reset()
	require.NoError(t, run(t.Context(), args, &out))
	require.Contains(t, out.String(), "0 accepted (0 known), 0 malformed, map[4 ")
	left, err := images.Containers(t.Context())
	require.NoError(t, err)
	require.Empty(t, left)
}
