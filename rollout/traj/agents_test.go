package traj_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// claude returns a record of a Claude Code session.
func claude(kind, uuid, parent, rest string) string {
	p := `"` + parent + `"`
	if parent == "" {
		p = "null"
	}
	return fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"sessionId":"s","version":"2","type":%q,"uuid":%q,%s}`, p, kind, uuid, rest)
}

func said(role, content string) string {
	return fmt.Sprintf(`"message":{"role":%q,"content":%s}`, role, content)
}

func reply(id, block, stop string) string {
	return fmt.Sprintf(`"message":{"id":%q,"model":"claude-x","role":"assistant","content":[%s],"stop_reason":%s}`, id, block, stop)
}

func use(id string) string {
	return `{"type":"tool_use","id":"` + id + `","name":"Bash","input":{"command":"ls"}}`
}
func result(id string) string {
	return said("user", `[{"type":"tool_result","tool_use_id":"`+id+`","content":"out of `+id+`"}]`)
}

// contexts lists, for each turn, the messages that it saw, or ? where that is unknown.
func contexts(r *rollout.Rollout) string {
	var out []string
	for i := range r.Turns {
		t := &r.Turns[i]
		if t.Context.Unknown {
			out = append(out, "?")
			continue
		}
		parts := t.Context.Parts
		if parts == nil {
			parts = []rollout.ContextPart{{To: t.Message}}
		}
		var saw []string
		for _, p := range parts {
			for k := p.From; k < p.To; k++ {
				saw = append(saw, fmt.Sprint(k))
			}
		}
		out = append(out, strings.Join(saw, " "))
	}
	return strings.Join(out, "; ")
}

func lines(list ...string) string { return strings.Join(list, "\n") + "\n" }

// claudeSession has a reply in three records, a rewind, an interruption, a compaction and a
// sub-agent.
var claudeSession = lines(
	`{"type":"file-history-snapshot","messageId":"m","snapshot":{},"isSnapshotUpdate":false}`,
	claude("user", "u1", "", said("user", `"q"`)),
	claude("attachment", "t1", "u1", `"attachment":{"type":"todo_reminder"}`),
	// One response in three records, with parallel calls: the parent of the first result is
	// its call's record.
	claude("assistant", "a1", "t1", reply("m1", `{"type":"thinking","thinking":"hm","signature":"x"}`, "null")),
	claude("assistant", "a2", "a1", reply("m1", use("c1"), "null")),
	claude("user", "r1", "a2", result("c1")),
	claude("assistant", "a3", "a2", reply("m1", use("c2"), `"tool_use"`)),
	claude("assistant", "a3", "a2", reply("m1", use("c2"), `"tool_use"`)),
	claude("user", "r2", "a3", result("c2")),
	claude("assistant", "a4", "r2", reply("m2", `{"type":"text","text":"first answer"}`, `"end_turn"`)),
	// The prompt was taken back and asked differently.
	claude("user", "u2", "r2", said("user", `"again"`)),
	claude("assistant", "e1", "u2", `"isApiErrorMessage":true,"message":{"id":"e","model":"<synthetic>","role":"assistant","content":[{"type":"text","text":"API Error"}]}`),
	claude("assistant", "a5", "e1", reply("m3", `{"type":"text","text":"half an ans"}`, "null")),
	claude("user", "u3", "a5", said("user", `[{"type":"text","text":"[Request interrupted by user]"}]`)),
	claude("system", "b1", "", `"subtype":"compact_boundary","logicalParentUuid":"u3","compactMetadata":{"trigger":"auto","preTokens":9}`),
	claude("user", "u4", "b1", said("user", `"the summary"`)+`,"isCompactSummary":true,"isVisibleInTranscriptOnly":true`),
	claude("user", "u5", "u4", said("user", `"go on"`)),
	claude("assistant", "a6", "u5", reply("m4", `{"type":"text","text":"bye"}`, `"end_turn"`)),
	strings.Replace(claude("user", "k1", "", said("user", `"task"`)), `"isSidechain":false`, `"isSidechain":true`, 1),
	strings.Replace(claude("assistant", "k2", "k1", reply("k", `{"type":"text","text":"done"}`, `"end_turn"`)), `"isSidechain":false`, `"isSidechain":true`, 1),
)

func TestClaudeCodeSessions(t *testing.T) {
	text := claudeSession
	out, report, err := read(t, "s.jsonl", text, stop)
	require.NoError(t, err)
	require.Len(t, out, 2)
	require.Zero(t, report.Skipped)
	r := out[0]
	require.NoError(t, r.Validate())
	require.Equal(t, "claude-code", r.Origin.Format)
	require.Equal(t, "s", r.ID)
	require.Equal(t, "user assistant tool tool assistant user assistant user user user assistant", roles(r))
	require.Equal(t, "0; 0 1 2 3; 0 1 2 3 5; 8 9", contexts(r))
	require.Equal(t, "hm", r.Messages[1].Reasoning)
	require.Len(t, r.Messages[1].ToolCalls, 2)
	require.Equal(t, "tool_use", r.Turns[0].FinishReason)
	require.Equal(t, "the user interrupted the reply", r.Turns[2].Incomplete)
	require.Equal(t, `"claude-x"`, string(r.Metadata["model"]))
	require.Equal(t, "incomplete system_not_recorded tools_not_recorded attachments_not_shown", codes(r))
	require.Equal(t, "s/k1", out[1].ID)
	require.Equal(t, "user assistant", roles(out[1]))
	require.Equal(t, `"s"`, string(out[1].Metadata["parent_session"]))
}

// A record whose blocks cannot be read takes nothing else of the session with it, and the
// reply that it is a part of is never trained.
func TestClaudeCodeDamagedReplies(t *testing.T) {
	text := `{"type":"text","text":"a"}`
	for name, c := range map[string]struct{ first, second, said, incomplete string }{
		"the only record":      {reply("m1", text+`,7`, `"end_turn"`), claude("assistant", "a2", "a1", reply("m2", text, `"end_turn"`)), "user:q\nassistant:a\nassistant:a", "m1"},
		"nothing of it":        {reply("m1", `7`, `"end_turn"`), claude("assistant", "a2", "a1", reply("m2", text, `"end_turn"`)), "user:q\nassistant:\nassistant:a", ""},
		"the first of two":     {reply("m1", `7`, "null"), claude("assistant", "a2", "a1", reply("m1", use("c"), `"tool_use"`)), "user:q\nassistant: c=Bash({\"command\":\"ls\"})", "m1"},
		"the second of two":    {reply("m1", text, "null"), claude("assistant", "a2", "a1", reply("m1", `"x"`, `"tool_use"`)), "user:q\nassistant:a", "m1"},
		"a second without any": {reply("m1", text, "null"), claude("assistant", "a2", "a1", `"message":{"id":"m1","role":"assistant"}`), "user:q\nassistant:a", "m1"},
	} {
		out, report, err := read(t, "s.jsonl", lines(claude("user", "u1", "", said("user", `"q"`)), claude("assistant", "a1", "u1", c.first), c.second), traj.Options{})
		require.NoError(t, err, name)
		require.Len(t, out, 1, name)
		require.Equal(t, uint64(1), uint64(report.Skipped), name)
		require.Equal(t, c.said, saidAll(out[0]), name)
		for i := range out[0].Turns {
			require.Equal(t, out[0].Turns[i].ID == c.incomplete, out[0].Turns[i].Incomplete != "", name)
		}
	}
}

// A compaction may keep records, which follow its summary.
func TestClaudeCodeKeepsRecords(t *testing.T) {
	for name, c := range map[string]struct{ meta, parent string }{
		"listed, linked anew": {`"preservedMessages":{"anchorUuid":"cs","uuids":["u2","a2"]}`, "cs"},
		"head and tail":       {`"preservedSegment":{"headUuid":"u2","anchorUuid":"cs","tailUuid":"a2"}`, "a1"},
	} {
		text := lines(
			claude("user", "u1", "", said("user", `"q"`)), claude("assistant", "a1", "u1", reply("m1", `{"type":"text","text":"a"}`, `"end_turn"`)),
			claude("user", "u2", c.parent, said("user", `"r"`)), claude("assistant", "a2", "u2", reply("m2", `{"type":"text","text":"b"}`, `"end_turn"`)),
			claude("system", "cb", "", `"subtype":"compact_boundary","compactMetadata":{`+c.meta+`}`),
			claude("user", "cs", "cb", said("user", `"sum"`)+`,"isCompactSummary":true`),
			claude("user", "u3", "a2", said("user", `"s"`)), claude("assistant", "a3", "u3", reply("m3", `{"type":"text","text":"c"}`, `"end_turn"`)))
		r := one(t, "s.jsonl", text)
		require.NoError(t, r.Validate(), name)
		require.True(t, strings.HasSuffix(contexts(r), "; 4 2 3 5"), "%s: %s", name, contexts(r))
	}
}

// Replies after /clear did not see what it cleared, although the records continue from it.
func TestClaudeCodeBeginsAnewAfterClear(t *testing.T) {
	r := one(t, "s.jsonl", lines(
		claude("user", "u1", "", said("user", `"q"`)), claude("assistant", "a1", "u1", reply("m1", `{"type":"text","text":"a"}`, `"end_turn"`)),
		claude("user", "c", "a1", said("user", `"<command-name>/clear</command-name>\n<command-args></command-args>"`)),
		claude("user", "u2", "c", said("user", `"r"`)), claude("assistant", "a2", "u2", reply("m2", `{"type":"text","text":"b"}`, `"end_turn"`))))
	require.NoError(t, r.Validate())
	require.Equal(t, "0; 2 3", contexts(r))
}

func TestClaudeCodeFaults(t *testing.T) {
	u, a := claude("user", "u1", "", said("user", `"q"`)), claude("assistant", "a1", "u1", reply("m1", `{"type":"text","text":"a"}`, `"end_turn"`))
	// The parent is in another file.
	r := one(t, "s.jsonl", lines(u, a, claude("user", "u2", "gone", said("user", `"r"`)), claude("assistant", "a2", "u2", reply("m2", `{"type":"text","text":"b"}`, `"end_turn"`))))
	require.Equal(t, "0; ?", contexts(r))
	require.Contains(t, codes(r), "context_lost")
	// A reply with nothing but hidden thinking is not trained.
	r = one(t, "s.jsonl", lines(u, claude("assistant", "a1", "u1", reply("m1", `{"type":"thinking","thinking":"","signature":"x"}`, "null"))))
	require.Empty(t, r.Turns)
	require.Contains(t, codes(r), "redacted_thinking reply_not_recorded")
	// A record of unknown kind that has content.
	r = one(t, "s.jsonl", lines(u, a, claude("novelty", "n", "a1", said("user", `"x"`)), claude("assistant", "a2", "n", reply("m2", `{"type":"text","text":"b"}`, `"end_turn"`))))
	require.Equal(t, "0; ?", contexts(r))
}

func TestClaudeCodeStream(t *testing.T) {
	line := func(kind, rest string) string {
		return `{"type":"` + kind + `","session_id":"z","uuid":"` + fmt.Sprint(len(rest)) + `",` + rest + `}`
	}
	text := lines(
		line("system", `"subtype":"init","model":"claude-x","tools":["Bash"],"cwd":"/"`),
		line("user", said("user", `"q"`)+`,"parent_tool_use_id":null`),
		line("assistant", reply("m1", use("c1"), "null")+`,"parent_tool_use_id":null`),
		line("user", said("user", `"task"`)+`,"parent_tool_use_id":"c1"`),
		line("assistant", reply("k1", `{"type":"text","text":"sub"}`, "null")+`,"parent_tool_use_id":"c1"`),
		line("user", result("c1")+`,"parent_tool_use_id":null,"n":1`),
		line("assistant", reply("m2", `{"type":"text","text":"the answer"}`, "null")+`,"parent_tool_use_id":null`),
		line("result", `"subtype":"error_max_turns","num_turns":2,"is_error":false`))
	out, _, err := read(t, "s.jsonl", text, stop)
	require.NoError(t, err)
	require.Len(t, out, 2)
	require.Equal(t, "user assistant tool assistant", roles(out[0]))
	require.Equal(t, "0; 0 1 2", contexts(out[0]))
	require.Equal(t, rollout.StatusTruncated, out[0].Status)
	require.Equal(t, "z/c1", out[1].ID)
	list := "[" + strings.ReplaceAll(strings.TrimSpace(text), "\n", ",") + "]" // --output-format json --verbose
	again, _, err := read(t, "s.json", list, stop)
	require.NoError(t, err)
	require.Equal(t, contexts(out[0]), contexts(again[0]))
	// Without the prompt, which the flag omits by default.
	r := one(t, "s.jsonl", lines(line("assistant", reply("m1", `{"type":"text","text":"a"}`, `"end_turn"`))))
	require.True(t, r.Turns[0].Context.Unknown)
	require.Contains(t, codes(r), "prompt_not_recorded")
}

// codexLine returns a line of a Codex rollout, written the given number of seconds after
// its start.
func codexLine(second int, kind, payload string) string {
	return fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:%02d.500Z","type":%q,"payload":{%s}}`, second, kind, payload)
}

