package score

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/judge/fake"
	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/prm/openai"
	"github.com/turnpack/turnpack/rollout/jsonl"
)

func server(t *testing.T, h http.Handler) string {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL + "/v1"
}

func sample(t *testing.T) string {
	path, err := filepath.Abs(filepath.Join("..", "..", "judge", "testdata", "rollouts.jsonl"))
	require.NoError(t, err)
	return path
}

func runScore(t *testing.T, ctx context.Context, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Main(&struct {
		Score Cmd `cmd:""`
	}{}, &cli.Program{Ctx: ctx, In: strings.NewReader(stdin), Out: &out, Err: &errs}, append([]string{"score"}, args...))
	return code, out.String(), errs.String()
}

func TestScoreFileWithJournal(t *testing.T) {
	f := fake.New(fake.Options{})
	url, dir := server(t, f), t.TempDir()
	out, votes, sum := filepath.Join(dir, "scored.jsonl"), filepath.Join(dir, "votes.journal"), filepath.Join(dir, "summary.json")
	args := []string{"--judge", url, "--model", "m", "--votes", "3", "--in", sample(t), "--out", out, "--journal", votes, "--summary", sum,
		"--price-prompt", "2", "--price-completion", "10", "--command-less", "skip"}
	code, stdout, stderr := runScore(t, t.Context(), "", args...)
	require.Zero(t, code, stderr)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "2 rollouts, 8 steps: 7 scored, 1 skipped")
	require.Contains(t, stderr, "votes: 21 asked, 0 from the journal")
	require.Contains(t, stderr, "Fleiss' kappa")
	require.Contains(t, stderr, "mean reward")
	require.Equal(t, int64(7), f.Requests(), "three votes per request")

	file, err := os.ReadFile(out)
	require.NoError(t, err)
	line, _, _ := bytes.Cut(file, []byte{'\n'})
	r, err := jsonl.Parse(line, jsonl.Options{})
	require.NoError(t, err)
	require.Equal(t, "pager-17#0", r.ID)
	require.Len(t, r.Steps, 5)
	require.Equal(t, "skipped: command-less step", r.Steps[1].Reason)
	require.Len(t, r.Steps[0].Votes, 3)
	require.NotNil(t, r.Steps[0].Score)

	var s summary
	b, err := os.ReadFile(sum)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &s))
	require.Equal(t, int64(21), s.VotesAsked)
	require.Positive(t, s.Cost)

	first, err := os.ReadFile(out)
	require.NoError(t, err)
	killed := filepath.Join(dir, ".scored.jsonl.17.partial")
	require.NoError(t, os.WriteFile(killed, []byte("half"), 0o600))
	code, _, stderr = runScore(t, t.Context(), "", args...)
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "removed what earlier runs that were killed left")
	require.NoFileExists(t, killed)
	require.Contains(t, stderr, "votes: 0 asked, 21 from the journal")
	require.Equal(t, int64(7), f.Requests(), "nothing is asked twice")
	again, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, string(first), string(again), "same inputs and journal, same bytes")
}

func TestScoreStandardStreamsAndModes(t *testing.T) {
	url := server(t, fake.New(fake.Options{}))
	in, err := os.ReadFile(sample(t))
	require.NoError(t, err)
	for _, extra := range [][]string{
		nil, {"--structured"}, {"--rule", "regex", "--pattern", `boxed\{(-?\d)\}`}, {"--prompt", "swe-rl", "--aggregate", "majority", "--votes", "5"},
		{"--rule", "tail", "--scale", "ternary", "--one-by-one", "--submit", "neutral"},
	} {
		code, stdout, stderr := runScore(t, t.Context(), string(in), append([]string{"--judge", url, "--model", "m"}, extra...)...)
		require.Zero(t, code, "%v: %s", extra, stderr)
		require.Equal(t, 2, strings.Count(stdout, "\n"))
	}
}

func TestScoreFailures(t *testing.T) {
	url := server(t, fake.New(fake.Options{}))
	in, err := os.ReadFile(sample(t))
	require.NoError(t, err)
	down := server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }))
	out := filepath.Join(t.TempDir(), "scored.jsonl")
	for _, row := range []struct {
		reason string
		stdin  string
		args   []string
		code   int
		says   string
	}{
		{"no judge", "", nil, 2, "--judge: found"},
		{"all usage faults at once", "", []string{"--scale", "odd", "--submit", "later", "--rule", "boxed-first"}, 2, "--submit"},
		{"unknown flag", "", []string{"--nonsense"}, 2, "nonsense"},
		{"a bad line is skipped and told", string(in) + "{\"broken\n" + string(in), []string{"--judge", url, "--model", "m"}, 1, "skipped: "},
		{"a judge that refuses ends the run", string(in), []string{"--judge", down, "--model", "m", "--stop-after", "2", "--out", out}, 2, "votes in a row failed"},
		{"steps without a score show in the status", string(in), []string{"--judge", down, "--model", "m", "--stop-after", "0"}, 1, "8 without a score"},
		{"missing input", "", []string{"--judge", url, "--model", "m", "--in", "/does/not/exist"}, 2, "exist"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			code, _, stderr := runScore(t, t.Context(), row.stdin, row.args...)
			require.Contains(t, stderr, row.says)
			require.Equal(t, row.code, code, stderr)
		})
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(out), "*"))
	require.NoError(t, err)
	require.Empty(t, left, "a run that failed leaves no output behind")
	code, stdout, _ := runScore(t, t.Context(), "", "-h")
	require.Zero(t, code)
	require.Contains(t, stdout, "Usage: turnpack score")
}

