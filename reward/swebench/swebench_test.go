package swebench_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/reward/swebench"
	"github.com/turnpack/turnpack/reward/swebench/internal/logparse"
	"github.com/turnpack/turnpack/rollout"
)

func runLog(body string) string {
	return "+ git apply\n>>>>> Applied Patch\n+ : '>>>>> Start Test Output'\n" + body + "\n+ : '>>>>> End Test Output'\n"
}

var spec = swebench.Spec{InstanceID: "a__b-1", Parser: "parse_log_pytest", FailToPass: []string{"t::new"}, PassToPass: []string{"t::old"}}

func TestVerdicts(t *testing.T) {
	patch := "diff"
	for _, c := range []struct {
		reason  string
		patch   *string
		log     string
		want    rollout.Verdict
		why     string
		applied bool
	}{
		{"all pass", &patch, runLog("PASSED t::new\nPASSED t::old"), rollout.VerdictResolved, "", true},
		{"skipped P2P is no regression", &patch, runLog("PASSED t::new\nSKIPPED t::old"), rollout.VerdictResolved, "", true},
		{"skipped F2P is no resolution", &patch, runLog("SKIPPED t::new\nPASSED t::old"), rollout.VerdictUnresolved, "resolved_no", true},
		{"XFAIL passes", &patch, runLog("XFAIL t::new\nXFAIL t::old"), rollout.VerdictResolved, "", true},
		{"absent is failed", &patch, runLog("PASSED t::new"), rollout.VerdictUnresolved, "resolved_no", true},
		{"no patch, whatever the log says", nil, runLog("PASSED t::new\nPASSED t::old"), rollout.VerdictNoPatch, "no_patch", false},
		{"patch did not apply", &patch, ">>>>> Patch Apply Failed", rollout.VerdictApplyFailed, "apply_failed", false},
		{"reset failed", &patch, runLog(">>>>> Reset Failed"), rollout.VerdictResetFailed, "reset_failed", false},
		{"tests errored", &patch, runLog(">>>>> Tests Errored"), rollout.VerdictTestsError, "tests_error", false},
		{"tests timed out", &patch, runLog(">>>>> Tests Timed Out"), rollout.VerdictTestsTimeout, "tests_timeout", false},
		{"a code inside a test's output voids the log", &patch, runLog("PASSED t::new\nPASSED t::old\nsays '>>>>> Reset Failed'"), rollout.VerdictResetFailed, "reset_failed", false},
		{"no end marker", &patch, ">>>>> Start Test Output\nPASSED t::new\nPASSED t::old", rollout.VerdictNoMarkers, "no_markers", false},
		{"nothing ran", &patch, runLog("nothing"), rollout.VerdictTestsError, "no_results", false},
		{"a lying log", &patch, runLog("PASSED t::new\nPASSED t::old") + ">>>>> Test Exit Code: 1\n", rollout.VerdictTestsError, "exit_code", false},
		{"an honest exit code", &patch, runLog("PASSED t::new\nFAILED t::old") + ">>>>> Test Exit Code: 1\n", rollout.VerdictUnresolved, "resolved_no", true},
		{"killed for memory", &patch, runLog("Killed"), rollout.VerdictOOM, "out_of_memory", false},
		{"no browser", &patch, runLog("Failed to launch chrome"), rollout.VerdictInfraError, "browser_launch_failed", false},
		{"an ambiguous sign stays a failure", &patch, runLog("ModuleNotFoundError: x"), rollout.VerdictTestsError, "no_results", false},
		{"signs do not matter once it ran", &patch, runLog("PASSED t::new\nPASSED t::old\nKilled"), rollout.VerdictResolved, "", true},
		{"CRLF ends lines", &patch, strings.ReplaceAll(runLog("PASSED t::new\nPASSED t::old"), "\n", "\r\n"), rollout.VerdictResolved, "", true},
		{"results outside the markers count when there are none inside", &patch, "PASSED t::new\nPASSED t::old\n" + runLog(""), rollout.VerdictResolved, "", true},
		{"only the first region counts", &patch, runLog("FAILED t::new") + runLog("PASSED t::new\nPASSED t::old"), rollout.VerdictUnresolved, "resolved_no", true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			r, err := spec.Grade(c.patch, c.log)
			require.NoError(t, err)
			require.Equal(t, c.want, r.Verdict)
			require.Equal(t, c.why, r.Reason)
			require.Equal(t, c.applied, r.Report.PatchApplied)
			require.Equal(t, c.want == rollout.VerdictResolved, r.Report.Resolved)
		})
	}
}

