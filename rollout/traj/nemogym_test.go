package traj_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNeMoGymGradingErrors: if a judge or a verifier broke, the reward of 0 is only a
// placeholder; a mask may be in the settings of the instance.
func TestNeMoGymGradingErrors(t *testing.T) {
	for _, c := range []struct {
		rest    string
		failure string
	}{
		{`"reward":0.0,"judge_error":"no verdict"`, "judge_error"},
		{`"reward":0,"verifier_error":"timed out","evaluation_completed":false`, "verifier_error"},
		{`"reward":0,"exception_type":"RuntimeError"`, "exception_type"},
		{`"reward":0.5,"judge_error":"one criterion of two"`, ""},
		{`"reward":0,"judge_error":null,"verifier_error":""`, ""},
		{`"reward":1,"instance_config":{"mask_sample":true}`, "masked_by_framework"},
		{`"reward":1,"instance_config":{"mask_sample":false}`, ""},
	} {
		r := one(t, "x.jsonl", `{"responses_create_params":{"input":"q"},"response":{"output":[`+
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]},`+c.rest+`}`)
		require.NoError(t, r.Validate(), c.rest)
		require.NotNil(t, r.Outcome.Reward, c.rest)
		reason := ""
		if r.Failure != nil {
			reason = r.Failure.Reason
		}
		require.Equal(t, c.failure, reason, c.rest)
	}
}
