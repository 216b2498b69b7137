package traj_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// shown lists the texts that the model saw in a turn's context.
func shown(r *rollout.Rollout, t rollout.Turn) string {
	if t.Context.Unknown {
		return "unknown"
	}
	if t.Context.Parts == nil {
		return "plain"
	}
	var out []string
	for _, p := range t.Context.Parts {
		if p.Message != nil {
			out = append(out, "<"+p.Message.Content+">")
			continue
		}
		for _, m := range r.Messages[p.From:p.To] {
			out = append(out, m.Content)
		}
	}
	return strings.Join(out, " ")
}

// v0Run is a run of three calls, a condensation and a last reply. Event ids: 0 system, 1
// task, 2 and 3 recall, 4/5, 6/7 and 8/9 calls and results, 10 the condensation, 11 the
// reply.
func v0Run(system bool, args string) string {
	var events []string
	add := func(id int, body string) { events = append(events, fmt.Sprintf(`{"id":%d,%s}`, id, body)) }
	if system {
		add(0, `"source":"agent","action":"system","args":{"content":"S"}`)
	}
	add(1, `"source":"user","action":"message","args":{"content":"Q"}`)
	add(2, `"source":"user","action":"recall","args":{}`)
	add(3, `"source":"environment","observation":"recall","content":""`)
	call := func(id int, n string) {
		meta := fmt.Sprintf(`"tool_call_metadata":{"tool_call_id":"c%s","model_response":{"id":"r%s","choices":[{"message":{"role":"assistant","content":"A%s","tool_calls":[{"id":"c%s","function":{"name":"f","arguments":"{}"}}]}}]}}`, n, n, n, n)
		add(id, `"source":"agent","action":"run",`+meta)
		add(id+1, `"source":"agent","observation":"run","content":"O`+n+`",`+meta)
	}
	call(4, "1")
	call(6, "2")
	call(8, "3")
	add(10, `"source":"agent","action":"condensation","args":`+args)
	add(11, `"source":"agent","action":"message","args":{"content":"A4"}`)
	return "[" + strings.Join(events, ",") + "]"
}

func TestCondensationsOfV0(t *testing.T) {
	for _, c := range []struct {
		reason string
		system bool
		args   string
		want   string
	}{
		{"a range and a summary behind the first events", true, `{"forgotten_event_ids":null,"forgotten_events_start_id":4,"forgotten_events_end_id":7,"summary":"SUM","summary_offset":4}`, "S Q <\n\nSUM> A3 O3"},
		{"a list of ids", true, `{"forgotten_event_ids":[4,5,6,7],"summary":"SUM","summary_offset":2}`, "S Q <\n\nSUM> A3 O3"},
		{"a forgotten task is put back behind the system message", true, `{"forgotten_events_start_id":1,"forgotten_events_end_id":7,"summary":"SUM","summary_offset":1}`, "S Q <\n\nSUM> A3 O3"},
		{"a forgotten task is put back where only the system message is left", true, `{"forgotten_events_start_id":1,"forgotten_events_end_id":9}`, "S Q"},
		{"a task that is the only event left is shown once", true, `{"forgotten_event_ids":[0,2,3,4,5,6,7,8,9]}`, "S Q"},
		{"a forgotten system message is put back, and the task after it", true, `{"forgotten_events_start_id":0,"forgotten_events_end_id":7,"summary":"SUM","summary_offset":0}`, "S Q <\n\nSUM> A3 O3"},
		{"both are put back where nothing is left", true, `{"forgotten_events_start_id":0,"forgotten_events_end_id":9}`, "S Q"},
		{"without a system event there is nothing to show", false, `{"forgotten_events_start_id":1,"forgotten_events_end_id":9}`, "unknown"},
		{"older records have no system event to put it back behind", false, `{"forgotten_events_start_id":1,"forgotten_events_end_id":7,"summary":"SUM","summary_offset":0}`, "<SUM> A3 O3"},
		{"no summary", true, `{"forgotten_events_start_id":4,"forgotten_events_end_id":7}`, "S Q A3 O3"},
		{"a summary needs a place", true, `{"forgotten_events_start_id":4,"forgotten_events_end_id":7,"summary":"SUM"}`, "S Q A3 O3"},
		{"a place behind the end is the end", true, `{"forgotten_events_start_id":4,"forgotten_events_end_id":9,"summary":"SUM","summary_offset":99}`, "S Q <\n\nSUM>"},
		{"a result whose call is forgotten goes with it", true, `{"forgotten_events_start_id":4,"forgotten_events_end_id":8,"summary":"SUM","summary_offset":4}`, "S Q <\n\nSUM>"},
		{"a call whose result is forgotten goes with it", true, `{"forgotten_event_ids":[4,5,9],"summary":"SUM","summary_offset":4}`, "S Q <\n\nSUM> A2 O2"},
		{"nothing forgotten", true, `{"forgotten_event_ids":[]}`, "S Q A1 O1 A2 O2 A3 O3"},
		{"a record that does not tell", true, `{"summary":"SUM"}`, "unknown"},
	} {
		r := one(t, "x.json", v0Run(c.system, c.args))
		require.NoError(t, r.Validate(), c.reason)
		require.Len(t, r.Turns, 4)
		require.Equal(t, c.want, shown(r, r.Turns[3]), c.reason)
		require.Equal(t, "plain", shown(r, r.Turns[2]), c.reason)
	}
}