func codexSaid(second int, role, text string) string {
	kind := "input_text"
	if role == "assistant" {
		kind = "output_text"
	}
	return codexLine(second, "response_item", fmt.Sprintf(`"type":"message","role":%q,"content":[{"type":%q,"text":%q}]`, role, kind, text))
}

func codexMeta(rest string) string {
	return codexLine(0, "session_meta", `"id":"c","timestamp":"2026-01-01T00:00:00.500Z","cwd":"/w","cli_version":"0.1","base_instructions":{"text":"You are Codex"}`+rest)
}

const codexCount = `"type":"token_count","info":{"last_token_usage":{"input_tokens":5}}`

func item(second int, payload string) string { return codexLine(second, "response_item", payload) }

// codexSession has parallel calls, two messages in one reply, a turn taken back,
// compactions and an abort.
var codexSession = lines(
	codexMeta(""),
	codexSaid(1, "developer", "<permissions instructions>"),
	codexSaid(1, "user", "q1"),
	codexLine(1, "event_msg", `"type":"user_message","message":"q1"`),
	codexLine(2, "turn_context", `"model":"gpt-x","effort":"high"`),
	item(3, `"type":"reasoning","summary":[{"type":"summary_text","text":"short"}],"encrypted_content":"x"`),
	codexSaid(3, "assistant", "I look."),
	item(3, `"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"f1"`),
	item(3, `"type":"custom_tool_call","name":"apply_patch","input":"*** Begin","call_id":"f2"`),
	codexLine(4, "token_usage_record", `"response_id":"resp_1","usage":{}`),
	codexLine(4, "event_msg", codexCount),
	item(4, `"type":"function_call_output","call_id":"f1","output":"a.go"`),
	item(4, `"type":"custom_tool_call_output","call_id":"f2","output":[{"type":"input_text","text":"Done"}]`),
	// Two messages of one reply, and the thinking text of an open model.
	codexLine(5, "event_msg", `"type":"agent_reasoning_raw_content","text":"thinking"`),
	item(5, `"type":"reasoning","summary":[]`),
	codexSaid(5, "assistant", "First. "),
	codexSaid(5, "assistant", "Done."),
	codexLine(5, "event_msg", codexCount),
	codexLine(5, "event_msg", `"type":"task_complete"`),
	codexLine(6, "event_msg", `"type":"user_message","message":"wrong way"`),
	codexSaid(6, "user", "wrong way"),
	codexSaid(7, "assistant", "no"),
	codexLine(7, "event_msg", codexCount),
	codexLine(8, "event_msg", `"type":"thread_rolled_back","num_turns":1`),
	codexSaid(9, "user", "q2"),
	codexSaid(10, "assistant", "yes"),
	codexLine(10, "event_msg", codexCount),
	codexLine(11, "compacted", `"message":"sum","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"sum"}]}]`),
	codexSaid(12, "assistant", "after"),
	codexLine(12, "event_msg", codexCount),
	item(13, `"type":"reasoning","summary":[],"encrypted_content":"x"`),
	codexLine(13, "event_msg", `"type":"turn_aborted","reason":"interrupted"`),
	codexLine(14, "compacted", `"message":"old"`),
	codexSaid(15, "assistant", "unknown"),
)