func TestTruncatedIDs(t *testing.T) {
	for _, c := range []struct {
		reason string
		body   string
		ok     bool
	}{
		{"all candidates pass", "PASSED t[ab\nXFAIL t[ac", true},
		{"candidates disagree", "PASSED t[ab\nFAILED t[ac", false},
		{"all candidates fail", "FAILED t[ab\nERROR t[ac", false},
		{"no candidate", "PASSED t2[ab", false},
	} {
		s := spec
		s.FailToPass, s.PassToPass = []string{"t[a"}, nil
		r, err := s.Grade(new(string), runLog(c.body))
		require.NoError(t, err)
		require.Equal(t, c.ok, r.Report.Resolved, c.reason)
	}
}

func TestEmptyListsCountAsPassed(t *testing.T) {
	s := spec
	s.FailToPass, s.PassToPass = nil, nil
	r, err := s.Grade(new(string), runLog("FAILED t::x"))
	require.NoError(t, err)
	require.True(t, r.Report.Resolved)
	require.Equal(t, 1.0, r.Lists.FailToPass.Rate())
}

func TestPartial(t *testing.T) {
	s := spec
	s.FailToPass = []string{"t::new", "t::newer"}
	r, err := s.Grade(new(string), runLog("PASSED t::new\nFAILED t::newer\nPASSED t::old"))
	require.NoError(t, err)
	require.Equal(t, "RESOLVED_PARTIAL", r.Lists.Resolution())
	require.Equal(t, 0.5, r.Lists.FailToPass.Rate())
	require.Equal(t, "resolved_partial", r.Reason)
}

func TestFailOnly(t *testing.T) {
	s := spec
	s.EvalType = "fail_only"
	r, err := s.Grade(new(string), runLog("FAILED t::other"))
	require.NoError(t, err)
	require.True(t, r.Report.Resolved, "what is not seen failing has passed")
	r, err = s.Grade(new(string), runLog("nothing"))
	require.NoError(t, err)
	require.False(t, r.Report.Resolved, "unless nothing ran")
	r, err = s.Grade(new(string), runLog("12 passing"))
	require.NoError(t, err)
	require.True(t, r.Report.Resolved, "a count of passing tests is evidence of a run")
	r, err = s.Grade(new(string), runLog("0 passing"))
	require.NoError(t, err)
	require.False(t, r.Report.Resolved, "a count of zero is none")
}

func TestSpecFaults(t *testing.T) {
	_, err := swebench.Spec{Parser: "parse_log_cobol", EvalType: "maybe"}.Grade(new(string), "")
	require.ErrorIs(t, err, rollout.KindInput)
	require.ErrorContains(t, err, "parse_log_cobol")
	require.ErrorContains(t, err, "maybe", "all faults at once")
	_, err = swebench.Spec{Parser: "parse_log_jekyll", InstanceID: "x"}.Grade(new("p"), runLog("x"))
	require.ErrorIs(t, err, rollout.KindScorer)
}

// TestMonotone: changing one failed listed test to passed never lowers the grade, and the order of
// lines about different tests does not matter.
func TestMonotone(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	statuses := []string{"PASSED", "FAILED", "ERROR", "SKIPPED", "XFAIL"}
	rank := map[string]int{"RESOLVED_NO": 0, "RESOLVED_PARTIAL": 1, "RESOLVED_FULL": 2}
	for range 300 {
		s := swebench.Spec{Parser: "parse_log_pytest"}
		var lines []string
		for i := range 1 + rng.IntN(6) {
			name := fmt.Sprintf("t::%d", i)
			if rng.IntN(2) == 0 {
				s.FailToPass = append(s.FailToPass, name)
			} else {
				s.PassToPass = append(s.PassToPass, name)
			}
			lines = append(lines, statuses[rng.IntN(len(statuses))]+" "+name)
		}
		grade := func() string {
			r, err := s.Grade(new(string), runLog(strings.Join(lines, "\n")))
			require.NoError(t, err)
			return r.Lists.Resolution()
		}
		before := grade()
		rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		require.Equal(t, before, grade(), "seed %d", seed)
		_, name, _ := strings.Cut(lines[0], " ")
		lines[0] = "PASSED " + name
		require.GreaterOrEqual(t, rank[grade()], rank[before], "seed %d: %v", seed, lines)
	}
}