// TestSecondCondensation: its summary replaces the first one, and forgotten events stay
// forgotten.
func TestSecondCondensation(t *testing.T) {
	text := v0Run(true, `{"forgotten_events_start_id":4,"forgotten_events_end_id":5,"summary":"ONE","summary_offset":2}`)
	text = strings.TrimSuffix(text, "]") + `,{"id":12,"source":"agent","action":"condensation","args":{"forgotten_events_start_id":6,"forgotten_events_end_id":9,"summary":"TWO","summary_offset":2}},{"id":13,"source":"agent","action":"message","args":{"content":"A5"}}]`
	r := one(t, "x.json", text)
	require.Equal(t, "S Q <\n\nONE> A2 O2 A3 O3", shown(r, r.Turns[3]))
	require.Equal(t, "S Q <\n\nTWO> A4", shown(r, r.Turns[4]))
	require.Equal(t, "condensed reply_not_recorded condensed reply_not_recorded context_not_recorded", codes(r))

	// Without a second summary, the first one stays where it was among the remaining
	// events.
	r = one(t, "x.json", strings.Replace(text, `"summary":"TWO","summary_offset":2`, `"summary":null`, 1))
	require.Equal(t, "S Q <\n\nONE> A4", shown(r, r.Turns[4]))
}

// TestCallsWithoutResults: the model is not shown a call that has no result. A finish of
// V0, which never has a result, is shown as text.
func TestCallsWithoutResults(t *testing.T) {
	act := func(kind, response, thought, calls string) string {
		var list, events []string
		for _, c := range strings.Fields(calls) {
			list = append(list, `{"id":"`+c+`","function":{"name":"f","arguments":"{}"}}`)
		}
		for _, c := range strings.Fields(calls) {
			events = append(events, `{"id":1,"source":"agent","action":"`+kind+`","args":{"thought":"`+thought+`"},"tool_call_metadata":{"tool_call_id":"`+c+`","model_response":{"id":"`+response+`","choices":[{"message":{"role":"assistant","content":"`+response+`","tool_calls":[`+strings.Join(list, ",")+`]}}]}}}`)
		}
		return strings.Join(events, ",RESULT,")
	}
	result := func(call string) string {
		return `{"id":2,"source":"agent","observation":"mcp","content":"o` + call + `","tool_call_metadata":{"tool_call_id":"` + call + `"}}`
	}
	say := func(who, text string) string {
		return `{"id":3,"source":"` + who + `","action":"message","args":{"content":"` + text + `"}}`
	}
	for _, c := range []struct{ reason, middle, want string }{
		{"a finish, and what it thought", act("finish", "R", "T", "c"), "Q <T\nR> Q2"},
		{"a finish whose thought is its text", act("finish", "R", "R", "c"), "Q <R> Q2"},
		{"a call alone", act("run", "R", "", "c"), "Q Q2"},
		{"one call of two has a result", strings.ReplaceAll(act("run", "R", "", "c d"), "RESULT", result("c")), "Q Q2"},
		{"both have, one after the other", strings.ReplaceAll(act("run", "R", "", "c d"), "RESULT", result("c")) + "," + result("d") + "," + act("run", "X", "", "e"), "Q R oc od Q2"},
	} {
		r := one(t, "x.json", "["+say("user", "Q")+","+c.middle+","+say("user", "Q2")+","+say("agent", "A")+"]")
		require.NoError(t, r.Validate(), c.reason)
		require.Equal(t, c.want, shown(r, r.Turns[len(r.Turns)-1]), c.reason)
	}
	action := func(id, call string) string {
		return `{"id":"` + id + `","source":"agent","kind":"ActionEvent","thought":[{"type":"text","text":"R"}],"tool_name":"f","tool_call_id":"` + call + `","tool_call":{"name":"f","arguments":"{}"},"llm_response_id":"r"}` + "\n"
	}
	message := func(role, text string) string {
		return `{"id":"` + text + `","source":"user","kind":"MessageEvent","llm_message":{"role":"` + role + `","content":"` + text + `"}}` + "\n"
	}
	for actions, want := range map[string]string{
		action("a", "c"): "Q Q2",
		action("a", "c") + action("b", "d") + `{"id":"o","source":"environment","kind":"AgentErrorEvent","tool_call_id":"c","error":"bad"}` + "\n": "unknown",
	} {
		r := one(t, "x.jsonl", message("user", "Q")+actions+message("user", "Q2")+message("assistant", "A"))
		require.Equal(t, want, shown(r, r.Turns[1]))
	}
}