func TestScoreStopsAndGoesOn(t *testing.T) {
	f := fake.New(fake.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	url := server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.Requests() == 4 {
			cancel()
		}
		f.ServeHTTP(w, r)
	}))
	args := []string{"--judge", url, "--model", "m", "--concurrency", "3", "--in", sample(t), "--journal", filepath.Join(t.TempDir(), "votes")}
	code, _, stderr := runScore(t, ctx, "", args...)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "the run ended early")
	require.Contains(t, stderr, "the same command goes on from there")
	code, stdout, stderr := runScore(t, t.Context(), "", args...)
	require.Zero(t, code, stderr)
	require.Equal(t, 2, strings.Count(stdout, "\n"))
	require.NotContains(t, stderr, " 0 from the journal")
}

// An unreachable judge is reported at once, not after the patience is over.
func TestUnreachableJudgeIsToldAtOnce(t *testing.T) {
	var requests atomic.Int64
	url := server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		http.Error(w, "the model is loading", http.StatusServiceUnavailable)
	}))
	args := []string{"--judge", url, "--model", "m", "--in", sample(t), "--votes", "1", "--stop-after", "0"}
	for _, none := range []string{"0", "-1"} {
		requests.Store(0)
		code, _, stderr := runScore(t, t.Context(), "", append(args, "--retries", none)...)
		require.Equal(t, 1, code)
		require.Equal(t, 1, strings.Count(stderr, "no answer of "+url+" yet: "), stderr)
		require.Contains(t, stderr, "the model is loading")
		require.Contains(t, stderr, "8 without a score")
		require.EqualValues(t, 8, requests.Load(), "--retries %s asks once for each vote", none)
	}
}

func TestProgressNamesTheLastFailure(t *testing.T) {
	seen := &watch{w: io.Discard}
	p := newProgress(io.Discard, false, 0, 10, func() openai.Stats { return openai.Stats{Failures: 3} }, seen.take)
	defer p.close()
	_, done := seen.Start(t.Context(), openai.Attempt{})
	done(openai.Outcome{Err: errors.New("refused")})
	require.Contains(t, p.line(), "3 requests failed, the last: refused")
	require.NotContains(t, p.line(), "refused", "told once")
}

func TestZerosAreNotDefaults(t *testing.T) {
	code, _, stderr := runScore(t, t.Context(), "", "--judge", "http://127.0.0.1:1/v1", "--model", "m", "--in", "x", "--votes", "0", "--concurrency", "0", "--timeout", "0s", "--patience", "0s", "--retries", "-2")
	require.Equal(t, 2, code)
	for _, flag := range []string{"--votes", "--concurrency", "--timeout", "--patience", "--retries"} {
		require.Contains(t, stderr, flag+": found")
	}
	require.Contains(t, stderr, `found "-2", expected 0 or -1 (none), or more`)
	_, help, _ := runScore(t, t.Context(), "", "--help")
	require.Contains(t, help, "0 or -1 none")
}

// A summary that cannot be written is refused before the judge is asked.
func TestSummaryNeedsAFolder(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "none", "s.json"), t.TempDir()} {
		_, _, stderr := runScore(t, t.Context(), "", "--judge", "http://127.0.0.1:1/v1", "--model", "m", "--in", "x", "--summary", path)
		require.Contains(t, stderr, "--summary: found \""+path+"\", expected the path of a file in a folder that exists\nrun ")
	}
}

// What a run reads or writes is not overwritten by another of its files.
func TestFilesOfARunAreApart(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.jsonl")
	for _, args := range [][]string{{"--out", in}, {"--summary", in}, {"--out", "x", "--summary", "./x"}, {"--journal", "v", "--out", "v"}} {
		code, _, stderr := runScore(t, t.Context(), "", append([]string{"--judge", "http://127.0.0.1:1/v1", "--model", "m", "--in", in}, args...)...)
		require.Equal(t, cli.Usage, code)
		require.Contains(t, stderr, "expected another file than ")
	}
}

// Scored rollouts in the folder of the dumps are no dumps of the next run.
func TestScoredBelowTheInput(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile(sample(t))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.jsonl"), text, 0o600))
	url := server(t, fake.New(fake.Options{}))
	for range 2 {
		code, _, stderr := runScore(t, t.Context(), "", "--judge", url, "--model", "m", "--in", dir, "--out", filepath.Join(dir, "scored.jsonl"))
		require.Zero(t, code, stderr)
		require.Contains(t, stderr, "2 rollouts, 8 steps")
	}
}

// Faults that the library finds are told by the flags that set them.
func TestFaultsNameFlags(t *testing.T) {
	for _, c := range [][]string{
		{"--judge", "nowhere"}, {"--coef", "NaN"}, {"--stop-after", "-3"}, {"--max-tokens", "-1"}, {"--temperature", "-1"}, {"--top-p", "2"},
		{"--price-prompt", "-1"}, {"--price-completion", "-1"}, {"--quorum", "9"}, {"--aggregate", "x"}, {"--rule", "x"}, {"--pattern", "x"}, {"--field", "x"},
	} {
		args := []string{"--model", "m", "--in", "x"}
		if c[0] != "--judge" {
			args = append(args, "--judge", "http://127.0.0.1:1/v1")
		}
		code, _, stderr := runScore(t, t.Context(), "", append(args, c...)...)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, "turnpack: "+c[0]+": ")
	}
}