// The harness of SWE-Gym writes no markers: its logs hold only the output of applying the patch and of
// the tests.
func TestLogsOfSWEGymHaveNoMarkers(t *testing.T) {
	in := swebench.Instance{InstanceID: "getmoto__moto-1", Repo: "getmoto/moto", FailToPass: []string{"t.py::a"}, PassToPass: []string{"t.py::b"}}
	log := "Applied patch t.py cleanly.\n+ pytest -n0 -rA t.py\n===== test session starts =====\nPASSED t.py::a\n%s t.py::b\n"
	verdict := func(in swebench.Instance, log string) rollout.Verdict {
		s, err := in.Spec()
		require.NoError(t, err)
		patch := "diff"
		r, err := s.Grade(&patch, log)
		require.NoError(t, err)
		return r.Verdict
	}
	require.Equal(t, rollout.VerdictResolved, verdict(in, fmt.Sprintf(log, "PASSED")))
	require.Equal(t, rollout.VerdictUnresolved, verdict(in, fmt.Sprintf(log, "FAILED")))
	require.Equal(t, rollout.VerdictNoMarkers, verdict(in, "PASSED t.py::a\nPASSED t.py::b\n"), "the tests of the instance were not put in")
	require.Equal(t, rollout.VerdictApplyFailed, verdict(in, ">>>>> Patch Apply Failed\n"+fmt.Sprintf(log, "PASSED")))
	in.Repo, in.LogParser = "q/q", "parse_log_pytest"
	require.Equal(t, rollout.VerdictNoMarkers, verdict(in, fmt.Sprintf(log, "PASSED")), "other harnesses write them")
}

func TestInstances(t *testing.T) {
	const rows = `{"instance_id":"django__django-1","repo":"django/django","version":"3.0","FAIL_TO_PASS":"[\"a (b.C)\"]","PASS_TO_PASS":"[]","patch":"p","test_patch":"tp"}
{"instance_id":"x__y-2","repo":"x/y","version":1.5,"FAIL_TO_PASS":["a"],"PASS_TO_PASS":["b","c"],"install_config":{"log_parser":"parse_log_pytest"},"docker_image":"img"}

{"instance_id":"eslint__eslint-3","repo":"eslint/eslint","fail_to_pass":["a"],"pass_to_pass":[]}
`
	in, err := swebench.ReadInstances(strings.NewReader(rows))
	require.NoError(t, err)
	require.Len(t, in, 3)
	require.Equal(t, []string{"a (b.C)"}, in[0].FailToPass)
	require.Equal(t, []string{}, in[0].PassToPass)
	require.Equal(t, "1.5", in[1].Version)
	require.Equal(t, "img", in[1].Image)

	for i, want := range []struct {
		parser string
		eval   string
	}{{"parse_log_django", "pass_and_fail"}, {"parse_log_pytest", "pass_and_fail"}, {"parse_log_eslint", "fail_only"}} {
		s, err := in[i].Spec()
		require.NoError(t, err)
		require.Equal(t, want.parser, s.Parser)
		require.Equal(t, want.eval, s.EvalType)
	}
	_, err = swebench.Instance{InstanceID: "q", Repo: "q/q"}.Spec()
	require.ErrorIs(t, err, rollout.KindInput)

	asList, err := swebench.ReadInstances(strings.NewReader("[" + strings.Join(strings.Fields(strings.ReplaceAll(rows, " ", "\x00")), ",") + "]"))
	require.ErrorIs(t, err, rollout.KindFormat, "NUL is no JSON")
	require.Empty(t, asList)

	for _, bad := range []struct{ reason, row string }{
		{"no id", `{"FAIL_TO_PASS":[],"PASS_TO_PASS":[]}`},
		{"no list", `{"instance_id":"a","FAIL_TO_PASS":[]}`},
		{"a list of numbers", `{"instance_id":"a","FAIL_TO_PASS":[1],"PASS_TO_PASS":[]}`},
		{"text that is no list", `{"instance_id":"a","FAIL_TO_PASS":"a, b","PASS_TO_PASS":[]}`},
		{"null in the list", `{"instance_id":"a","FAIL_TO_PASS":[null],"PASS_TO_PASS":[]}`},
		{"no object", `7`},
	} {
		_, err := swebench.ReadInstances(strings.NewReader("\n" + bad.row))
		var located *rollout.Error
		require.True(t, errors.As(err, &located), bad.reason)
		require.Equal(t, rollout.KindFormat, located.Kind, bad.reason)
		require.Equal(t, 2, located.Where.Line, bad.reason)
	}
}

