package traj_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// miniFile returns a file of mini-swe-agent with the given info and messages.
func miniFile(info string, messages ...string) string {
	return `{"trajectory_format":"mini-swe-agent-1.1","info":{` + info + `},"messages":[` + strings.Join(messages, ",") + `]}`
}

const (
	miniTask = `{"role":"user","content":"q"}`
	miniSaid = `{"role":"assistant","content":"a","extra":{"response":{"id":"r1"}}}`
)

// TestMiniExceptions: an exception class as exit status is a failure of the harness or the
// engine, and its message is not a patch.
func TestMiniExceptions(t *testing.T) {
	for _, c := range []struct {
		reason, info string
		last         string
		status       rollout.Status
		failure      *rollout.Failure
		patch        string
	}{
		{"v1: the words of the exception stand where the patch would, as recorded", `"exit_status":"RateLimitError","submission":"too many","traceback":"T"`, miniSaid,
			rollout.StatusFailed, &rollout.Failure{Reason: "RateLimitError", Detail: "too many"}, "too many"},
		{"v2, batch: beside an empty patch", `"exit_status":"APIConnectionError","submission":"","exception_str":"no route","traceback":"T"`, miniSaid,
			rollout.StatusFailed, &rollout.Failure{Reason: "APIConnectionError", Detail: "no route"}, ""},
		{"v2, one run: on the last message alone", `"exit_status":"KeyError","submission":""`,
			`{"role":"exit","content":"'x'","extra":{"exit_status":"KeyError","exception_str":"'x'","traceback":"T"}}`,
			rollout.StatusFailed, &rollout.Failure{Reason: "KeyError", Detail: "'x'"}, ""},
		{"a class without a suffix, told by the traceback", `"exit_status":"CalledProcess","submission":"127","traceback":"T"`, miniSaid,
			rollout.StatusFailed, &rollout.Failure{Reason: "CalledProcess", Detail: "127"}, "127"},
		{"a full context is the policy's", `"exit_status":"ContextWindowExceededError","submission":"131073 tokens","traceback":"T"`, miniSaid,
			rollout.StatusTruncated, nil, "131073 tokens"},
		{"so are too many malformed replies", `"exit_status":"RepeatedFormatError","submission":""`, miniSaid, rollout.StatusTruncated, nil, ""},
		{"v2, cut off: written after each step, the exit status at the end", `"exit_status":"","submission":""`, miniSaid, rollout.StatusAborted, nil, ""},
		{"v1, interrupted", `"exit_status":null,"submission":null`, miniSaid, rollout.StatusAborted, nil, ""},
		{"a file that says nothing of its end", `"mini_version":"1.0.0"`, miniSaid, rollout.StatusUnknown, nil, ""},
		{"a patch of a run that ended well", `"exit_status":"Submitted","submission":"diff"`, miniSaid, rollout.StatusCompleted, nil, "diff"},
	} {
		r := one(t, "x.traj.json", miniFile(c.info, miniTask, c.last))
		require.Equal(t, c.status, r.Status, c.reason)
		require.Equal(t, c.failure, r.Failure, c.reason)
		patch := ""
		if p := r.Outcome.Submission; p != nil {
			patch = *p
		}
		require.Equal(t, c.patch, patch, c.reason)
	}
}

