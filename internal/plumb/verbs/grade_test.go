package verbs

import "testing"

func TestGradeKit(t *testing.T) {
	compareKit(t, "grade", 0, expectedFields, "swebench_grading", "cases.jsonl")
}
