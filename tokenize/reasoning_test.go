package tokenize_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/certify"
)

// A template that reads the key reasoning only gives the rows that it would give with
// reasoning_content.
func TestReasoningByItsShortName(t *testing.T) {
	kit.OneGoroutine(t)
	source, err := os.ReadFile(filepath.Join(kit.Templates(t), "qwen3.jinja"))
	require.NoError(t, err)
	r := &rollout.Rollout{ID: "r", Tools: bashTool, Messages: []rollout.Message{
		{Role: rollout.RoleUser, Content: "one"}, reply("I look.", "", call("call00001", `{"command": "ls"}`)),
		{Role: rollout.RoleTool, ToolCallID: "call00001", Content: "a.txt"}, reply("It is there.", "done"),
		{Role: rollout.RoleUser, Content: "two"}, reply("I think again.", "bye"),
	}}
	rows := func(template string, mode tokenize.Mode) ([]rollout.Sequence, tokenize.Report) {
		enc, err := tokenize.NewEncoder(withTemplate(t, template), tokenize.Options{Mode: mode})
		require.NoError(t, err)
		seqs, report, err := enc.Encode(t.Context(), r)
		require.NoError(t, err)
		for i := range seqs {
			seqs[i].Template = ""
		}
		return seqs, report
	}
	for _, read := range []string{"message.reasoning", "message. reasoning", "message['reasoning']", `message.get("reasoning")`} {
		template := strings.ReplaceAll(string(source), "message.reasoning_content", read)
		require.NotContains(t, template, "reasoning_content is string")
		for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep, tokenize.Whole} {
			want, report := rows(string(source), mode)
			got, same := rows(template, mode)
			require.Equal(t, want, got, "%s %s", read, mode)
			require.Equal(t, report, same)
		}
		cert, err := certify.Model(t.Context(), withTemplate(t, template))
		require.NoError(t, err)
		require.Equal(t, certify.Holds, cert.Verdict("reasoning_written"), read)
	}
}

// A template that prints a whole message prints the keys of transformers, unless it reads the key
// reasoning.
func TestShortNameIsForThoseThatReadIt(t *testing.T) {
	r := &rollout.Rollout{ID: "r", Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "one"}, reply("so", "done"), {Role: rollout.RoleUser, Content: "two"}, reply("", "three")}}
	r.Messages[1].Sampled = rollout.SampledDemonstration
	for _, row := range []struct {
		template string
		reads    bool
	}{
		{`{{ messages[:3] | tojson }}`, false},
		{`{% if messages[1].reasoning_content %}{% endif %}{# their reasoning, "so-called" #}{{ messages[:3] | tojson }}`, false},
		{`{% if messages[1].reasoning %}{% endif %}{{ messages[:3] | tojson }}`, true},
	} {
		enc, err := tokenize.NewEncoder(withTemplate(t, "{% if messages|length > 3 %}"+row.template+"{% endif %}"+chatML), tokenize.Options{Mode: tokenize.Whole})
		require.NoError(t, err)
		seqs, _, err := enc.Encode(t.Context(), r)
		require.NoError(t, err)
		text := decode(t, embeddedModel(t), seqs[0].IDs)
		require.Contains(t, text, `"reasoning_content": "so"`)
		require.Equal(t, row.reads, strings.Contains(text, `"reasoning": "so"`), row.template)
	}
}
