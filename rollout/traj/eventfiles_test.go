package traj_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

func sdkMessage(id, role, text string) string {
	return fmt.Sprintf(`{"id":%q,"source":"user","kind":"MessageEvent","llm_message":{"role":%q,"content":[{"type":"text","text":%q}]}}`, id, role, text)
}

// TestEventFilesAreOneRollout: a folder with one event per file is one rollout, in the
// order of the numbers, whatever else is beside it.
func TestEventFilesAreOneRollout(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a/conv1/base_state.json", []byte(`{"id":"conv-1","execution_status":"finished","agent":{"llm":{"model":"m","temperature":0.5}}}`))
	write(t, dir, "a/conv1/events/event-00000-x.json", []byte(sdkMessage("1", "user", "q")))
	write(t, dir, "a/conv1/events/event-00001-y.json", []byte("{\n"+sdkMessage("2", "assistant", "a")[1:]))
	write(t, dir, "a/conv2/events/event-00000-x.json", []byte(sdkMessage("5", "user", "other")))
	for i, e := range []string{`"source":"user","action":"message","args":{"content":"q"}`, `"source":"agent","action":"message","args":{"content":"a"}`, `"source":"user","action":"message","args":{"content":"r"}`} {
		write(t, dir, fmt.Sprintf("b/events/%d.json", 9+i), []byte(fmt.Sprintf(`{"id":%d,%s}`, 9+i, e)))
	}
	write(t, dir, "c.jsonl", []byte(chat("c")))
	got := all(t, stop, dir)
	require.Len(t, got, 4)
	r := got[0]
	require.Equal(t, "conv-1", r.ID)
	require.Equal(t, "user assistant", roles(r))
	require.Equal(t, rollout.StatusCompleted, r.Status)
	require.Equal(t, float32(0.5), *r.Temperature)
	require.Equal(t, "5", got[1].ID)
	require.Equal(t, "openhands-events", got[2].Origin.Format)
	require.Equal(t, "user assistant user", roles(got[2]), "9 comes before 10 and 11")
	require.Equal(t, "c", got[3].ID)
	alone := all(t, traj.Options{OnError: rollout.OnErrorStop, Alone: true}, dir)
	require.Equal(t, rollout.StatusUnknown, alone[0].Status)
}

// TestPagesOfEvents: V0 keeps full pages of the events beside them. The pages are read only
// if the events are missing.
func TestPagesOfEvents(t *testing.T) {
	dir := t.TempDir()
	var events []string
	for i := range 3 {
		e := fmt.Sprintf(`{"id":%d,"source":"user","action":"message","args":{"content":"m%d"}}`, i, i)
		write(t, dir, fmt.Sprintf("a/events/%d.json", i), []byte(e))
		events = append(events, e)
	}
	for _, conversation := range []string{"a", "b"} {
		write(t, dir, conversation+"/event_cache/0-2.json", []byte("["+events[0]+","+events[1]+"]"))
		write(t, dir, conversation+"/event_cache/2-4.json", []byte("["+events[2]+"]"))
	}
	r, err := traj.Open([]string{dir}, stop)
	require.NoError(t, err)
	var got []string
	for x, err := range r.All() {
		require.NoError(t, err)
		got = append(got, roles(x))
	}
	require.Equal(t, []string{"user user user", "user user user"}, got)
	require.Equal(t, 2, r.Report().IgnoredCount, "the pages beside events")
}

func TestEventFileWithSeveralEvents(t *testing.T) {
	dir := t.TempDir()
	p := write(t, dir, "1.json", []byte(sdkMessage("1", "user", "q")+"\n"+sdkMessage("2", "assistant", "a")+"\n"+sdkMessage("3", "user", "r")))
	got := all(t, stop, p)
	require.Len(t, got, 1)
	require.Equal(t, "user assistant user", roles(got[0]))
}

func TestBrokenEventFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "events/event-00000.json", []byte(sdkMessage("1", "user", "q")))
	write(t, dir, "events/event-00001.json", []byte(`{"id":"2","source":"agent","kind":"ActionEvent","thought":5,"tool_call":{}}`))
	write(t, dir, "events/event-00002.json", []byte(`{"id":`))
	write(t, dir, "events/event-00003.json", []byte(sdkMessage("4", "assistant", "a")))
	text, report, err := ids(t, traj.Options{}, dir)
	require.NoError(t, err)
	require.Equal(t, "1", text)
	require.Equal(t, 2, report.Skipped)
	for i, name := range []string{"event-00002", "event-00001"} {
		require.True(t, strings.Contains(report.Errors[i].Error(), name), report.Errors[i])
	}
	_, _, err = ids(t, stop, dir)
	require.Error(t, err)
}

