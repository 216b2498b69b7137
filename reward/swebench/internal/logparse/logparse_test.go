package logparse_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/reward/swebench/internal/logparse"
	"github.com/turnpack/turnpack/rollout"
)

// reference is one line of testdata/reference.jsonl, written by
// testdata/reference.py with the published swebench 5.0.2.
type reference struct {
	Parser     string
	InstanceID string `json:"instance_id"`
	Version    string
	Log        string
	Tests      [][2]string
	Error      string
}

func references(t testing.TB) []reference {
	return slices.Collect(kit.Lines[reference](t, "testdata/reference.jsonl"))
}

func TestReference(t *testing.T) {
	seen := map[string]int{}
	for i, r := range references(t) {
		parse, ok := logparse.Lookup(r.Parser)
		require.True(t, ok, r.Parser)
		got, err := parse(r.Log, logparse.Context{InstanceID: r.InstanceID, Version: r.Version})
		if r.Error != "" {
			require.ErrorIs(t, err, rollout.KindScorer, "line %d: %s raises %s on %q", i+1, r.Parser, r.Error, r.Log)
			continue
		}
		require.NoError(t, err, "line %d: %s on %q", i+1, r.Parser, r.Log)
		var pairs [][2]string
		for test, status := range got.All() {
			pairs = append(pairs, [2]string{test, string(status)})
		}
		require.Equal(t, append([][2]string(nil), r.Tests...), pairs, "line %d: %s on %q", i+1, r.Parser, r.Log)
		if len(pairs) > 0 {
			seen[r.Parser]++
		}
	}
	for _, name := range logparse.Names() {
		require.GreaterOrEqual(t, seen[name], 3, "too few logs with results for %s", name)
	}
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		reason, parser, log string
		want                [][2]string
	}{
		{"a count of skipped tests is no test", "parse_log_pytest", "SKIPPED [3] a.py:1: why", nil},
		{"a progress mark is one", "parse_log_pytest", "PASSED [100%]", [][2]string{{"[100%]", "PASSED"}}},
		{"ids end at the first blank", "parse_log_pytest", "PASSED a.py::t[x y]", [][2]string{{"a.py::t[x", "PASSED"}}},
		{"but not in v2", "parse_log_pytest_v2", "PASSED a.py::t[x y]", [][2]string{{"a.py::t[x y]", "PASSED"}}},
		{"XPASS is no status", "parse_log_pytest", "XPASS a.py::t", nil},
		{"the last status wins, the first place stays", "parse_log_pytest", "PASSED a\nPASSED b\nFAILED a - x", [][2]string{{"a", "FAILED"}, {"b", "PASSED"}}},
		{"any word that begins with a status is stored", "parse_log_pytest", "ERROR: file not found", [][2]string{{"file", "ERROR:"}}},
		{"words are split on Unicode space", "parse_log_pytest", "PASSED\u2003a.py::t\u00a0x", [][2]string{{"a.py::t", "PASSED"}}},
		{"path options are shortened", "parse_log_requests", "PASSED t[/a/b/c]", [][2]string{{"t[/c]", "PASSED"}}},
		{"URLs and globs are not", "parse_log_requests", "PASSED t[//h/x]\nPASSED t[/x/*/y]", [][2]string{{"t[//h/x]", "PASSED"}, {"t[/x/*/y]", "PASSED"}}},
		{"colours are removed before matching", "parse_log_pytest_v2", "\x1b[31mFAILED\x1b[0m a.py::t - boom", [][2]string{{"a.py::t", "FAILED"}}},
		{"old pytest puts the status last", "parse_log_sphinx", "a.py::t PASSED", [][2]string{{"a.py::t", "PASSED"}}},
		{"a torn ok still counts", "parse_log_django", "test_m (a.B) ... System check identified no issues (0 silenced)\nok", [][2]string{{"test_m (a.B)", "PASSED"}}},
		{"f is no failure in sympy", "parse_log_sympy", "test_a f", nil},
		{"builds and tests pair up in order", "parse_log_maven", "BUILD FAILURE\n+ mvn -Dtest=A\n+ mvn -Dtest=B", [][2]string{{"A", "FAILED"}}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			parse, ok := logparse.Lookup(c.parser)
			require.True(t, ok)
			got, err := parse(c.log, logparse.Context{})
			require.NoError(t, err)
			var pairs [][2]string
			for test, status := range got.All() {
				pairs = append(pairs, [2]string{test, string(status)})
			}
			require.Equal(t, c.want, pairs)
		})
	}
}

func TestTables(t *testing.T) {
	names := logparse.Names()
	require.Len(t, names, 57, "the registry of swebench 5.0.2 has 57 names")
	require.Len(t, set(names), 57)
	for _, repo := range []string{"django/django", "Django/Django", "psf/requests", "tokio-rs/axum", "chartjs/Chart.js"} {
		name, ok := logparse.ForRepo(repo)
		require.True(t, ok, repo)
		_, ok = logparse.Lookup(name)
		require.True(t, ok, name)
	}
	_, ok := logparse.ForRepo("nobody/nothing")
	require.False(t, ok)
	_, ok = logparse.Lookup("parse_log_cobol")
	require.False(t, ok)
	require.True(t, logparse.FailOnly("eslint/eslint"))
	require.False(t, logparse.FailOnly("django/django"))
}