// Later versions of the agent SDK treat an action with thinking blocks, and the actions and
// results that follow, as one loop and show all of it or nothing; earlier versions show
// what remains.
func TestThinkingLoops(t *testing.T) {
	for _, c := range []struct{ reason, events, want string }{
		{"all is there", "Q T1 o1 A2 o2 Q2", "plain"},
		{"a call of a loop has no result", "Q T1 o1 A2 Q2", "unknown"},
		{"its first call has none", "Q T1 A2 o2 Q2", "unknown"},
		{"the loop is the call", "Q T1 Q2", "Q Q2"},
		{"another loop begins with the call", "Q T1 o1 T2 Q2", "Q T1 o1 Q2"},
		{"another loop begins behind the call", "Q T1 T2 o2 Q2", "Q T2 o2 Q2"},
		{"no loop goes on behind a message", "Q T1 o1 X A2 Q2", "Q T1 o1 X Q2"},
		{"nor behind a token event", "Q T1 o1 # A2 Q2", "Q T1 o1 Q2"},
		{"no thinking, no loop", "Q A1 o1 A2 Q2", "Q A1 o1 Q2"},
		{"a loop is forgotten", "Q T1 o1 A2 o2 Q2 -T1,o1,A2,o2", "Q Q2"},
		{"a part of a loop is forgotten", "Q T1 o1 A2 o2 Q2 -T1,o1", "unknown"},
		{"a loop beside what is forgotten", "Q A1 o1 T2 o2 A3 o3 Q2 -A1,o1", "Q T2 o2 A3 o3 Q2"},
	} {
		var lines []string
		for _, e := range strings.Fields(c.events + " Z") {
			body := fmt.Sprintf(`{"id":%q,"source":"agent",`, e)
			switch e[0] {
			case 'T', 'A':
				thinking := map[byte]string{'T': `[{"type":"thinking","thinking":"h"}]`, 'A': `[]`}[e[0]]
				body += fmt.Sprintf(`"kind":"ActionEvent","thought":[{"type":"text","text":%q}],"thinking_blocks":%s,"tool_name":"f","tool_call_id":%q,"tool_call":{"name":"f","arguments":"{}"},"llm_response_id":%q}`, e, thinking, e[1:], e)
			case 'o':
				body += fmt.Sprintf(`"kind":"ObservationEvent","tool_call_id":%q,"observation":{"content":[{"type":"text","text":%q}]}}`, e[1:], e)
			case '#':
				body += `"kind":"TokenEvent","prompt_token_ids":[1],"response_token_ids":[2]}`
			case '-':
				ids := strings.ReplaceAll(e[1:], ",", `","`)
				body += fmt.Sprintf(`"kind":"Condensation","forgotten_event_ids":["%s"]}`, ids)
			default:
				role := map[byte]string{'Q': "user", 'X': "assistant", 'Z': "assistant"}[e[0]]
				body += fmt.Sprintf(`"kind":"MessageEvent","llm_message":{"role":%q,"content":%q}}`, role, e)
			}
			lines = append(lines, body)
		}
		r := one(t, "x.jsonl", strings.Join(lines, "\n"))
		require.NoError(t, r.Validate(), c.reason)
		require.Equal(t, c.want, shown(r, r.Turns[len(r.Turns)-1]), c.reason)
	}
}