func TestCodexRollouts(t *testing.T) {
	r := one(t, "rollout-1.jsonl", codexSession)
	require.NoError(t, r.Validate())
	require.Equal(t, "codex", r.Origin.Format)
	require.Equal(t, "c", r.ID)
	require.Equal(t, "system developer user assistant tool tool assistant user assistant user assistant user assistant assistant user assistant", roles(r))
	require.Equal(t, "0 1 2; 0 1 2 3 4 5; 0 1 2 3 4 5 6 7; 0 1 2 3 4 5 6 9; 0 11; ?", contexts(r))
	require.Equal(t, "I look.", r.Messages[3].Content)
	require.Empty(t, r.Messages[3].Reasoning)
	require.Equal(t, `"short"`, string(r.Messages[3].Extra["reasoning_summary"]))
	require.Len(t, r.Messages[3].ToolCalls, 2)
	require.Equal(t, "*** Begin", r.Messages[3].ToolCalls[1].Arguments)
	require.Equal(t, "thinking", r.Messages[6].Reasoning)
	require.Equal(t, "First. Done.", r.Messages[6].Content)
	require.Equal(t, rollout.SampledUnknown, r.Messages[13].Sampled)
	require.Equal(t, rollout.StatusAborted, r.Status)
	require.Equal(t, `"high"`, string(r.TemplateKwargs["reasoning_effort"]))
	require.Contains(t, codes(r), "context_lost")
}

