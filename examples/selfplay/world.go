package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/turnpack/turnpack/reward/patch"
	"github.com/turnpack/turnpack/reward/ssr"
)

// repository is a calculator whose tests look for the right line in a file, so
// that a shell and a few lines of Go can both run them.
func repository() patch.Tree {
	return patch.Files(map[string]string{
		"lib/add.sh":        "add() {\n  echo $(($1 + $2))\n}\n",
		"lib/sub.sh":        "sub() {\n  echo $(($1 - $2))\n}\n",
		"lib/mul.sh":        "mul() {\n  echo $(($1 * $2))\n}\n",
		"tests/test_add.sh": "grep -qF '$1 + $2' lib/add.sh\n",
		"tests/test_sub.sh": "grep -qF '$1 - $2' lib/sub.sh\n",
		"tests/test_mul.sh": "grep -qF '$1 * $2' lib/mul.sh\n",
	})
}

const testScript = `for t in tests/*.sh; do
  if sh "$t"; then echo "$t ok"; else echo "$t not ok"; fi
done
`

// testParser turns the script's output into the JSON map of test results.
const testParser = `awk 'BEGIN { printf "{" }
NF >= 2 { printf "%s\"%s\":\"%s\"", sep, $1, ($2 == "ok" ? "passed" : "failed"); sep = "," }
END { print "}" }'
`

type submission struct {
	name     string
	artifact ssr.Artifact
	fixes    []string // what the solvers answer, "" for nothing
}

func thresholds() ssr.Settings {
	tests, files, failing := 2, 1, 1
	return ssr.Settings{MinPassingTests: &tests, MinChangedFiles: &files, MinFailingTests: &failing}
}

// line is a patch that replaces the body of a function in a file.
func line(file, from, to string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(file, "lib/"), ".sh")
	return "--- a/" + file + "\n+++ b/" + file + "\n@@ -1,3 +1,3 @@\n " + name + "() {\n-  echo $((" + from + "))\n+  echo $((" + to + "))\n }\n"
}

// weaken makes a test look for the wrong line.
func weaken(name, from, to string) string {
	file := "tests/test_" + name + ".sh"
	return "--- a/" + file + "\n+++ b/" + file + "\n@@ -1 +1 @@\n-grep -qF '" + from + "' lib/" + name + ".sh\n+grep -qF '" + to + "' lib/" + name + ".sh\n"
}

func submissions() []submission {
	base := ssr.Artifact{TestScript: testScript, TestParser: testParser, TestFiles: []string{"tests/test_add.sh", "tests/test_mul.sh", "tests/test_sub.sh"}}
	with := func(bug, weakening string) ssr.Artifact {
		a := base
		a.Bug, a.Weaken = bug, weakening
		return a
	}
	breakAdd, breakMul := line("lib/add.sh", "$1 + $2", "$1"), line("lib/mul.sh", "$1 * $2", "$1")
	fixAdd, fixMul := line("lib/add.sh", "$1", "$1 + $2"), line("lib/mul.sh", "$1", "$1 * $2")
	return []submission{
		{
			name:     "two files",
			artifact: with(breakAdd+breakMul, weaken("add", "$1 + $2", "$1")),
			fixes:    []string{fixAdd + fixMul, fixMul, "", fixMul + fixAdd},
		},
		{
			name:     "harmless",
			artifact: with(line("lib/sub.sh", "$1 - $2", "$1 - $2 "), weaken("add", "$1 + $2", "add")),
		},
		{
			name:     "no patch",
			artifact: with("I removed the body of add.", weaken("add", "$1 + $2", "add")),
		},
		{
			name:     "same again",
			artifact: with(breakMul+breakAdd, weaken("mul", "$1 * $2", "$1")),
		},
		{
			name:     "too easy",
			artifact: with(line("lib/sub.sh", "$1 - $2", "$2 - $1"), weaken("sub", "$1 - $2", "sub")),
			fixes:    []string{line("lib/sub.sh", "$2 - $1", "$1 - $2"), line("lib/sub.sh", "$2 - $1", "$1 - $2")},
		},
	}
}

func inMemory(a ssr.Artifact) ssr.Env {
	return &ssr.MemoryEnv{Files: repository(), Artifact: a, Test: runGreps}
}

// runGreps plays test script and parser: a test is one grep for a fixed text.
func runGreps(_ context.Context, tree patch.Tree) (string, error) {
	results := map[string]string{}
	for name, file := range tree {
		if !strings.HasPrefix(name, "tests/") {
			continue
		}
		results[name] = "failed"
		pattern, of, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(file.Content, "grep -qF '"), "\n"), "' ")
		if ok && strings.Contains(tree[of].Content, pattern) {
			results[name] = "passed"
		}
	}
	b, err := json.Marshal(results)
	return string(b), err
}
