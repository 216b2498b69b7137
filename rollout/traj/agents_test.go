package traj_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// claude is a record of a session of Claude Code: kind, uuid, parent and the rest.
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

// contexts are the messages that each turn saw, ? where that is not known.
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

func TestClaudeCodeSessions(t *testing.T) {
	text := lines(
		`{"type":"file-history-snapshot","messageId":"m","snapshot":{},"isSnapshotUpdate":false}`,
		claude("user", "u1", "", said("user", `"q"`)),
		claude("attachment", "t1", "u1", `"attachment":{"type":"todo_reminder"}`),
		// One response in three records, with calls in parallel: the result of the
		// first hangs on its record.
		claude("assistant", "a1", "t1", reply("m1", `{"type":"thinking","thinking":"hm","signature":"x"}`, "null")),
		claude("assistant", "a2", "a1", reply("m1", use("c1"), "null")),
		claude("user", "r1", "a2", result("c1")),
		claude("assistant", "a3", "a2", reply("m1", use("c2"), `"tool_use"`)),
		claude("assistant", "a3", "a2", reply("m1", use("c2"), `"tool_use"`)),
		claude("user", "r2", "a3", result("c2")),
		claude("assistant", "a4", "r2", reply("m2", `{"type":"text","text":"first answer"}`, `"end_turn"`)),
		// Taken back, and asked otherwise.
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

// A compaction may keep records, which come after its summary.
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

func TestClaudeCodeFaults(t *testing.T) {
	u, a := claude("user", "u1", "", said("user", `"q"`)), claude("assistant", "a1", "u1", reply("m1", `{"type":"text","text":"a"}`, `"end_turn"`))
	// The parent is in another file.
	r := one(t, "s.jsonl", lines(u, a, claude("user", "u2", "gone", said("user", `"r"`)), claude("assistant", "a2", "u2", reply("m2", `{"type":"text","text":"b"}`, `"end_turn"`))))
	require.Equal(t, "0; ?", contexts(r))
	require.Contains(t, codes(r), "context_lost")
	// Thinking that is hidden, and nothing else: no reply to train.
	r = one(t, "s.jsonl", lines(u, claude("assistant", "a1", "u1", reply("m1", `{"type":"thinking","thinking":"","signature":"x"}`, "null"))))
	require.Empty(t, r.Turns)
	require.Contains(t, codes(r), "redacted_thinking reply_not_recorded")
	// Qwen Code keeps its messages as parts.
	_, _, err := read(t, "s.jsonl", lines(claude("user", "u1", "", `"message":{"role":"user","parts":[{"text":"q"}]}`)), stop)
	require.ErrorContains(t, err, `the message has no content: an object with keys "role", "parts"`)
	// A record that is not understood and shows something.
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
	// Without its prompt, as the flag prints by default.
	r := one(t, "s.jsonl", lines(line("assistant", reply("m1", `{"type":"text","text":"a"}`, `"end_turn"`))))
	require.True(t, r.Turns[0].Context.Unknown)
	require.Contains(t, codes(r), "prompt_not_recorded")
	_ = traj.Options{}
}