// TestSDKEndings: the last execution status applies, a limit is not a failure, and a run
// that is still going has not ended.
func TestSDKEndings(t *testing.T) {
	state := func(key, value string) string {
		return `{"id":"s","source":"environment","kind":"ConversationStateUpdateEvent","key":"` + key + `","value":` + value + `}`
	}
	failed := func(code string) string {
		return `{"id":"e","source":"environment","kind":"ConversationErrorEvent","code":"` + code + `","detail":"d"}`
	}
	finish := `{"kind":"ActionEvent","id":"f","source":"agent","thought":[],"tool_name":"finish","tool_call_id":"c","llm_response_id":"r",` +
		`"tool_call":{"id":"c","name":"finish","arguments":"{}"}}` + "\n" +
		`{"kind":"ObservationEvent","id":"o","source":"environment","tool_call_id":"c","observation":{"kind":"FinishObservation","content":[]}}`
	boom := &rollout.Failure{Reason: "Boom", Detail: "d"}
	for _, c := range []struct {
		reason, events string
		status         rollout.Status
		exit           string
		failure        *rollout.Failure
	}{
		{"the finish tool", finish, rollout.StatusCompleted, "", nil},
		{"finished", state("execution_status", `"finished"`), rollout.StatusCompleted, "finished", nil},
		{"a snapshot", state("full_state", `{"execution_status":"stuck"}`), rollout.StatusAborted, "stuck", nil},
		{"a limit, the status before its event", lines(state("execution_status", `"error"`), failed("MaxIterationsReached")), rollout.StatusTruncated, "MaxIterationsReached", nil},
		{"a limit, the status after", lines(failed("LLMContextWindowExceedError"), state("execution_status", `"error"`)), rollout.StatusTruncated, "LLMContextWindowExceedError", nil},
		{"an error", lines(failed("Boom"), state("execution_status", `"error"`)), rollout.StatusFailed, "error", boom},
		{"an error that was not the end", lines(failed("Boom"), sdkMessage("3", "user", "go on")), rollout.StatusUnknown, "", nil},
		{"run again after an error", lines(failed("Boom"), state("execution_status", `"running"`), finish), rollout.StatusCompleted, "", nil},
		{"a new task after the end", lines(finish, sdkMessage("3", "user", "more")), rollout.StatusUnknown, "", nil},
	} {
		r := one(t, "x.jsonl", lines(sdkMessage("1", "user", "q"), sdkMessage("2", "assistant", "a"), strings.TrimSpace(c.events)))
		require.Equal(t, c.status, r.Status, c.reason)
		require.Equal(t, c.exit, r.ExitStatus, c.reason)
		require.Equal(t, c.failure, r.Failure, c.reason)
	}
	limit := "Instance failed after 3 retries. Last error: MaxIterationsReached: Agent reached maximum iterations limit (100)."
	for detail, want := range map[string]rollout.Status{limit: rollout.StatusTruncated, "Remote conversation got stuck": rollout.StatusAborted} {
		r := one(t, "output.jsonl", `{"instance_id":"i","test_result":{},"error":"`+detail+`","history":[`+failed("Boom")+`]}`)
		require.Equal(t, want, r.Status)
		require.Nil(t, r.Failure)
	}
}

// TestOpenHandsReports: the evaluation writes its report into the output.
func TestOpenHandsReports(t *testing.T) {
	for rest, want := range map[string]rollout.Verdict{
		`"report":{"resolved":true}`:                                                         rollout.VerdictResolved,
		`"test_result":{"report":{"resolved":false,"empty_generation":true}}`:                rollout.VerdictNoPatch,
		`"test_result":{"report":{"resolved":false,"failed_apply_patch":true}}`:              rollout.VerdictApplyFailed,
		`"test_result":{"report":{"resolved":false,"test_timeout":true}}`:                    rollout.VerdictTestsTimeout,
		`"test_result":{"report":{"resolved":false,"error_eval":true}}`:                      rollout.VerdictInfraError,
		`"test_result":{"report":{"resolved":false}}`:                                        rollout.VerdictUnresolved,
		`"test_result":{"git_patch":"p"}`:                                                    rollout.VerdictUnknown,
		`"report":{"resolved":false},"test_result":{"report":{"resolved":true}},"success":1`: rollout.VerdictUnresolved,
	} {
		r := one(t, "output.jsonl", `{"instance_id":"i",`+rest+`,"history":[`+sdkMessage("1", "user", "q")+`]}`)
		require.Equal(t, want, r.Outcome.Verdict, rest)
		require.Equal(t, want != rollout.VerdictUnknown && want != rollout.VerdictInfraError, r.Outcome.Resolved != nil, rest)
	}
}

// TestOldActionsAreNotTrained: V0 actions without a model response hold the thought and not
// the call; the text of a message is the whole reply.
func TestOldActionsAreNotTrained(t *testing.T) {
	event := func(id int, rest string) string { return fmt.Sprintf(`{"id":%d,%s}`, id, rest) }
	r := one(t, "x.json", "["+strings.Join([]string{
		event(0, `"source":"user","action":"message","args":{"content":"q"}`),
		event(1, `"source":"agent","action":"run","args":{"command":"ls","thought":"look"}`),
		event(2, `"source":"agent","observation":"run","content":"o","cause":1`),
		event(3, `"source":"agent","action":"message","args":{"content":"done"}`),
	}, ",")+"]")
	require.Len(t, r.Turns, 2)
	require.Equal(t, "the call of the reply is not recorded", r.Turns[0].Incomplete)
	require.Empty(t, r.Turns[1].Incomplete)
	require.Equal(t, "reply_not_recorded reply_not_recorded context_not_recorded", codes(r))
}