func TestCondensationsOfTheSDK(t *testing.T) {
	head := `{"id":"s","source":"agent","kind":"SystemPromptEvent","system_prompt":{"text":"S"},"dynamic_context":{"text":"+D"},"tools":[{"kind":"TerminalTool","title":"terminal","description":"Runs."},{"kind":"ThinkTool"},{"type":"function","function":{"name":"g"}}]}
{"id":"u","source":"user","kind":"MessageEvent","llm_message":{"role":"user","content":[{"type":"text","text":"Q"}]},"extended_content":[{"type":"text","text":"+X"}]}
{"id":"st","source":"environment","kind":"ConversationStateUpdateEvent","key":"k","value":1}
{"id":"a1","source":"agent","kind":"ActionEvent","thought":[{"type":"text","text":"A1"}],"tool_name":"f","tool_call_id":"c1","tool_call":{"name":"f","arguments":"{}"},"llm_response_id":"r1"}
{"id":"a2","source":"agent","kind":"ActionEvent","thought":[],"tool_name":"f","tool_call_id":"c2","tool_call":{"name":"f","arguments":"{}"},"llm_response_id":"r1"}
{"id":"o2","source":"environment","kind":"ObservationEvent","tool_call_id":"c2","observation":{"content":[{"type":"text","text":"O2"}]}}
{"id":"o1","source":"environment","kind":"UserRejectObservation","tool_call_id":"c1","rejection_reason":"no"}
{"id":"t","source":"agent","kind":"TokenEvent","prompt_token_ids":[1,2],"response_token_ids":[3]}
`
	for _, c := range []struct{ reason, forgotten, want string }{
		{"all of a response", `"a1","a2","o1","o2"`, "S+D Q+X <SUM>"},
		{"nothing", ``, "S+D Q+X <SUM> A1 O2 Action rejected: no"},
		{"a part of a response: versions differ", `"a2","o2"`, "unknown"},
		{"one of two results: versions differ", `"o2"`, "unknown"},
	} {
		r := one(t, "x.jsonl", head+`{"id":"c","source":"environment","kind":"Condensation","forgotten_event_ids":[`+c.forgotten+`],"summary":"SUM","summary_offset":2,"llm_response_id":"x"}
{"id":"m","source":"agent","kind":"MessageEvent","llm_message":{"role":"assistant","content":[{"type":"text","text":"bye"}]}}`)
		require.NoError(t, r.Validate(), c.reason)
		require.Equal(t, c.want, shown(r, r.Turns[1]), c.reason)
		require.Equal(t, []rollout.TokenID{3}, r.Turns[0].Output, "token events belong to the turn before them")
		require.Equal(t, `{"type":"function","function":{"name":"terminal","description":"Runs."}}`, string(r.Tools[0]))
		require.Equal(t, `{"type":"function","function":{"name":"think"}}`, string(r.Tools[1]))
		require.Equal(t, `{"type":"function","function":{"name":"g"}}`, string(r.Tools[2]))
	}
}

