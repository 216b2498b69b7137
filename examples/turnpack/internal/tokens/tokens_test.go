package tokens_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/turnpack/internal/tokens"
	"github.com/turnpack/turnpack/export/audit"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/internal/modelfolder"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/engine"
)

func encode(t *testing.T, m *tokenize.Model, text string) []rollout.TokenID {
	t.Helper()
	var e engine.Encoding
	require.NoError(t, m.Tokenizer.Encode(&e, text, engine.EncodeOptions{}))
	return e.IDs
}

// Control tokens and headers between the channels of a gpt-oss reply are no findings;
// those that open the reply are.
func TestFactsKnowTheMarksOfReplies(t *testing.T) {
	folder := fstest.MapFS{"tokenizer.json": {Data: kit.Tokenizer(t, "gptoss")}, "chat_template.jinja": {Data: []byte(kit.TemplateSource(t, "gptoss"))},
		"tokenizer_config.json": {Data: []byte(`{"eos_token": "<|return|>"}`)}}
	m, err := tokenize.Load(".", tokenize.LoadOptions{FS: folder})
	require.NoError(t, err)
	facts, err := tokens.Facts(t.Context(), m)
	require.NoError(t, err)
	prompt := encode(t, m, "<|start|>user<|message|>Go.<|end|><|start|>assistant")
	reply := encode(t, m, "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Done.<|return|>")
	for early, want := range map[int][]string{0: nil, 2: {"header-trained"}} {
		row := map[string]any{"input_ids": append(prompt[:len(prompt):len(prompt)], reply...), "loss_mask": append(make([]int, len(prompt)-early), slices.Repeat([]int{1}, len(reply)+early)...)}
		line, err := json.Marshal(row)
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "rows.jsonl")
		require.NoError(t, os.WriteFile(path, line, 0o600))
		r, err := audit.Run(t.Context(), []string{path}, audit.Options{Model: facts})
		require.NoError(t, err)
		var got []string
		for _, g := range r.Findings {
			got = append(got, g.Rule)
		}
		require.Equal(t, want, got)
	}
}

// The bytes of the tokens of a text join to the text, even if a token holds part of a
// character.
func TestBytes(t *testing.T) {
	m, err := tokens.ModelOf("", "", "")
	require.NoError(t, err)
	s := tokens.NewSpeller(m.Tokenizer)
	for _, text := range []string{"plain", " leading blank", "naïve 漢字 🙂 \u202e\x00\ufffd", "<|im_start|>user\nx<|im_end|>", strings.Repeat("é", 40)} {
		var got []byte
		for _, id := range encode(t, m, text) {
			b, ok := s.Bytes(id)
			require.True(t, ok)
			got = append(got, b...)
		}
		require.Equal(t, text, string(got))
	}
	for _, id := range []rollout.TokenID{-1, 1 << 30} {
		_, ok := s.Bytes(id)
		require.False(t, ok, "id %d is no token", id)
	}
}

func TestModelOfOther(t *testing.T) {
	_, err := tokens.ModelOf("", "", "sha256:00")
	require.ErrorIs(t, err, rollout.KindInput)
	_, err = tokens.ModelOf(t.TempDir(), "", "")
	require.Error(t, err)
	_, err = tokens.ModelOf("", "tool_use", "")
	require.ErrorContains(t, err, "--model", "a template is of a folder")
}

// A template is named, or a file replaces the templates of the folder.
func TestLoadTemplate(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	write := func(dir, name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "tokenize", "embedded", "tokenizer.json"))
	require.NoError(t, err)
	write(dir, "tokenizer.json", string(b))
	write(dir, "additional_chat_templates/tool_use.jinja", "tools")
	write(dir, "additional_chat_templates/rag.jinja", "rag")
	t.Chdir(elsewhere)
	write(elsewhere, "rag", "a file that nobody means")
	for _, row := range []struct{ template, prompt, fail string }{
		{"rag", "rag", ""},
		{"./rag", "a file that nobody means", ""},
		{write(elsewhere, "own.jinja", "own"), "own", ""},
		{"own.jinja", "own", ""},
		{"plan", "", `no chat template is named "plan" (take one of rag, tool_use)`},
		{"plan.jinja", "", "plan.jinja: there is no such chat template (name a file"},
		{write(elsewhere, "none.jinja", ""), "", "none.jinja: the chat template is empty"},
		{write(elsewhere, "bad.jinja", "x\n{% y"), "", "bad.jinja:2:"},
		{"./", "", "cannot be read"},
	} {
		m, err := modelfolder.Load(dir, row.template, "")
		if row.fail != "" {
			require.ErrorContains(t, err, row.fail, row.template)
			continue
		}
		require.NoError(t, err, row.template)
		require.Equal(t, row.prompt, m.Template.Source())
	}
}

