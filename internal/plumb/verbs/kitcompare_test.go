package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

// compareKit runs a kit file through a verb and compares every field returned by expect
// with the answer, numbers within tolerance.
func compareKit(t *testing.T, verb string, tolerance float64, expect func(row map[string]any) map[string]any, elem ...string) {
	t.Helper()
	cases, err := os.ReadFile(kit.Dir(t, append([]string{"conformance"}, elem...)...))
	require.NoError(t, err)
	var out, diagnostics bytes.Buffer
	code := Main(context.Background(), []string{verb, "--errors=data"}, bytes.NewReader(cases), &out, &diagnostics)
	require.Equal(t, 0, code, diagnostics.String())
	answers := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	rows := bytes.Split(bytes.TrimSpace(cases), []byte("\n"))
	require.Equal(t, len(rows), len(answers), "one answer a line")
	for i := range rows {
		var row, answer map[string]any
		require.NoError(t, json.Unmarshal(rows[i], &row))
		require.NoError(t, json.Unmarshal(answers[i], &answer))
		require.Equal(t, row["id"], answer["id"])
		for key, want := range expect(row) {
			got, present := answer[key]
			if !present || !matches(want, got, tolerance) {
				t.Errorf("%v: %s: want %v, got %v (error %v)", row["id"], key, want, got, answer["error"])
			}
		}
	}
}

// expectedFields returns the object "expected" of a case, or the field itself if it is a
// number or a list.
func expectedFields(row map[string]any) map[string]any {
	if fields, ok := row["expected"].(map[string]any); ok {
		return fields
	}
	return map[string]any{"expected": row["expected"]}
}

func matches(want, got any, tolerance float64) bool {
	switch w := want.(type) {
	case float64:
		g, ok := got.(float64)
		return ok && math.Abs(w-g) <= tolerance
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !matches(w[i], g[i], tolerance) {
				return false
			}
		}
		return true
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for k := range w {
			if v, present := g[k]; !present || !matches(w[k], v, tolerance) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(want, got)
}
