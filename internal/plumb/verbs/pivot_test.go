package verbs

import "testing"

func TestPivotKit(t *testing.T) {
	for _, file := range []string{"argument_comparison.jsonl", "swe_pivot.jsonl"} {
		compareKit(t, "pivot", 1e-9, expectedFields, "pivot", file)
	}
}
