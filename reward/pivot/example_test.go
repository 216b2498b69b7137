package pivot_test

import (
	"fmt"

	"github.com/turnpack/turnpack/reward/pivot"
)

func ExampleComparator_Compare() {
	expected := pivot.Action{Kind: "function_call", Calls: []pivot.Call{{Name: "bash", Arguments: `{"command": "pytest -q tests"}`}}}
	actual := pivot.Action{Kind: "function_call", Calls: []pivot.Call{{Name: "bash", Arguments: `{"command": "pytest tests/test_a.py", "timeout": 5}`}}}
	r, err := pivot.Comparator{}.Compare(expected, actual)
	fmt.Println(r.Reward, r.Category, err)
	// Output: 0 ARGUMENT_OBJECT_KEYS_DIFFERENT <nil>
}

func ExampleSWE_Verify() {
	expected := pivot.Call{Name: "bash", Arguments: `{"command": "pytest -q tests/test_a.py"}`}
	actual := pivot.Call{Name: "execute_bash", Arguments: `{"cmd": "pytest -x tests/test_a.py"}`}
	s, err := pivot.SWE{Mode: "continuous"}.Verify(&expected, &actual)
	fmt.Printf("%.2f %s %.2f %v\n", s.Reward, s.Failure, *s.Similarity, err)
	// Output: 1.00 none 0.96 <nil>
}