func TestCodexForksAndFirstFiles(t *testing.T) {
	r := one(t, "rollout-2.jsonl", lines(
		codexMeta(`,"forked_from_id":"p"`),
		codexLine(0, "session_meta", `"id":"p"`), codexSaid(0, "user", "q"), codexSaid(0, "assistant", "copied"), codexSaid(5, "user", "r"), codexSaid(6, "assistant", "own")))
	require.Equal(t, "copied_context sampled", reasons(r))
	require.Equal(t, "0 1 2 3", contexts(r))
	r = one(t, "rollout-3.jsonl", lines(`{"id":"old","timestamp":"2025-07-01T00:00:00Z","instructions":null}`, `{"record_type":"state"}`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"q"}]}`,
		`{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}`,
		`{"type":"function_call","name":"shell","arguments":"{}","call_id":"a"}`,
		`{"type":"function_call_output","call_id":"a","output":{"content":"out","success":false}}`,
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"one"}]}`))
	require.NoError(t, r.Validate())
	require.Equal(t, "user assistant tool assistant", roles(r))
	require.Equal(t, "out", r.Messages[2].Content)
	require.Equal(t, "hm", r.Messages[1].Reasoning)
	require.Equal(t, "system_not_recorded tools_not_recorded", codes(r))
	_, _, err := read(t, "rollout-4.jsonl", lines(codexMeta(""), codexLine(1, "response_item", `"type":"message","role":"assistant","parts":[]`)), stop)
	require.ErrorContains(t, err, "the reply has no content")
}

