package traj_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/traj"
)

// all reads paths and requires that nothing fails.
func all(t testing.TB, opt traj.Options, paths ...string) []*rollout.Rollout {
	t.Helper()
	r, err := traj.Open(paths, opt)
	require.NoError(t, err)
	var out []*rollout.Rollout
	for x, err := range r.All() {
		require.NoError(t, err)
		out = append(out, x)
	}
	return out
}

// stop makes a reading end at the first failure, so that no test overlooks one.
var stop = traj.Options{OnError: rollout.OnErrorStop}

// read reads text as a file with the given name.
func read(t testing.TB, name, text string, opt traj.Options) ([]*rollout.Rollout, *traj.Report, error) {
	t.Helper()
	r, err := traj.NewReader(strings.NewReader(text), name, opt)
	require.NoError(t, err)
	var out []*rollout.Rollout
	for x, err := range r.All() {
		if err != nil {
			return out, r.Report(), err
		}
		out = append(out, x)
	}
	return out, r.Report(), nil
}

// first returns the first result of a reader.
func first(t testing.TB, r *traj.Reader) (*rollout.Rollout, error) {
	t.Helper()
	for x, err := range r.All() {
		return x, err
	}
	t.Fatal("nothing was read")
	return nil, nil
}

func one(t testing.TB, name, text string) *rollout.Rollout {
	t.Helper()
	out, _, err := read(t, name, text, stop)
	require.NoError(t, err)
	require.Len(t, out, 1)
	return out[0]
}

func codes(r *rollout.Rollout) string {
	var out []string
	for _, n := range r.Notes {
		out = append(out, n.Code)
	}
	return strings.Join(out, " ")
}

func roles(r *rollout.Rollout) string {
	var out []string
	for _, m := range r.Messages {
		out = append(out, string(m.Role))
	}
	return strings.Join(out, " ")
}

func reasons(r *rollout.Rollout) string {
	var out []string
	for _, m := range r.Messages {
		if m.Role == rollout.RoleAssistant {
			out = append(out, m.Sampled.String())
		}
	}
	return strings.Join(out, " ")
}

// TestKitThroughTheNativeFormat: every imported rollout is equal after writing and reading
// it, including number literals.
func TestKitThroughTheNativeFormat(t *testing.T) {
	kit.OneGoroutine(t)
	dumps := all(t, stop, kit.Dir(t, "data", "trajectories"))
	var file bytes.Buffer
	for _, r := range dumps {
		require.NoError(t, jsonl.Write(&file, r), r.ID)
	}
	back, _, err := read(t, "x.jsonl", file.String(), stop)
	require.NoError(t, err)
	require.Len(t, back, len(dumps))
	for i := range dumps {
		if d := differ(dumps[i], back[i], cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("%s changed: %.2000s", dumps[i].ID, d)
		}
	}
}

// TestKitValidates: recorded runs have no faults. A result whose call the recorder left out
// is shown without a call, with a note.
func TestKitValidates(t *testing.T) {
	kit.OneGoroutine(t)
	orphans := 0
	for _, r := range all(t, stop, kit.Dir(t, "data", "trajectories")) {
		require.NoError(t, r.Validate(), r.ID)
		for _, n := range r.Notes {
			if n.Code != "result_without_call" {
				continue
			}
			orphans++
			i, _ := n.Message.Get()
			require.Equal(t, rollout.RoleTool, r.Messages[i].Role)
			require.Empty(t, r.Messages[i].ToolCallID)
			require.Contains(t, r.Messages[i].Extra, "call_id")
		}
	}
	require.Equal(t, 17, orphans, "5 of terminals, 11 of a log of errors, 1 of an excerpt")
}

// same compares the fields that a conversion must keep.
func same(t *testing.T, want, got *rollout.Rollout) {
	t.Helper()
	want = withoutExit(want)
	require.Equal(t, roles(want), roles(got), want.ID)
	for i := range want.Messages {
		a, b := want.Messages[i], got.Messages[i]
		require.Equal(t, a.Content, b.Content, "%s message %d", want.ID, i)
		require.Equal(t, a.Reasoning, b.Reasoning, "%s message %d", want.ID, i)
		require.Len(t, b.ToolCalls, len(a.ToolCalls))
		for k := range a.ToolCalls {
			require.Equal(t, a.ToolCalls[k].Name, b.ToolCalls[k].Name)
		}
	}
}

func withoutExit(r *rollout.Rollout) *rollout.Rollout {
	c := *r
	c.Messages = nil
	for _, m := range r.Messages {
		if m.Role != rollout.RoleExit {
			c.Messages = append(c.Messages, m)
		}
	}
	return &c
}

