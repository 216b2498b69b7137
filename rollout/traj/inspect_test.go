package traj_test

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/traj"
)

func inspectLog(samples ...string) string {
	return `{"version":2,"status":"success","eval":{"run_id":"R","task":"T"},"samples":[` + strings.Join(samples, ",") + `]}`
}

const (
	digestA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// TestInspectReferences: references to long texts are resolved wherever they occur.
func TestInspectReferences(t *testing.T) {
	messages := `[{"role":"user","content":[{"type":"text","text":"SCHEME` + digestA + `"},{"type":"image","image":"SCHEME` + digestB + `"}]},
		{"role":"assistant","content":"go","source":"generate","tool_calls":[{"id":"c","function":"f","arguments":{"deep":["SCHEME` + digestA + `"],"n":1.50}}]},
		{"role":"tool","content":"SCHEMEcccccccccccccccccccccccccccccccc","tool_call_id":"c"},
		{"role":"user","content":"SCHEMEa page about a scheme"}]`
	events := `[{"event":"model","input":[],"tools":[{"name":"f","description":"SCHEME` + digestA + `","parameters":{}}],"output":{"choices":[]}}]`
	table := `{"` + digestA + `":"a \"long\" text\n","` + digestB + `":"data:image/png;base64,AA"}`
	for _, c := range []struct{ scheme, sample string }{
		{"attachment://", `{"id":1,"epoch":1,"input":"q","target":"x","messages":` + messages + `,"events":` + events + `,"attachments":` + table + `}`},
		{"tc://", `{"id":1,"epoch":1,"input":"q","target":"x","messages":` + messages + `,"transcript":{"events":` + events + `,"content":` + table + `}}`},
	} {
		r := one(t, "x.json", strings.ReplaceAll(inspectLog(c.sample), "SCHEME", c.scheme))
		require.Equal(t, "a \"long\" text\n", r.Messages[0].Content, c.scheme)
		require.Contains(t, string(r.Messages[0].Parts[1].Raw), "base64,AA")
		require.Equal(t, `{"deep":["a \"long\" text\n"],"n":1.50}`, r.Messages[1].ToolCalls[0].Arguments, "literals stay")
		require.Contains(t, string(r.Tools[0]), `a \"long\" text`)
		require.Equal(t, c.scheme+"cccccccccccccccccccccccccccccccc", r.Messages[2].Content)
		require.Equal(t, c.scheme+"a page about a scheme", r.Messages[3].Content)
		require.Equal(t, "attachment_missing images", codes(r), "only what looks like a digest is missed")
	}
}

// TestInspectContexts: a model event records what the call saw.
func TestInspectContexts(t *testing.T) {
	q, a1, o1, a2 := `{"id":"q","role":"user","content":"q"}`, `{"id":"a1","role":"assistant","content":"a1","source":"generate"}`, `{"id":"o1","role":"user","content":"a long result"}`, `{"id":"a2","role":"assistant","content":"a2","source":"generate"}`
	short, note := `{"id":"o1","role":"user","content":"cut"}`, `{"id":"n","role":"user","content":"summary"}`
	event := func(reply, input string) string {
		return `{"event":"model",` + input + `,"output":{"choices":[{"message":` + reply + `,"stop_reason":"stop"}]},"call":{"response":{"id":"r-` + reply[7:9] + `"}}}`
	}
	sample := func(second, pool string) string {
		return `{"id":"s","epoch":1,"input":"q","target":"x","messages":[` + q + `,` + a1 + `,` + o1 + `,` + a2 + `],` + pool + `,"events":[` + event(a1, `"input":[`+q+`]`) + `,` + event(a2, second) + `]}`
	}
	message := func(content string) *rollout.Message {
		return &rollout.Message{Role: rollout.RoleUser, Content: content}
	}
	for _, c := range []struct {
		reason, second, pool string
		want                 []rollout.ContextPart
	}{
		{"the plain history", `"input":[` + q + `,` + a1 + `,` + o1 + `]`, ``, nil},
		{"the plain history by reference", `"input":[],"input_refs":[[0,3]]`, q + `,` + a1 + `,` + o1, nil},
		{"a shortened message in place", `"input":[` + q + `,` + a1 + `,` + short + `]`, ``, []rollout.ContextPart{{From: 0, To: 2}, {From: 2, To: 3, Message: message("cut")}}},
		{"a summary for what was left out", `"input":[` + q + `,` + note + `]`, ``, []rollout.ContextPart{{From: 0, To: 1}, {From: 1, To: 1, Message: message("summary")}}},
	} {
		r := one(t, "x.json", inspectLog(sample(c.second, `"message_pool":[`+c.pool+`]`)))
		later := one(t, "x.json", inspectLog(sample(c.second, `"events_data":{"messages":[`+c.pool+`],"calls":[]}`)))
		require.Equal(t, r, later, "the pool of later versions")
		require.NoError(t, r.Validate(), c.reason)
		require.Equal(t, rollout.Context{}, r.Turns[0].Context, c.reason)
		require.Equal(t, c.want, r.Turns[1].Context.Parts, c.reason)
		require.Equal(t, "r-a2", r.Turns[1].ID)
		require.Equal(t, "stop", r.Turns[1].FinishReason)
	}
	r := one(t, "x.json", inspectLog(sample(`"input":[],"input_refs":[[0,9]]`, `"message_pool":[`+q+`]`)))
	require.True(t, r.Turns[1].Context.Unknown, "a reference beyond the pool")
	require.Equal(t, "input_missing", codes(r))
	require.NoError(t, r.Validate())
}

// TestInspectArchive: samples come in the order of their names, also if packed with zstd; a
// log without a header takes its data from the journal.
func TestInspectArchive(t *testing.T) {
	sample := func(id string) string {
		return `{"id":"` + id + `","epoch":1,"input":"q","target":"x","messages":[{"role":"assistant","content":"a"}],"scores":{"m":{"value":"P"}}}`
	}
	head := `{"version":2,"eval":{"eval_id":"E","task":"T"}}`
	for _, c := range []struct {
		reason  string
		method  uint16
		members []string
		want    string
	}{
		{"deflate", zip.Deflate, []string{"samples/b_epoch_1.json", sample("b"), "samples/a_epoch_1.json", sample("a"), "header.json", head, "summaries.json", "[]"}, "E/a/1 E/b/1"},
		{"zstd", zstd.ZipMethodWinZip, []string{"header.json", head, "samples/a_epoch_1.json", sample("a")}, "E/a/1"},
		{"cut off before the header", zip.Deflate, []string{"_journal/start.json", head, "samples/a_epoch_1.json", sample("a")}, "E/a/1"},
		{"a sample written again", zip.Deflate, []string{"header.json", head, "samples/a_epoch_1.json", sample("old"), "samples/a_epoch_1.json", sample("a")}, "E/a/1"},
		{"a sample named like a path", zip.Deflate, []string{"header.json", head, `samples/../c:\\a//b_epoch_1.json`, sample("c:a//b")}, "E/c:a//b/1"},
		{"a broken sample that is no object", zip.Deflate, []string{"header.json", head, "samples/a_epoch_1.json", `[]`, "samples/b_epoch_1.json", sample("b")}, "E/b/1"},
		{"a broken sample, in chunks", zip.Deflate, []string{"header.json", head, "samples/a_epoch_1/sample.json", `{"id":"a"}`, "samples/a_epoch_1/messages/0.json", "[]", "samples/b_epoch_1.json", sample("b")}, "E/b/1"},
		{"a sample that is broken", zip.Deflate, []string{"header.json", head, "samples/a_epoch_1.json", `{"id":`, "samples/b_epoch_1.json", sample("b")}, "E/b/1"},
	} {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		w.RegisterCompressor(zstd.ZipMethodWinZip, zstd.ZipCompressor())
		for i := 0; i < len(c.members); i += 2 {
			f, err := w.CreateHeader(&zip.FileHeader{Name: c.members[i], Method: c.method})
			require.NoError(t, err)
			_, err = f.Write([]byte(c.members[i+1]))
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		got, report, err := ids(t, traj.Options{}, write(t, t.TempDir(), "x.eval", b.Bytes()))
		require.NoError(t, err, c.reason)
		require.Equal(t, c.want, got, c.reason)
		require.Equal(t, strings.Contains(c.reason, "broken"), report.Skipped == 1, c.reason)
	}
}

// TestInspectScores: words and numbers get the values that inspect's own tables give them.
func TestInspectScores(t *testing.T) {
	for value, want := range map[string]any{
		`"C"`: 1.0, `"I"`: 0.0, `"P"`: 0.5, `"N"`: 0.0, `"c"`: nil, `"Yes"`: 1.0, `"FALSE"`: 0.0, `true`: 1.0, `false`: 0.0,
		`"0.25"`: 0.25, `"1e3"`: 1000.0, `-2.5`: -2.5, `"inf"`: nil, `NaN`: nil, `"none"`: nil, `""`: nil, `{"a":1}`: nil, `[1]`: nil,
	} {
		r := one(t, "x.json", inspectLog(`{"id":1,"epoch":1,"input":"q","target":"x","messages":[],"scores":{"m":{"value":`+value+`},"n":{"value":1}}}`))
		if want == nil {
			require.Nil(t, r.Outcome.Reward, value)
			require.Equal(t, "outcome_unreadable", codes(r), value)
			continue
		}
		require.Equal(t, want, *r.Outcome.Reward, value)
		require.Empty(t, codes(r), value)
	}
}

// TestInspectOddities: unreadable content is refused or noted.
func TestInspectOddities(t *testing.T) {
	call := `{"id":"a","role":"assistant","content":[{"type":"reasoning","reasoning":"x","redacted":true},{"type":"text","text":"t"}],"tool_calls":[{"id":7,"function":"f","arguments":{},"parse_error":"no JSON"}]}`
	result := `{"role":"tool","content":"r","tool_call_id":7},{"role":"user","content":"see","tool_call_id":["p","q"]}`
	event := func(input string) string {
		return `{"event":"model","input":` + input + `,"output":{"response_id":"r1","choices":[{"message":{"id":"a"},"logprobs":{"content":[{"token":"t","logprob":-1}]}}]}}`
	}
	sample := func(more string) string {
		return inspectLog(`{"id":1,"epoch":1,"input":"q","target":"x","messages":[` + call + `,` + result + `]` + more + `}`)
	}
	r := one(t, "x.json", sample(`,"events":[`+event(`[{"role":"user","content":"q"}]`)+`,`+event("3")+`]`))
	require.NoError(t, r.Validate())
	require.Equal(t, "redacted_thinking arguments_unread logprobs_without_ids logprobs_without_ids input_missing", codes(r))
	require.Equal(t, rollout.Context{Unknown: true}, r.Turns[0].Context, "the last event of a reply holds")
	require.Equal(t, "r1", r.Turns[0].ID)
	require.Equal(t, "7 7", r.Messages[0].ToolCalls[0].ID+" "+r.Messages[1].ToolCallID, "ids that are numbers join")
	require.JSONEq(t, `["p","q"]`, string(r.Messages[2].Extra["tool_call_ids"]))
	b, err := jsonl.Append(nil, r)
	require.NoError(t, err)
	again := one(t, "x.jsonl", string(b))
	require.Equal(t, r.Messages[2], again.Messages[2])

	for more, want := range map[string]rollout.Status{
		`,"invalidation":{"reason":"leak"},"output":{"choices":[{"stop_reason":"stop"}]}`: rollout.StatusFailed,
		`,"limit":{"type":"operator"}`: rollout.StatusAborted, `,"limit":{"type":"token"}`: rollout.StatusTruncated,
	} {
		require.Equal(t, want, one(t, "x.json", sample(more)).Status, more)
	}
	for _, more := range []string{`,"events":{}`, `,"scores":"C"`, `,"events_data":{"messages":3}`} {
		_, _, err := read(t, "x.json", sample(more), stop)
		require.ErrorIs(t, err, rollout.KindFormat, more)
	}
	nameless := func(text string) string {
		return `{"epoch":1,"input":"q","target":"x","messages":[{"role":"user","content":"` + text + `"}]}`
	}
	out, _, err := read(t, "x.json", inspectLog(nameless("a"), nameless("b")), stop)
	require.NoError(t, err)
	require.NotEqual(t, out[0].Group, out[1].Group, "samples without an id are no group")
}

// TestInspectSettings: a run is rendered with the tools and template variables of its first
// turn. An earlier call of a grader does not count, and a turn with other settings has an
// unknown context.
func TestInspectSettings(t *testing.T) {
	q, a1, o1, a2 := `{"id":"q","role":"user","content":"q"}`, `{"id":"a1","role":"assistant","content":"a1","source":"generate"}`, `{"id":"o1","role":"user","content":"o"}`, `{"id":"a2","role":"assistant","content":"a2","source":"generate"}`
	event := func(reply, input, tool, config string) string {
		return `{"event":"model","input":[` + input + `],"tools":[{"name":"` + tool + `","parameters":{}}],"config":{` + config + `},"output":{"choices":[{"message":` + reply + `}]}}`
	}
	const off, on = `"temperature":0.5,"extra_body":{"chat_template_kwargs":{"enable_thinking":false}}`, `"temperature":0.5,"extra_body":{"chat_template_kwargs":{"enable_thinking":true}}`
	for _, c := range []struct {
		reason, first, tool, config, note string
	}{
		{"the same", ``, "f", off, ""},
		{"other variables", ``, "f", on, "template_kwargs_differ"},
		{"none", ``, "f", ``, "template_kwargs_differ sampling_differs"},
		{"other tools", ``, "g", off, "tools_differ"},
		{"a grader before", event(`{"id":"x","role":"assistant","content":"C"}`, q, "grade", on) + `,`, "f", off, ""},
	} {
		r := one(t, "x.json", inspectLog(`{"id":"s","epoch":1,"input":"q","target":"x","messages":[`+q+`,`+a1+`,`+o1+`,`+a2+`],"events":[`+
			c.first+event(a1, q, "f", off)+`,`+event(a2, q+`,`+a1+`,`+o1, c.tool, c.config)+`]}`))
		require.NoError(t, r.Validate(), c.reason)
		require.Equal(t, `false`, string(r.TemplateKwargs["enable_thinking"]), c.reason)
		require.Equal(t, float32(0.5), *r.TemperatureAt(0), c.reason)
		require.Contains(t, string(r.Tools[0]), `"f"`, c.reason)
		require.False(t, r.Turns[0].Context.Unknown, c.reason)
		require.Equal(t, c.note != "", r.Turns[1].Context.Unknown, c.reason)
		require.Equal(t, c.note, codes(r), c.reason)
	}
}

// TestInspectChangedReplies: the react agent removes the submit call and the reasoning from
// the last message and adds the answer to it; the event of the call has what was sampled.
func TestInspectChangedReplies(t *testing.T) {
	submit := `"tool_calls":[{"id":"c","function":"submit","arguments":{"answer":"42"}}]`
	thinking := `{"type":"reasoning","reasoning":"hm"}`
	text := func(s string) string { return `{"type":"text","text":"` + s + `"}` }
	reply := func(content, calls string) string {
		return `{"id":"a","role":"assistant","source":"generate","content":` + content + calls + `}`
	}
	for _, c := range []struct{ reason, recorded, event, content, reasoning, notes string }{
		{"a text, the event the same object", reply(`"so\n\n42"`, ``), reply(`"so\n\n42"`, `,`+submit), "so", "", "reply_changed"},
		{"a text of nothing but the answer", reply(`"42"`, ``), reply(`"42"`, `,`+submit), "", "", "reply_changed"},
		{"a text, the event a copy", reply(`"so 42\n\n42"`, ``), reply(`"so 42"`, `,`+submit), "so 42", "", "reply_changed"},
		{"parts", reply(`[`+text("so")+`,`+text("42")+`]`, ``), reply(`[`+thinking+`,`+text("so")+`,`+text("42")+`]`, `,`+submit), "so", "hm", "reply_changed"},
		{"an agent that keeps its submit call", reply(`"so 42"`, `,`+submit), reply(`"so 42"`, `,`+submit), "so 42", "", ""},
	} {
		sample := `{"id":"s","epoch":1,"input":"q","target":"x","messages":[{"id":"q","role":"user","content":"q"},` + c.recorded + `],` +
			`"output":{"choices":[{"message":` + c.event + `,"stop_reason":"tool_calls"}]},"scores":{"m":{"value":1}},` +
			`"events":[{"event":"model","input":[],"output":{"choices":[{"message":` + c.event + `,"stop_reason":"tool_calls"}]}}]}`
		r := one(t, "x.json", inspectLog(sample))
		require.NoError(t, r.Validate(), c.reason)
		require.Equal(t, c.content, r.Messages[1].Content, c.reason)
		require.Equal(t, c.reasoning, r.Messages[1].Reasoning, c.reason)
		require.Equal(t, "submit", r.Messages[1].ToolCalls[0].Name, c.reason)
		require.Equal(t, c.notes, codes(r), c.reason)
		require.Equal(t, rollout.StatusCompleted, r.Status, c.reason)
	}
}