func set(names []string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

// TestLinesAreIndependent: parsers that work line by line give the same map for a log and for its
// lines in any grouping.
func TestLinesAreIndependent(t *testing.T) {
	perLine := []string{"parse_log_pytest", "parse_log_pytest_options", "parse_log_pytest_v2", "parse_log_matplotlib", "parse_log_seaborn", "parse_log_gotest",
		"parse_log_cargo", "parse_log_ant", "parse_log_redis", "parse_log_jq", "parse_log_tap", "parse_log_jest", "parse_log_vitest", "parse_log_carbon", "parse_log_googletest"}
	for _, r := range references(t) {
		if !set(perLine)[r.Parser] {
			continue
		}
		parse, _ := logparse.Lookup(r.Parser)
		whole, err := parse(r.Log, logparse.Context{})
		require.NoError(t, err)
		var joined logparse.Statuses
		for line := range strings.SplitSeq(r.Log, "\n") {
			part, err := parse(line, logparse.Context{})
			require.NoError(t, err)
			for test, status := range part.All() {
				joined.Set(test, status)
			}
		}
		require.Equal(t, whole.Order(), joined.Order(), r.Log)
		require.Equal(t, whole.Map(), joined.Map(), r.Log)
	}
}

// FuzzParse: no parser panics or takes unbounded time, all are deterministic, and every error has the
// kind scorer.
func FuzzParse(f *testing.F) {
	for i, r := range references(f) {
		if i%10 == 3 {
			f.Add(r.Log, r.InstanceID, r.Version)
		}
	}
	f.Fuzz(func(t *testing.T, log, id, version string) {
		if len(log) > 1<<14 {
			return
		}
		for _, name := range logparse.Names() {
			parse, _ := logparse.Lookup(name)
			c := logparse.Context{InstanceID: id, Version: version}
			a, err := parse(log, c)
			if err != nil {
				if !errors.Is(err, rollout.KindScorer) {
					t.Fatalf("%s: %v", name, err)
				}
				continue
			}
			b, _ := parse(log, c)
			require.Equal(t, a.Order(), b.Order(), name)
			require.Equal(t, a.Map(), b.Map(), name)
			require.Len(t, a.Map(), a.Len(), name)
		}
	})
}

// A log that breaks off where its parser looks for an end is an error.
func TestCutLogs(t *testing.T) {
	for parser, log := range map[string]string{"parse_log_doctest": "<doctest binary=\"x\">", "parse_log_django": "FAIL:", "parse_log_karma": "Starting browser\n     a\n   b\n  c\n", "parse_log_calypso": "$ ./node_modules/.bin/jest x\n✓ a"} {
		parse, _ := logparse.Lookup(parser)
		_, err := parse(log, logparse.Context{})
		require.ErrorIs(t, err, rollout.KindScorer, parser)
	}
}

func TestNullsInMochasReportAreNoResults(t *testing.T) {
	parse, _ := logparse.Lookup("parse_log_prismjs")
	for _, report := range []string{`{"failures": null, "passes": []}`, `{"failures": [{"fullTitle": null}], "passes": []}`} {
		_, err := parse("$ ./node_modules/.bin/mocha tests/run.js --reporter json\n"+report, logparse.Context{})
		require.ErrorIs(t, err, rollout.KindScorer, report)
	}
}

// A test can print what it likes: the time of a parser grows with the length of the log alone.
func TestTimeIsLinear(t *testing.T) {
	for parser, text := range map[string]string{
		"parse_log_django": "a ... System check identified no issues (0 silenced)|b ... Internal Server Error: /|c ... Testing against Django installed in ",
		"parse_log_p5js":   "1) a\n|  2) b\n",
	} {
		for part := range strings.SplitSeq(text, "|") {
			parse, ok := logparse.Lookup(parser)
			require.True(t, ok)
			log := strings.Repeat(part, 8<<20/len(part))
			began := time.Now()
			_, err := parse(log, logparse.Context{})
			require.NoError(t, err)
			require.Less(t, time.Since(began), 20*time.Second, "%s %q", parser, part)
		}
	}
	parse, _ := logparse.Lookup("parse_log_django")
	got, err := parse("x\na\n...\nInternal Server Error: /p/\nok\nb ... Internal Server Error: /p ... Internal Server Error: /q/\nok\n"+
		"c ... d ... System check identified no issues (0 silenced)\nok\n", logparse.Context{})
	require.NoError(t, err)
	require.Equal(t, []string{"b", "c", "a", "c ... d"}, got.Order(), "as the reference")
}

func TestTimeOfTagsIsLinear(t *testing.T) {
	parse, _ := logparse.Lookup("parse_log_p5js")
	const n = 200_000
	var names strings.Builder
	for i := range n {
		fmt.Fprintf(&names, "<a%d>", i)
	}
	for what, log := range map[string]string{
		"nested":     strings.Repeat("<a>\n", n) + strings.Repeat("</a>\n", n),
		"never shut": names.String(),
		"rejoined":   strings.Repeat("<<a></a>\n", n),
	} {
		began := time.Now()
		m, err := parse(log+"\n1) suite\n  test:\n", logparse.Context{})
		require.NoError(t, err)
		require.Equal(t, 1, m.Len(), what)
		require.Less(t, time.Since(began), 20*time.Second, what)
	}
}