// TestUserMessagesOfTheSDK: since 1.31, whose events name their parents, user messages next
// to each other are sent as one.
func TestUserMessagesOfTheSDK(t *testing.T) {
	for parents, want := range map[bool]string{true: "<Q1Q2>; <Q1Q2> R A1; <Q1Q2SUM>; <Q1Q2SUM> A2 <Q3Q4>", false: "plain; plain; Q1 Q2 <SUM>; Q1 Q2 <SUM> A2 Q3 Q4"} {
		var lines []string
		last := "__root__"
		add := func(id, body string) {
			if parents {
				body = `"parent_id":"` + last + `",` + body
			}
			lines, last = append(lines, `{"id":"`+id+`","source":"agent",`+body+`}`), id
		}
		say := func(role, text string) {
			add(text, `"kind":"MessageEvent","llm_message":{"role":"`+role+`","content":[{"type":"text","text":"`+text+`"}]}`)
		}
		say("user", "Q1")
		say("user", "Q2")
		say("assistant", "R")
		say("user", "A1")
		say("assistant", "X")
		add("c", `"kind":"Condensation","forgotten_event_ids":["R","A1","X"],"summary":"SUM","summary_offset":2`)
		say("assistant", "A2")
		say("user", "Q3")
		say("user", "Q4")
		say("assistant", "Z")
		r := one(t, "x.jsonl", strings.Join(lines, "\n"))
		require.NoError(t, r.Validate())
		var got []string
		for _, turn := range r.Turns {
			got = append(got, shown(r, turn))
		}
		require.Equal(t, want, strings.Join(got, "; "))
	}
}

// TestMalformedCallsOfTheSDK: arguments that the SDK put in the place of the model's are
// not trained.
func TestMalformedCallsOfTheSDK(t *testing.T) {
	r := one(t, "x.jsonl", `{"id":"q","source":"user","kind":"MessageEvent","llm_message":{"role":"user","content":"Q"}}
{"id":"a","source":"agent","kind":"ActionEvent","thought":[],"tool_name":"f","tool_call_id":"c","tool_call":{"name":"f","arguments":"{\"_openhands_malformed_tool_call\": true, \"error\": \"bad\"}"},"llm_response_id":"r1"}
{"id":"o","source":"environment","kind":"ObservationEvent","tool_call_id":"c","observation":{"content":[{"type":"text","text":"bad"}],"is_error":true}}
{"id":"m","source":"agent","kind":"MessageEvent","llm_message":{"role":"assistant","content":"bye"}}`)
	require.NotEmpty(t, r.Turns[0].Incomplete)
	require.Empty(t, r.Turns[1].Incomplete)
	require.Equal(t, "incomplete additions_not_shown", codes(r))
}

// TestEventsThatAreNotTheModels: actions of the user or the harness are not trained.
func TestEventsThatAreNotTheModels(t *testing.T) {
	r := one(t, "x.json", `[{"id":1,"source":"user","action":"message","args":{"content":"Q"}},{"id":2,"source":"user","action":"run","args":{"command":"ls"}},{"id":3,"source":"agent","action":"condensation_request","args":{}},{"id":4,"source":"environment","action":"message","args":{"content":"hint"}},{"id":5,"source":"agent","action":"message","args":{"content":"A"}}]`)
	require.Equal(t, "user user assistant assistant", roles(r))
	require.Equal(t, "scripted sampled", reasons(r))
	require.Equal(t, "ls", r.Messages[1].Content)
}