func TestKitThroughTheChatFormat(t *testing.T) {
	kit.OneGoroutine(t)
	for _, r := range all(t, stop, kit.Dir(t, "data", "trajectories")) {
		line, _, err := traj.AppendChat(nil, r)
		require.NoError(t, err)
		require.NotContains(t, string(line), "\n")
		got := one(t, "x.jsonl", string(line))
		same(t, r, got)
		require.Equal(t, r.Outcome.Reward, got.Outcome.Reward)
		require.Equal(t, r.Outcome.Resolved, got.Outcome.Resolved)
		require.Equal(t, r.Outcome.Submission, got.Outcome.Submission)
		for i, m := range withoutExit(r).Messages {
			for k, c := range m.ToolCalls {
				require.Equal(t, c.Arguments, got.Messages[i].ToolCalls[k].Arguments, "source text of arguments")
			}
		}
	}
}

func TestKitThroughATIF(t *testing.T) {
	kit.OneGoroutine(t)
	tokens := 0
	for _, r := range all(t, stop, kit.Dir(t, "data", "trajectories")) {
		line, _, err := traj.AppendATIF(nil, r)
		require.NoError(t, err)
		got := one(t, "x.jsonl", string(line))
		require.Equal(t, "atif", got.Origin.Format)
		if !strings.HasPrefix(roles(r), "tool") && !strings.Contains(roles(r), "tool assistant tool tool") {
			same(t, r, got)
		}
		if len(r.Turns) != len(got.Turns) {
			t.Fatalf("%s: %d turns, were %d", r.ID, len(got.Turns), len(r.Turns))
		}
		for i := range r.Turns {
			a, err := r.PromptTokens(nil, i)
			require.NoError(t, err)
			b, err := got.PromptTokens(nil, i)
			require.NoError(t, err)
			require.Equal(t, a, b)
			require.Equal(t, r.Turns[i].Output, got.Turns[i].Output)
			require.Equal(t, r.Turns[i].Logprobs, got.Turns[i].Logprobs)
			tokens += len(a)
		}
	}
	require.NotZero(t, tokens)
}

