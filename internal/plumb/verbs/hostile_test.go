package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/turnpack/turnpack/internal/plumb/pipe"
)

// A line that cannot be answered gives an error object, and the next line is still
// answered.
func TestBadLinesFailAlone(t *testing.T) {
	for _, row := range []struct{ reason, verb, bad, kind, good string }{
		{"a template that is not there", "render --templates testdata", `{"id":1,"template":"none","messages":[]}`, "input",
			`{"id":2,"template_text":"x","messages":[]}`},
		{"an answer beyond float64", "shape", `{"id":1,"max_len":10,"cache":5,"penalty":1e308,"lengths":[90],"base_rewards":[0]}`, "input",
			`{"id":2,"max_len":10,"cache":5,"penalty":1,"lengths":[9],"base_rewards":[0]}`},
		{"a reward beyond float64", "shape", `{"id":1,"rule":"nemo_stop_properly","rewards":[1e308],"truncated":[true],"coef":1e308}`, "input",
			`{"id":2,"rule":"nemo_stop_properly","rewards":[1],"truncated":[true],"coef":0.5}`},
		{"more tokens than memory", "shape", `{"id":1,"advantages":[1],"rows":[[{"role":"tool","tokens":1099511627776}]]}`, "input",
			`{"id":2,"advantages":[1],"rows":[[{"role":"tool","tokens":1}]]}`},
		{"fewer than no tokens", "shape", `{"id":1,"advantages":[1],"rows":[[{"role":"tool","tokens":-1}]]}`, "input",
			`{"id":2,"advantages":[1],"rows":[[{"role":"tool","tokens":1}]]}`},
		{"a recorded log probability above 0", "encode --model ../../../examples/tutorial/model", encodeCase(1, 0.5), "input", encodeCase(2, -0.5)},
		{"a probability that is none", "ssr", `{"id":1,"n":64,"p":[-1e308]}`, "input", `{"id":2,"n":2,"p":[0.5]}`},
	} {
		t.Run(row.reason, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			require.Equal(t, 1, Main(context.Background(), strings.Fields(row.verb), strings.NewReader(row.bad+"\n"+row.good), &stdout, &stderr), stderr.String())
			lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
			require.Len(t, lines, 2)
			var bad, good struct {
				ID    json.RawMessage
				Error *pipe.Detail
			}
			require.NoError(t, json.Unmarshal([]byte(lines[0]), &bad))
			require.NoError(t, json.Unmarshal([]byte(lines[1]), &good))
			require.Contains(t, string(bad.ID), "1")
			require.NotNil(t, bad.Error)
			require.Equal(t, row.kind, bad.Error.Kind)
			require.Contains(t, string(good.ID), "2")
			require.Nil(t, good.Error)
		})
	}
}

// A line that is no object is an error of its own, null too, which decodes into any case as an empty one.
func TestOnlyObjectsAreAnswered(t *testing.T) {
	for _, verb := range []string{"filter", "pivot", "weights"} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 1, Main(context.Background(), []string{verb}, strings.NewReader("null\n[]\n5\n"), &stdout, &stderr), stdout.String())
		require.Equal(t, 3, strings.Count(stdout.String(), `{"error":{"kind":"format","message":"input line is not a JSON object: `), stdout.String())
	}
}

// encodeCase returns a rollout with one sampled token.
func encodeCase(id int, logprob float64) string {
	return fmt.Sprintf(`{"turnpack_version":1,"id":"%d","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","sampled":"sampled"}],`+
		`"turns":[{"message":1,"prompt_ids":[1,2],"output_ids":[3],"logprobs":[%g]}]}`, id, logprob)
}

// null means that a number is absent.
func TestNullAlphaIsTheDefault(t *testing.T) {
	for _, line := range []string{
		`{"id":1,"kind":"r_inject","solved":1,"attempts":2,"valid":true,"alpha":null}`,
		`{"id":1,"kind":"r_inject_from_attempts","attempts":["solved","failed"],"alpha":null}`,
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 0, Main(context.Background(), []string{"ssr"}, strings.NewReader(line), &stdout, &stderr), stdout.String())
		require.Regexp(t, `0\.1\b|0\.0999999`, stdout.String())
	}
}

// A discount or decay of 0 is not replaced by the default.
func TestFactorsOfZeroAreNotTheDefaults(t *testing.T) {
	in := `{"id": 1, "estimator": "prime_rae", "decay": 0, "groups": [{"key": "g", "agents": ["a", "a"], "rewards": [1, 3]}]}
{"id": 2, "estimator": "verl_reinforce_pp", "gamma": 0, "groups": [{"key": "g", "rewards": [1], "masks": [[1, 1, 1]]}]}
`
	var stdout, stderr bytes.Buffer
	require.Equal(t, 0, Main(context.Background(), []string{"advantage"}, strings.NewReader(in), &stdout, &stderr), stderr.String())
	var rae struct{ Expected [][]float64 }
	var pp struct{ Expected [][][]float64 }
	lines := strings.SplitN(stdout.String(), "\n", 2)
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &rae))
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &pp))
	require.Equal(t, [][]float64{{1, 2}}, rae.Expected)
	row := pp.Expected[0][0]
	require.InDelta(t, row[0], row[1], 1e-12, "nothing of the reward flows back")
	require.Greater(t, row[2], row[1]+1)
}
