package swebench_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/turnpack/turnpack/reward/swebench"
)

// tenMegabytes builds a log of 10 MB: test results between long captured output, as in real runs.
func tenMegabytes(result func(i int) string) string {
	var b strings.Builder
	b.WriteString("+ git apply -v -\n>>>>> Applied Patch\n+ : '>>>>> Start Test Output'\n")
	for i := 0; b.Len() < 10_000_000; i++ {
		b.WriteString(result(i))
		for k := range 12 {
			fmt.Fprintf(&b, "    lib/module_%d.py:%d: in call  self.apply(value, *args) [step %d/%d] ok = False\n", k, i, k, i)
		}
	}
	b.WriteString("+ : '>>>>> End Test Output'\n>>>>> Test Exit Code: 0\n")
	return b.String()
}

func BenchmarkGrade(b *testing.B) {
	status := func(i int) string { return []string{"PASSED", "PASSED", "PASSED", "FAILED", "SKIPPED"}[i%5] }
	for _, c := range []struct {
		parser string
		result func(i int) string
	}{
		{"parse_log_pytest", func(i int) string {
			return fmt.Sprintf("%s pkg/tests/test_m%d.py::test_%d[a-%d]\n", status(i), i%97, i, i)
		}},
		{"parse_log_requests", func(i int) string {
			return fmt.Sprintf("%s pkg/tests/test_m%d.py::test_%d[/a/b/%d]\n", status(i), i%97, i, i)
		}},
		{"parse_log_scikit", func(i int) string {
			return fmt.Sprintf("\x1b[32m%s\x1b[0m pkg/tests/test_m%d.py::test_%d\n", status(i), i%97, i)
		}},
		{"parse_log_matplotlib", func(i int) string { return fmt.Sprintf("%s pkg/tests/test_m%d.py::test_%d\n", status(i), i%97, i) }},
		{"parse_log_django", func(i int) string {
			return fmt.Sprintf("test_%d (app%d.tests.CaseTests) ... %s\n", i, i%97, []string{"ok", "FAIL", "ERROR"}[i%3])
		}},
		{"parse_log_seaborn", func(i int) string { return fmt.Sprintf("tests/test_a.py::test_%d PASSED [ 1%%]\n", i) }},
		{"parse_log_sympy", func(i int) string { return fmt.Sprintf("test_%d %s\n", i, []string{"ok", "F", "E"}[i%3]) }},
		{"parse_log_gotest", func(i int) string { return fmt.Sprintf("--- %s: TestCase%d (0.01s)\n", status(i)[:4], i) }},
		{"parse_log_cargo", func(i int) string { return fmt.Sprintf("test mod::case_%d ... ok\n", i) }},
		{"parse_log_maven", func(i int) string { return fmt.Sprintf("+ mvn test -Dtest=Case#m%d\n[INFO] BUILD SUCCESS\n", i) }},
		{"parse_log_ant", func(i int) string { return fmt.Sprintf("    [junit] [PASS] case%d\n", i) }},
		{"parse_log_gradle_custom", func(i int) string { return fmt.Sprintf("org.a.Case%d > method PASSED\n", i) }},
		{"parse_log_jest", func(i int) string { return fmt.Sprintf("    ✓ does thing %d (5 ms)\n", i) }},
		{"parse_log_vitest", func(i int) string { return fmt.Sprintf(" ✓ a/b.spec.ts > thing %d 3ms\n", i) }},
		{"parse_log_eslint", func(i int) string { return fmt.Sprintf("  %d) rule %d\n     AssertionError: no\n", i, i) }},
		{"parse_log_karma", func(i int) string {
			if i == 0 {
				return "Starting browser Chrome\n"
			}
			return fmt.Sprintf("  ✔ case %d\n", i)
		}},
	} {
		log := tenMegabytes(c.result)
		spec := swebench.Spec{Parser: c.parser, FailToPass: []string{"a"}, PassToPass: []string{"b"}}
		b.Run(strings.TrimPrefix(c.parser, "parse_log_"), func(b *testing.B) {
			b.SetBytes(int64(len(log)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := spec.Grade(new(string), log); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