// withSpecials returns the embedded model with other added tokens. All are special except
// those of tool calls and results; the first ends completions.
func withSpecials(t *testing.T, names ...string) *tokenize.Model {
	t.Helper()
	dir, from := t.TempDir(), filepath.Join("..", "..", "..", "..", "tokenize", "embedded")
	b, err := os.ReadFile(filepath.Join(from, "tokenizer.json"))
	require.NoError(t, err)
	var def map[string]any
	require.NoError(t, json.Unmarshal(b, &def))
	var added []any
	for i, n := range names {
		added = append(added, map[string]any{"id": 10_000 + i, "content": n, "special": !strings.Contains(n, "tool"), "lstrip": false, "rstrip": false, "single_word": false, "normalized": false})
	}
	def["added_tokens"] = added
	b, err = json.Marshal(def)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), b, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), fmt.Appendf(nil, `{"eos_token": %q}`, names[0]), 0o644))
	m, err := tokenize.Load(dir, tokenize.LoadOptions{})
	require.NoError(t, err)
	return m
}

// row returns a row that does not record sources.
func row(ids []rollout.TokenID) *rollout.Sample {
	s := &rollout.Sample{}
	s.IDs = ids
	for range ids {
		s.Source = append(s.Source, -1)
	}
	return s
}

func TestMessages(t *testing.T) {
	for _, c := range []struct {
		reason   string
		specials []string // the first ends completions
		text     string
		want     []string // role: text
	}{
		{"ChatML names the role on the header's line", []string{"<|im_end|>", "<|im_start|>"},
			"<|im_start|>system\nBe.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYes.<|im_end|>\n",
			[]string{"system: <|im_start|>system\nBe.<|im_end|>\n", "user: <|im_start|>user\nHi<|im_end|>\n", "assistant: <|im_start|>assistant\nYes.<|im_end|>\n"}},
		{"the closing token of a header begins nothing", []string{"<|eot_id|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>"},
			"<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi there<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nYes<|eot_id|>",
			[]string{"user: <|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi there<|eot_id|>", "assistant: <|start_header_id|>assistant<|end_header_id|>\n\nYes<|eot_id|>"}},
		{"tokens that are the role themselves", []string{"<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"},
			"<｜begin▁of▁sentence｜>Be kind to everyone who comes along here today.<｜User｜>Where is the file that I wrote, do you know?<｜Assistant｜>Here.<｜end▁of▁sentence｜><｜User｜>Ok<｜Assistant｜>Bye<｜end▁of▁sentence｜>",
			[]string{"begin▁of▁sentence: <｜begin▁of▁sentence｜>Be kind to everyone who comes along here today.", "user: <｜User｜>Where is the file that I wrote, do you know?", "assistant: <｜Assistant｜>Here.<｜end▁of▁sentence｜>", "user: <｜User｜>Ok", "assistant: <｜Assistant｜>Bye<｜end▁of▁sentence｜>"}},
		{"text without special tokens is one message", []string{"</s>"}, "just text", []string{": just text"}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			m := withSpecials(t, c.specials...)
			ids := encode(t, m, c.text)
			b := tokens.NewBoundaries(m)
			b.Learn(ids)
			var got []string
			end := 0
			for _, msg := range b.Messages(row(ids)) {
				require.Equal(t, end, msg.From, "messages cover the row")
				end = msg.To
				text, err := m.Tokenizer.Decode(ids[msg.From:msg.To])
				require.NoError(t, err)
				got = append(got, msg.Role+": "+text)
			}
			require.Equal(t, len(ids), end)
			require.Equal(t, c.want, got)
		})
	}
}

func TestMessagesOfNothing(t *testing.T) {
	m, err := tokens.ModelOf("", "", "")
	require.NoError(t, err)
	require.Empty(t, tokens.NewBoundaries(m).Messages(row(nil)))
}

// A row that records sources is also split at them: at tool results that share a turn,
// but not at a header imitated by recorded text.
func TestMessagesOfTracedRow(t *testing.T) {
	m := withSpecials(t, "<|im_end|>", "<|im_start|>", "<tool_response>", "</tool_response>")
	s := row(nil)
	s.Metadata = []byte(`{"turnpack":{"roles":["assistant","tool","tool"]}}`)
	for _, p := range []struct {
		text string
		from int32
	}{{"<|im_start|>assistant\n", -1}, {"Look <|im_start|>user\nnow", 0}, {"<|im_end|>\n<|im_start|>user\n<tool_response>", -1},
		{"one", 1}, {"</tool_response>\n<tool_response>", -1}, {"two", 2}, {"</tool_response><|im_end|>\n<|im_start|>assistant\n", -1}} {
		for _, id := range encode(t, m, p.text) {
			s.IDs, s.Source = append(s.IDs, id), append(s.Source, p.from)
		}
	}
	b := tokens.NewBoundaries(m)
	b.Learn(s.IDs)
	var got []string
	for _, msg := range b.Messages(s) {
		text, err := m.Tokenizer.Decode(s.IDs[msg.From:msg.To])
		require.NoError(t, err)
		got = append(got, fmt.Sprintf("%d %s: %s", msg.Index, msg.Role, text))
	}
	require.Equal(t, []string{
		"0 assistant: <|im_start|>assistant\nLook <|im_start|>user\nnow<|im_end|>\n",
		"1 tool: <|im_start|>user\n<tool_response>one</tool_response>\n",
		"2 tool: <tool_response>two</tool_response><|im_end|>\n",
		"-1 assistant: <|im_start|>assistant\n"}, got)
}