func TestPredictions(t *testing.T) {
	one := `{"instance_id":"a","model_name_or_path":"m","model_patch":"diff"}`
	two := `{"instance_id":"b","model_name_or_path":"m","model_patch":null}`
	for _, text := range []string{one + "\n" + two, "[" + one + "," + two + "]", `{"a":` + one + `,"b":` + two + `}`} {
		p, err := swebench.ReadPredictions(strings.NewReader(text))
		require.NoError(t, err, text)
		require.Len(t, p, 2, text)
		require.Equal(t, "diff", *p[0].Patch)
		require.Nil(t, p[1].Patch)
	}
	p, err := swebench.ReadPredictions(strings.NewReader(one))
	require.NoError(t, err)
	require.Len(t, p, 1, "one row is JSONL, not an object of predictions")
	_, err = swebench.ReadPredictions(strings.NewReader(`{"a":{"model_patch":""}}`))
	require.ErrorIs(t, err, rollout.KindFormat)
	require.ErrorContains(t, err, "/a/instance_id")
}

func TestReportRoundTrip(t *testing.T) {
	r, err := spec.Grade(new(string), runLog("PASSED t::new\nFAILED t::old"))
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, swebench.WriteReports(&b, map[string]swebench.Report{"a__b-1": r.Report}))
	require.Equal(t, `{
    "a__b-1": {
        "patch_is_None": false,
        "patch_exists": true,
        "patch_successfully_applied": true,
        "resolved": false,
        "infra_failure": false,
        "tests_status": {
            "FAIL_TO_PASS": {
                "success": [
                    "t::new"
                ],
                "failure": []
            },
            "PASS_TO_PASS": {
                "success": [],
                "failure": [
                    "t::old"
                ]
            },
            "FAIL_TO_FAIL": {
                "success": [],
                "failure": []
            },
            "PASS_TO_FAIL": {
                "success": [],
                "failure": []
            }
        }
    }
}
`, b.String())
}

func TestSummary(t *testing.T) {
	diff, empty := "d", ""
	instances := []swebench.Instance{{InstanceID: "e"}, {InstanceID: "d"}, {InstanceID: "c"}, {InstanceID: "b"}, {InstanceID: "a"}}
	predictions := []swebench.Prediction{{InstanceID: "a", Patch: &diff}, {InstanceID: "b", Patch: &diff}, {InstanceID: "c", Patch: &empty}, {InstanceID: "d", Patch: &diff}}
	reports := map[string]swebench.Report{"a": {Resolved: true}, "b": {}}
	s := swebench.Summarize(instances, predictions, reports, func(id string) string {
		return map[string]string{"b": "Killed", "d": "ModuleNotFoundError"}[id]
	})
	require.Equal(t, []string{"a"}, s.ResolvedIDs)
	require.Equal(t, []string{"b"}, s.UnresolvedIDs)
	require.Equal(t, []string{"c"}, s.EmptyPatchIDs)
	require.Equal(t, []string{"d"}, s.ErrorIDs)
	require.Equal(t, []string{"e"}, s.IncompleteIDs)
	require.Equal(t, []string{"b"}, s.InfraFailureIDs)
	require.Equal(t, []string{"d"}, s.AmbiguousIDs)
	require.Equal(t, map[string]string{"b": "out_of_memory", "d": "missing_module"}, s.FailureReasons)
	require.Equal(t, 2, s.Completed)
	var b bytes.Buffer
	require.NoError(t, s.Write(&b))
	var back swebench.Summary
	require.NoError(t, json.Unmarshal(b.Bytes(), &back))
	require.Equal(t, s, back)
}

// FuzzGrade: any log gives a result or an error of one kind, and a report is resolved only if the log
// is a run.
func FuzzGrade(f *testing.F) {
	f.Add(runLog("PASSED t::new\nPASSED t::old"), uint8(0))
	f.Add(runLog("ok 1 a")+">>>>> Test Exit Code: ٣", uint8(3))
	f.Add(">>>>> Start Test Output>>>>> End Test Output\r", uint8(9))
	names := logparse.Names()
	f.Fuzz(func(t *testing.T, log string, pick uint8) {
		if len(log) > 1<<14 {
			return
		}
		s := spec
		s.Parser = names[int(pick)%len(names)]
		r, err := s.Grade(new(string), log)
		if err != nil {
			require.ErrorIs(t, err, rollout.KindScorer)
			return
		}
		require.Equal(t, r.Run.Found, r.Run.Cause == "")
		require.Equal(t, r.Run.Found, r.Report.PatchApplied)
		if r.Report.Resolved {
			require.True(t, r.Run.Found)
		}
	})
}