func TestCodexExec(t *testing.T) {
	r := one(t, "x.jsonl", lines(`{"type":"thread.started","thread_id":"t"}`, `{"type":"turn.started"}`,
		`{"type":"item.completed","item":{"id":"i0","type":"reasoning","text":"hm"}}`,
		`{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"ls","status":"in_progress"}}`,
		`{"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"ls","aggregated_output":"a.go","exit_code":0,"status":"completed"}}`,
		`{"type":"item.completed","item":{"id":"i2","type":"agent_message","text":"done"}}`, `{"type":"turn.completed","usage":{}}`))
	require.NoError(t, r.Validate())
	require.Equal(t, "assistant tool assistant", roles(r))
	require.Equal(t, "unknown unknown", reasons(r))
	require.Empty(t, r.Turns)
	require.Equal(t, "replies_not_recorded", codes(r))
}

// In sessions of any shape, a reply saw the chain of its ancestor records, and those
// results of calls in the chain that existed by then.
func TestClaudeCodeContextsOfRandomSessions(t *testing.T) {
	kit.OneGoroutine(t)
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		type rec struct {
			parent, message int // -1 = none
		}
		var recs []rec
		var text, want []string
		messages, first := 0, []int{} // first record of each reply
		answered := map[int]int{}     // message with the call → message with its result
		add := func(kind string, parent int, rest string, message int) {
			p := ""
			if parent >= 0 {
				p = fmt.Sprint("n", parent)
			}
			text = append(text, claude(kind, fmt.Sprint("n", len(recs)), p, rest))
			recs = append(recs, rec{parent, message})
		}
		saw := func(n, at int) string {
			var chain []int
			for ; n >= 0; n = recs[n].parent {
				if m := recs[n].message; m >= 0 && m != at && !slices.Contains(chain, m) {
					chain = append(chain, m)
				}
			}
			slices.Reverse(chain)
			var out []string
			done := map[int]bool{}
			put := func(m int) {
				if !done[m] {
					done[m] = true
					out = append(out, fmt.Sprint(m))
				}
			}
			for _, m := range chain {
				put(m)
				if a, ok := answered[m]; ok && !slices.Contains(chain, a) {
					put(a)
				}
			}
			return strings.Join(out, " ")
		}
		add("user", -1, said("user", `"q"`), 0)
		messages = 1
		for range 30 {
			parent := len(recs) - 1
			if rnd.IntN(4) == 0 {
				parent = rnd.IntN(len(recs)) // a rewind
			}
			switch rnd.IntN(4) {
			case 0:
				add("user", parent, said("user", `"more"`), messages)
				messages++
			case 1:
				add("progress", parent, `"data":{}`, -1)
			default:
				at, id := messages, fmt.Sprint("m", messages)
				want = append(want, saw(parent, at))
				first = append(first, len(recs))
				add("assistant", parent, reply(id, `{"type":"text","text":"`+id+`"}`, "null"), at)
				messages++
				if rnd.IntN(2) == 0 {
					line := len(recs) - 1
					add("assistant", line, reply(id, use("c"+id), "null"), at)
					// The parent of the result is either record of the reply.
					add("user", line+rnd.IntN(2), result("c"+id), messages)
					answered[at] = messages
					messages++
				}
			}
		}
		r := one(t, "s.jsonl", lines(text...))
		require.NoError(t, r.Validate(), "seed %d", seed)
		require.Len(t, r.Turns, len(first))
		require.Equal(t, want, strings.Split(contexts(r), "; "), "seed %d", seed)
	}
}

// A compaction starts a new context, whichever record is its parent.
func TestClaudeCodeCompactionInTheChain(t *testing.T) {
	out, _, err := read(t, "s.jsonl", lines(
		claude("user", "u1", "", said("user", `"q"`)),
		claude("assistant", "a1", "u1", reply("m1", `{"type":"text","text":"a1"}`, `"end_turn"`)),
		claude("system", "b1", "a1", `"subtype":"compact_boundary","compactMetadata":{"trigger":"auto"}`),
		claude("user", "u2", "b1", said("user", `"the summary"`)+`,"isCompactSummary":true`),
		claude("assistant", "a2", "u2", reply("m2", `{"type":"text","text":"a2"}`, `"end_turn"`)),
	), stop)
	require.NoError(t, err)
	require.Equal(t, "0; 2", contexts(out[0]))
}
