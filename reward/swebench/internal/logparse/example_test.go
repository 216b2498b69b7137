package logparse_test

import (
	"fmt"

	"github.com/turnpack/turnpack/reward/swebench/internal/logparse"
)

func ExampleLookup() {
	parse, _ := logparse.Lookup("parse_log_pytest")
	statuses, err := parse("PASSED a.py::test_x\nFAILED a.py::test_y - assert 1 == 2\n", logparse.Context{})
	for test, status := range statuses.All() {
		fmt.Println(status, test)
	}
	fmt.Println(err)
	// Output:
	// PASSED a.py::test_x
	// FAILED a.py::test_y
	// <nil>
}