// TestKitPrefixes: no prefix of a dump makes a reader panic, and a prefix that ends inside
// a record is never read as whole.
func TestKitPrefixes(t *testing.T) {
	kit.OneGoroutine(t)
	dir := kit.Dir(t, "data", "trajectories")
	files := 0
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		require.NoError(t, err)
		if d.IsDir() || strings.HasSuffix(p, ".md") || strings.HasSuffix(p, ".eval") || strings.HasSuffix(p, ".diff") || filepath.Dir(p) == dir {
			return nil
		}
		text := plain(t, p)
		if len(text) > 200_000 {
			return nil
		}
		files++
		name := strings.TrimSuffix(filepath.Base(p), ".gz")
		whole, _, err := read(t, name, text, traj.Options{})
		require.NoError(t, err)
		for _, n := range []int{1, len(text) / 7, len(text) / 3, len(text) / 2, len(text) - 2 - strings.Count(text[len(text)-1:], "\n")} {
			got, report, err := read(t, name, text[:n], traj.Options{})
			require.NoError(t, err)
			if end := strings.LastIndexByte(text[:n], '\n'); strings.HasSuffix(name, ".jsonl") && end == n-1 {
				continue
			}
			if report.Skipped == 0 && len(whole) > 0 {
				t.Errorf("%s: a prefix of %d of %d bytes gave %d rollouts and no error", name, n, len(text), len(got))
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, files, 60)
}

func plain(t testing.TB, p string) string {
	f, err := os.Open(p)
	require.NoError(t, err)
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(p, ".gz") {
		in, err = gzip.NewReader(f)
		require.NoError(t, err)
	}
	b, err := io.ReadAll(in)
	require.NoError(t, err)
	return string(b)
}

// TestFormatOverride: naming the format gives the same result as detection.
func TestFormatOverride(t *testing.T) {
	kit.OneGoroutine(t)
	dir := kit.Dir(t, "data", "trajectories")
	auto := all(t, stop, filepath.Join(dir, "atif"))
	named := all(t, traj.Options{OnError: rollout.OnErrorStop, Format: "atif"}, filepath.Join(dir, "atif"))
	require.Empty(t, cmp.Diff(auto, named))
}

// TestKitFolderJoins: reading a folder joins the files beside a trajectory.
func TestKitFolderJoins(t *testing.T) {
	dir := filepath.Join(kit.Dir(t, "data", "trajectories"), "openclaw-rl")
	patch, err := os.ReadFile(filepath.Join(dir, "eval-0", "patch.diff"))
	require.NoError(t, err)
	got := all(t, stop, dir)
	require.Equal(t, string(patch), *got[0].Outcome.Submission)
	require.Nil(t, got[1].Outcome.Submission, "no patch.diff, no submission")
	require.Equal(t, rollout.VerdictInfraError, got[2].Outcome.Verdict)
	require.Equal(t, rollout.StatusFailed, got[2].Status)
	require.Equal(t, float32(1), *got[3].Temperature)
	require.Equal(t, "group-3", got[3].Group)
	alone := all(t, traj.Options{OnError: rollout.OnErrorStop, Alone: true}, dir)
	require.Nil(t, alone[0].Outcome.Submission)
}

// TestKitReports: SWE-bench reports are joined to the runs of their instances.
func TestKitReports(t *testing.T) {
	kit.OneGoroutine(t)
	dir := filepath.Join(kit.Dir(t, "data", "trajectories"), "mini-swe-agent")
	rewards, err := traj.LoadRewards([]string{filepath.Join(dir, "reports")})
	require.NoError(t, err)
	r, err := traj.Open([]string{dir}, traj.Options{OnError: rollout.OnErrorStop, Rewards: []*traj.Rewards{rewards}})
	require.NoError(t, err)
	resolved := 0
	for x, err := range r.All() {
		require.NoError(t, err)
		if b := x.Outcome.Resolved; b != nil {
			require.Contains(t, codes(x), "joined")
			if *b {
				resolved++
				require.Equal(t, rollout.VerdictResolved, x.Outcome.Verdict)
			}
		}
	}
	require.NotZero(t, resolved)
	require.Zero(t, r.Report().UnmatchedCount)
}

func TestKitDuplicates(t *testing.T) {
	dir, again := filepath.Join(kit.Dir(t, "data", "trajectories"), "tau-bench"), t.TempDir()
	require.NoError(t, os.CopyFS(again, os.DirFS(dir)))
	r, err := traj.Open([]string{dir, again}, traj.Options{OnError: rollout.OnErrorStop, Dedup: true})
	require.NoError(t, err)
	n := 0
	for _, err := range r.All() {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 12, n)
	require.Equal(t, 12, r.Report().Duplicates)
	require.Equal(t, r.Report().Repeats[0].Of.Index, r.Report().Repeats[0].This.Index)
	twice := all(t, stop, dir, again)
	require.Len(t, twice, 24)
	seen := map[string]bool{}
	for _, x := range twice {
		require.False(t, seen[x.ID], "ids are unique: %s", x.ID)
		seen[x.ID] = true
	}
}

func FuzzImporters(f *testing.F) {
	for i, s := range fixtures {
		f.Add(uint8(i), []byte(s.text))
	}
	for i, s := range versions {
		f.Add(uint8(i), []byte(s.text))
	}
	for i, s := range shapes {
		f.Add(uint8(i), []byte(s.text))
	}
	for _, s := range frameworks {
		f.Add(uint8(0), []byte(s.text))
	}
	for _, s := range variants {
		f.Add(uint8(0), []byte(s.text))
	}
	f.Add(uint8(0), []byte(claudeSession))
	f.Add(uint8(0), []byte(codexSession))
	formats := append([]string{""}, traj.Formats()...)
	f.Fuzz(func(t *testing.T, format uint8, text []byte) {
		opt := traj.Options{Format: formats[int(format)%len(formats)], Limits: traj.Limits{FileBytes: 1 << 20}}
		r, err := traj.NewReader(bytes.NewReader(text), "x.json", opt)
		if err != nil {
			t.Fatal(err)
		}
		for x, err := range r.All() {
			if err != nil {
				continue
			}
			_ = x.Validate()
			line, err := jsonl.Append(nil, x)
			if err != nil {
				t.Fatalf("imported but not stored: %v", err)
			}
			back, err := jsonl.Parse(line, jsonl.Options{})
			if err != nil {
				t.Fatalf("stored but not read: %v\n%s", err, line)
			}
			if d := differ(x, back, cmpopts.EquateEmpty()); d != "" {
				t.Fatalf("changed: %s", d)
			}
			for _, write := range []func([]byte, *rollout.Rollout) ([]byte, []rollout.Note, error){traj.AppendChat, traj.AppendATIF} {
				if b, _, err := write(nil, x); err == nil && !json.Valid(b) {
					t.Fatalf("not JSON: %s", b)
				}
			}
		}
	})
}

// differ is cmp.Diff with a fast path: cmp.Diff is slow for equal values.
func differ(want, got any, opts ...cmp.Option) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, opts...)
}
