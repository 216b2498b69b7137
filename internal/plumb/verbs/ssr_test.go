package verbs

import "testing"

func TestSSRKit(t *testing.T) {
	for _, file := range []string{"rewards.jsonl", "checks.jsonl"} {
		compareKit(t, "ssr", 1e-12, expectedFields, "ssr", file)
	}
	compareKit(t, "ssr", 1e-12, func(row map[string]any) map[string]any {
		fields := map[string]any{}
		for _, k := range []string{"expected_r_inject", "expected_r_solve", "best_p_grid_0.001", "best_value"} {
			fields[k] = row[k]
		}
		return fields
	}, "ssr", "expectation.jsonl")
}