// TestMiniMalformedReplies: from 2.3.1 on, a reply whose call could not be parsed is stored
// in the error message. The policy sampled that reply, and no later call saw it.
func TestMiniMalformedReplies(t *testing.T) {
	refused := func(response string) string {
		return `{"role":"user","content":"no call","extra":{"interrupt_type":"FormatError","response":` + response + `}}`
	}
	chat := `{"id":"b1","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"bad"}}]}`
	items := `{"id":"b2","object":"response","status":"completed","output":[` +
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"worse"}]}]}`
	r := one(t, "x.traj.json", miniFile(`"model_stats":{"api_calls":4}`, miniTask,
		refused(chat), refused(items), refused(`"ModelResponse(id=b3)"`), miniSaid))
	require.NoError(t, r.Validate())
	require.Equal(t, "user assistant user assistant user user assistant", roles(r))
	require.Equal(t, "sampled sampled sampled", reasons(r))
	require.Equal(t, "bad worse", r.Messages[1].Content+" "+r.Messages[3].Content)
	require.Equal(t, rollout.Turn{ID: "b1", Message: 1, FinishReason: "stop"}, r.Turns[0])
	require.Equal(t, []rollout.ContextPart{{From: 0, To: 1}, {From: 2, To: 3}}, r.Turns[1].Context.Parts)
	require.Equal(t, []rollout.ContextPart{{From: 0, To: 1}, {From: 2, To: 3}, {From: 4, To: 6}}, r.Turns[2].Context.Parts)
	require.Equal(t, "calls_without_message", codes(r), "of the third only words are recorded")
	r = one(t, "x.traj.json", miniFile(`"config":{"model_type":"minisweagent.models.test_models.DeterministicModel"}`, miniTask, refused(chat), miniSaid))
	require.Equal(t, "user user assistant", roles(r), "the models of its tests sample nothing")
}

// TestMiniTools: models of version 2 were given one tool, which the files do not record.
func TestMiniTools(t *testing.T) {
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"bash","arguments":"{}"}}]}`
	for _, c := range []struct{ version, model, said, want string }{
		{"2.2.4", "minisweagent.models.litellm_model.LitellmModel", call, "tools_of_harness"},
		{"2.2.4", "minisweagent.models.litellm_model.LitellmModel", miniSaid, "tools_of_harness"},
		{"2.2.4", "minisweagent.models.litellm_textbased_model.LitellmTextbasedModel", miniSaid, ""},
		{"2.2.4", "minisweagent.models.extra.roulette.RouletteModel", miniSaid, ""},
		{"2.2.4", "minisweagent.models.extra.roulette.RouletteModel", call, "tools_of_harness"},
		{"2.2.4", "mine.Model", call, "tools_not_recorded"},
		{"1.17.0", "minisweagent.models.litellm_model.LitellmModel", miniSaid, ""},
	} {
		info := `"mini_version":"` + c.version + `","config":{"model_type":"` + c.model + `"}`
		r := one(t, "x.traj.json", miniFile(info, miniTask, c.said))
		require.Equal(t, c.want, codes(r), c)
		require.Equal(t, c.want == "tools_of_harness", len(r.Tools) == 1, c)
	}
}

// TestSWEAgentCutOff: a file with steps and no exit status is a run that never ended; a
// demonstration has neither.
func TestSWEAgentCutOff(t *testing.T) {
	file := func(info, steps string) string {
		return `{"history":[{"role":"user","content":"q","agent":"main"},{"role":"assistant","content":"a","agent":"main"}],"info":` + info + `,"trajectory":[` + steps + `]}`
	}
	for _, c := range []struct {
		info, steps string
		want        rollout.Status
	}{
		{`{"model_stats":{"api_calls":1}}`, `{"response":"a"}`, rollout.StatusAborted},
		{`{"model_stats":{"api_calls":1},"exit_status":null}`, `{"response":"a"}`, rollout.StatusAborted},
		{`{"model_stats":{"api_calls":1},"exit_status":"submitted"}`, `{"response":"a"}`, rollout.StatusCompleted},
		{`{}`, `{"response":"a"}`, rollout.StatusUnknown},
		{`{"model_stats":{}}`, ``, rollout.StatusUnknown},
	} {
		r := one(t, "x.traj", file(c.info, c.steps))
		require.Equal(t, c.want, r.Status, c)
		require.Equal(t, c.want == rollout.StatusAborted, noted("unfinished")(r), c)
	}
}

// TestSWEAgentInstance: 0.x gives the instance only in the file name, which is also its
// name in reports.
func TestSWEAgentInstance(t *testing.T) {
	steps := `{"environment":"swe_main","history":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"info":{},"trajectory":[{"response":"a"}]}`
	for name, want := range map[string]string{"a__b-1.traj": "a__b-1", "a__b-1.json": "", "x.traj.json": ""} {
		require.Equal(t, want, one(t, name, steps).Instance, name)
	}
	rewards, err := traj.LoadRewards([]string{write(t, t.TempDir(), "results.json", []byte(`{"resolved":["a__b-1"]}`))})
	require.NoError(t, err)
	out, _, err := read(t, "a__b-1.traj", steps, traj.Options{Rewards: []*traj.Rewards{rewards}})
	require.NoError(t, err)
	require.True(t, *out[0].Outcome.Resolved)
}

// TestSWEAgentEndings: a dead environment is not the policy's failure; giving up is.
func TestSWEAgentEndings(t *testing.T) {
	for word, want := range map[string]rollout.Status{
		"early_exit": rollout.StatusFailed, "submitted (exit_environment_error)": rollout.StatusFailed,
		"exit_format": rollout.StatusTruncated, "submitted (exit_format)": rollout.StatusTruncated,
		"exit_forfeit": rollout.StatusCompleted, "exit_command": rollout.StatusCompleted,
	} {
		r := one(t, "x.traj", `{"history":[{"role":"assistant","content":"a","agent":"main"}],"trajectory":[],"info":{"exit_status":"`+word+`"}}`)
		require.Equal(t, want, r.Status, word)
	}
}