// TestWhatIsNoEvent: it gets a note among events; alone it gives no rollout.
func TestWhatIsNoEvent(t *testing.T) {
	v0, sdk := `{"source":"user","action":"message","args":{"content":"Q"}}`, `{"id":"q","source":"user","kind":"MessageEvent","llm_message":{"role":"user","content":"Q"}}`
	output := func(history string) string {
		return `{"instance_id":"i","instruction":"","metadata":{},"history":[` + history + `]}`
	}
	for _, c := range []struct{ format, name, text, want string }{
		{"openhands-events", "x.json", `[` + v0 + `,{"a":1}]`, "user event_unknown context_not_recorded"},
		{"openhands-sdk-events", "x.jsonl", sdk + "\n" + `{"a":1}`, "user event_unknown"},
		{"openhands-output", "x.jsonl", output(`{"a":1},` + v0), "user event_unknown"},
		{"openhands-output", "x.jsonl", output(``), " "},
		{"openhands-events", "x.json", `{"a":1}`, "none"},
		{"openhands-events", "x.jsonl", "{\"a\":1}\n{\"b\":1}", "none"},
		{"openhands-sdk-events", "x.json", `[{"a":1}]`, "none"},
		{"openhands-output", "x.jsonl", output(`[],[]`), "none"},
		{"openhands-output", "x.jsonl", output(`{"a":1}`), "none"},
	} {
		out, _, err := read(t, c.name, c.text, traj.Options{OnError: rollout.OnErrorStop, Format: c.format})
		if c.want == "none" {
			require.ErrorIs(t, err, rollout.KindFormat, c.text)
			require.ErrorContains(t, err, "expected a list of events", c.text)
			continue
		}
		require.NoError(t, err, c.text)
		require.Equal(t, strings.TrimSpace(c.want), strings.TrimSpace(roles(out[0])+" "+codes(out[0])), c.text)
	}
	// An action without a readable call is not a reply.
	action := func(call string) string {
		return `{"id":"a","source":"agent","kind":"ActionEvent","thought":[],"tool_name":"f","tool_call_id":1,"llm_response_id":"r"` + call + `}`
	}
	out, report, err := read(t, "x.jsonl", strings.Join([]string{sdk, action(`,"tool_call":3`), action(``), action(`,"tool_call":{"arguments":"{}"}`), `{"id":"o","source":"agent","kind":"AgentErrorEvent","tool_call_id":1,"error":"no"}`}, "\n"), traj.Options{})
	require.NoError(t, err)
	require.Equal(t, 2, report.Skipped)
	require.Equal(t, "user assistant tool", roles(out[0]))
	require.Equal(t, "1 1", out[0].Messages[1].ToolCalls[0].ID+" "+out[0].Messages[2].ToolCallID)
}

// TestNotesOfABadRecord: they are dropped with it.
func TestNotesOfABadRecord(t *testing.T) {
	out, report, err := read(t, "x.jsonl", `{"messages":[{"role":"assistant","content":"a","refusal":"no"},{"role":3}]}
{"messages":[{"role":"user","content":"a"}]}`, traj.Options{})
	require.NoError(t, err)
	require.Equal(t, 1, report.Skipped)
	require.Empty(t, codes(out[0]))
}

// TestBranches: events that continue from an earlier event leave out those after it.
func TestBranches(t *testing.T) {
	event := func(id, parent, role string) string {
		return `{"id":"` + id + `","parent_id":` + parent + `,"source":"user","kind":"MessageEvent","llm_message":{"role":"` + role + `","content":"` + id + `"}}` + "\n"
	}
	for parent, want := range map[string]string{
		`"b"`: "plain", `null`: "plain", `"elsewhere"`: "plain", // the record may be an excerpt
		`"a"`: "unknown", `"__root__"`: "unknown",
	} {
		r := one(t, "x.jsonl", event("a", `"__root__"`, "user")+event("b", `"a"`, "assistant")+event("c", parent, "user")+event("d", `"c"`, "assistant")+event("e", `"d"`, "assistant"))
		require.Equal(t, "plain", shown(r, r.Turns[0]), parent)
		require.Equal(t, want, shown(r, r.Turns[1]), parent)
		require.Equal(t, want, shown(r, r.Turns[2]), parent)
		require.Equal(t, want == "unknown", codes(r) == "branched", parent)
	}
}