// FuzzRows: no data file causes a panic, and accepted rows have ids.
func FuzzRows(f *testing.F) {
	f.Add([]byte(`{"instance_id":"a","FAIL_TO_PASS":"[\"x\"]","PASS_TO_PASS":[]}`))
	f.Add([]byte(`{"a":{"instance_id":"a"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if in, err := swebench.ReadInstances(bytes.NewReader(data)); err == nil {
			for _, i := range in {
				require.NotEmpty(t, i.InstanceID)
			}
		}
		if ps, err := swebench.ReadPredictions(bytes.NewReader(data)); err == nil {
			for _, p := range ps {
				require.NotEmpty(t, p.InstanceID)
			}
		}
	})
}

// TestStrictPrefixes: a row truncated at any point is an error.
func TestStrictPrefixes(t *testing.T) {
	row := `{"instance_id":"a","FAIL_TO_PASS":"[\"x\"]","PASS_TO_PASS":[]}`
	for i := 1; i < len(row); i++ {
		_, err := swebench.ReadInstances(strings.NewReader(row[:i]))
		require.Error(t, err, row[:i])
	}
}

func TestKit(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(kit.Dir(t, "conformance", "swebench_grading"), "cases.jsonl"))
	require.NoError(t, err)
	n := 0
	for line := range bytes.Lines(data) {
		var c struct {
			ID, Parser, Log string
			EvalType        string   `json:"eval_type"`
			F2P             []string `json:"fail_to_pass"`
			P2P             []string `json:"pass_to_pass"`
			NoPatch         bool     `json:"patch_is_none"`
			Expected        struct {
				Report swebench.Report
				Order  []string `json:"status_order"`
			}
		}
		require.NoError(t, json.Unmarshal(line, &c))
		patch := new(string)
		if c.NoPatch {
			patch = nil
		}
		r, err := swebench.Spec{Parser: c.Parser, EvalType: c.EvalType, FailToPass: c.F2P, PassToPass: c.P2P}.Grade(patch, c.Log)
		require.NoError(t, err, c.ID)
		r.Report.Tests = nil
		require.Equal(t, c.Expected.Report, r.Report, c.ID)
		require.ElementsMatch(t, c.Expected.Order, r.Run.Statuses.Order(), c.ID)
		n++
	}
	require.Equal(t, 76, n)
}

// A JSONL row may begin with an object of its own.
func TestPredictionThatBeginsWithAnObject(t *testing.T) {
	row := `{"usage":{"tokens":3},"instance_id":"a","model_patch":"x"}`
	for _, text := range []string{row, row + "\n" + row} {
		p, err := swebench.ReadPredictions(strings.NewReader(text))
		require.NoError(t, err)
		require.Equal(t, "a", p[0].InstanceID)
	}
	_, err := swebench.ReadPredictions(strings.NewReader(`{"a":{"instance_id":"a"},"b":{"model_patch":"x"}}`))
	require.ErrorContains(t, err, "/b/instance_id")
}

// A fault in a list names its row.
func TestFaultInAListNamesItsRow(t *testing.T) {
	good := `{"instance_id":"a","model_patch":"x"}`
	for text, place := range map[string]string{
		"[" + good + `,{"model_patch":"x"}]`:                   "/1/instance_id",
		"[" + good + "," + good + `,{"instance_id":3}]`:        "/2",
		"[" + good + ",null]":                                  "/1/instance_id",
		`{"a":`:                                                "line 1",
		"[" + good + "," + good + "":                           "expected a list of rows",
		"[" + good + "] " + good:                               "expected a list of rows",
		"[" + good + "," + strings.TrimSuffix(good, "}") + "]": "/1",
	} {
		_, err := swebench.ReadPredictions(strings.NewReader(text))
		require.ErrorIs(t, err, rollout.KindFormat, text)
		require.ErrorContains(t, err, place, text)
	}
	p, err := swebench.ReadPredictions(strings.NewReader("[]"))
	require.NoError(t, err)
	require.Empty(t, p)
}
