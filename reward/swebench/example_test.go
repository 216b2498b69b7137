package swebench_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/turnpack/turnpack/reward/swebench"
)

func Example() {
	rows := `{"instance_id": "psf__requests-1", "repo": "psf/requests", "version": "2.0", "FAIL_TO_PASS": "[\"test_a.py::test_new\"]", "PASS_TO_PASS": "[\"test_a.py::test_old\"]"}`
	instances, _ := swebench.ReadInstances(strings.NewReader(rows))
	spec, _ := instances[0].Spec()

	patch := "diff --git a/x.py b/x.py\n"
	result, _ := spec.Grade(&patch, `>>>>> Start Test Output
PASSED test_a.py::test_new
FAILED test_a.py::test_old - AssertionError
>>>>> End Test Output
`)
	fmt.Println(result.Verdict, result.Lists.FailToPass.Rate(), result.Lists.PassToPass.Rate())
	result.Report.Tests = nil
	_ = swebench.WriteReports(os.Stdout, map[string]swebench.Report{spec.InstanceID: result.Report})
	// Output:
	// unresolved 1 0
	// {
	//     "psf__requests-1": {
	//         "patch_is_None": false,
	//         "patch_exists": true,
	//         "patch_successfully_applied": true,
	//         "resolved": false,
	//         "infra_failure": false
	//     }
	// }
}
