package tokenize_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/certify"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// folderWith is the embedded model's folder with changed files; "" removes one.
func folderWith(t *testing.T, changed map[string]string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"} {
		b, err := os.ReadFile(filepath.Join("embedded", name))
		require.NoError(t, err)
		files[name] = &fstest.MapFile{Data: b}
	}
	for name, text := range changed {
		if files[name] = (&fstest.MapFile{Data: []byte(text)}); text == "" {
			delete(files, name)
		}
	}
	return files
}

// TestDamagedFolders: the error for a damaged file names the file and a fix.
func TestDamagedFolders(t *testing.T) {
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"
	for _, c := range []struct{ file, text, want string }{
		{"tokenizer.json", pointer, "tokenizer.json: the file is a pointer of Git LFS, not its content (run git lfs pull"},
		{"tokenizer_config.json", pointer, "tokenizer_config.json: the file is a pointer of Git LFS"},
		{"chat_template.jinja", pointer, "chat_template.jinja: the file is a pointer of Git LFS"},
		{"generation_config.json", pointer, "generation_config.json: the file is a pointer of Git LFS"},
		{"tokenizer_config.json", `null`, "tokenizer_config.json: the file is not the JSON it should be: found null, expected an object (take the file"},
		{"tokenizer_config.json", `{"chat`, "tokenizer_config.json: the file is not the JSON it should be"},
		{"special_tokens_map.json", `[]`, "special_tokens_map.json: the file is not the JSON it should be"},
		{"tokenizer_config.json", `{"added_tokens_decoder":{"x":{"content":"<a>"}}}`, `tokenizer_config.json, /added_tokens_decoder: expected ids as keys, found "x" (take`},
		{"chat_template.jinja", " \n", "chat_template.jinja: the chat template default is empty (put its text there"},
		{"chat_template.jinja", "{# caf\xe9 #}x", "chat_template.jinja: the chat template default is not UTF-8 (save it"},
		{"additional_chat_templates/rag.jinja", " ", "additional_chat_templates/rag.jinja: the chat template rag is empty"},
		{"generation_config.json", `{"eos_token_id":"3"}`, `generation_config.json, /eos_token_id: expected an id or a list of ids, found "3" (take`},
		{"generation_config.json", `{"eos_token_id":[151645,151643]}`, "generation_config.json, /eos_token_id: expected ids of the tokenizer's 4096, found [151645,151643] (take tokenizer and configuration of the same model)"},
		{"generation_config.json", `{"eos_token_id":-1}`, "generation_config.json, /eos_token_id: expected ids of the tokenizer's 4096, found -1"},
	} {
		_, err := tokenize.Load(".", tokenize.LoadOptions{FS: folderWith(t, map[string]string{c.file: c.text})})
		require.ErrorContains(t, err, c.want)
	}
	for config, want := range map[string]string{
		`{"chat_template":[{"name":"default"}]}`:     "tokenizer_config.json, /chat_template: the chat template default is empty",
		`{"chat_template":[{"template":"x"}]}`:       "tokenizer_config.json, /chat_template: a chat template has no name",
		`{"chat_template":{"default":"x","b":"\n"}}`: "tokenizer_config.json, /chat_template: the chat template b is empty",
	} {
		_, err := tokenize.Load(".", tokenize.LoadOptions{FS: folderWith(t, map[string]string{"tokenizer_config.json": config, "chat_template.jinja": ""})})
		require.ErrorIs(t, err, rollout.KindTemplate)
		require.ErrorContains(t, err, want)
	}
	m, err := tokenize.Load(".", tokenize.LoadOptions{FS: folderWith(t, map[string]string{"tokenizer_config.json": `{"chat_template":""}`, "chat_template.jinja": ""})})
	require.NoError(t, err, "no template")
	require.Nil(t, m.Template)

	in := fstest.MapFS{"a/b/tokenizer.json": {Data: []byte(pointer)}}
	for dir, want := range map[string]string{"a/b": "a/b/tokenizer.json: the file is a pointer", "a": "a/tokenizer.json: the model folder has no", "/a/b": "/a/b: no model can be loaded: sub /a/b: invalid argument (name the folder as in a/b"} {
		_, err := tokenize.Load(dir, tokenize.LoadOptions{FS: in})
		require.ErrorContains(t, err, want)
	}
}

// transformers 5.23 gives a folder without a configuration no bos_token, whatever tokenizer.json puts
// before texts.
func TestABareFolderNamesNoTokens(t *testing.T) {
	files := folderWith(t, map[string]string{"tokenizer_config.json": "", "chat_template.jinja": "[{{ bos_token }}]{{ messages[0].content }}"})
	files["tokenizer.json"].Data = []byte(strings.Replace(string(files["tokenizer.json"].Data), `"post_processor":null`, `"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<|endoftext|>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],
		"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"<|endoftext|>":{"id":"<|endoftext|>","ids":[4087],"tokens":["<|endoftext|>"]}}}`, 1))
	m, err := tokenize.Load(".", tokenize.LoadOptions{FS: files})
	require.NoError(t, err)
	require.Empty(t, m.SpecialTokens)
	enc, err := tokenize.NewEncoder(m, tokenize.Options{})
	require.NoError(t, err)
	p, err := enc.Prompt(t.Context(), &rollout.Rollout{}, []rollout.Message{{Role: rollout.RoleUser, Content: "hi"}})
	require.NoError(t, err)
	require.Equal(t, "[]hi", p.Text.Text)
}

// A folder with ranks of tiktoken is a model, too.
func TestTiktokenFolder(t *testing.T) {
	var ranks strings.Builder
	for b := range 256 {
		fmt.Fprintf(&ranks, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(b)}), b)
	}
	ranks.WriteString("aGk= 256\n") // hi
	files := folderWith(t, map[string]string{"tokenizer.json": "", "tiktoken.model": ranks.String(), "tokenizer_config.json": `{"auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer"]},
		"eos_token": "<|im_end|>", "added_tokens_decoder": {"257": {"content": "<|im_start|>", "special": true}, "258": {"content": "<|im_end|>", "special": true}}}`})
	m, err := tokenize.Load(".", tokenize.LoadOptions{FS: files})
	require.NoError(t, err)
	enc, err := tokenize.NewEncoder(m, tokenize.Options{})
	require.NoError(t, err)
	p, err := enc.Prompt(t.Context(), &rollout.Rollout{}, []rollout.Message{{Role: rollout.RoleUser, Content: "hi"}})
	require.NoError(t, err)
	ids := []rollout.TokenID{257, 'u', 's', 'e', 'r', '\n', 256, 258, '\n', 257}
	for _, b := range []byte("assistant\n") {
		ids = append(ids, rollout.TokenID(b))
	}
	require.Equal(t, ids, p.IDs)
	require.Equal(t, []rollout.TokenID{258}, m.Stops())

	files["tiktoken.model"].Data = []byte("version https://git-lfs.github.com/spec/v1\n")
	_, err = tokenize.Load(".", tokenize.LoadOptions{FS: files})
	require.ErrorContains(t, err, "tiktoken.model: the file is a pointer of Git LFS")
}

// TestOlderNamesOfTokens: special_tokens_map.json takes precedence over the configuration, but only
// if the latter has no added_tokens_decoder, as in transformers 5.23.
func TestOlderNamesOfTokens(t *testing.T) {
	const older = `{"eos_token":{"content":"<|endoftext|>","special":true},"bos_token":"<|im_start|>","unk_token":null,"additional_special_tokens":["<|more|>"],"extra_special_tokens":["<|b|>"]}`
	m, err := tokenize.Load(".", tokenize.LoadOptions{FS: folderWith(t, map[string]string{"special_tokens_map.json": older, "tokenizer_config.json": `{"eos_token":"<|im_end|>","unk_token":"<|im_end|>","extra_special_tokens":["<|a|>"]}`})})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"eos_token": "<|endoftext|>", "bos_token": "<|im_start|>"}, m.SpecialTokens)
	eos, ok := m.EOS()
	require.True(t, ok)
	require.True(t, m.IsStop(eos))
	require.Len(t, m.Stops(), 2, "and what the template ends replies with")
	at := func(m *tokenize.Model, token string) rollout.TokenID {
		id, _ := m.Tokenizer.Vocab().ID(token)
		return id
	}
	require.Equal(t, []rollout.TokenID{-1, 4096, 4097}, []rollout.TokenID{at(m, "<|more|>"), at(m, "<|a|>"), at(m, "<|b|>")}, "the older list counts where there is no other")

	m, err = tokenize.Load(".", tokenize.LoadOptions{FS: folderWith(t, map[string]string{"special_tokens_map.json": `{"additional_special_tokens":["<|b|>"]}`, "tokenizer_config.json": `{"additional_special_tokens":["<|a|>"],"extra_special_tokens":[]}`})})
	require.NoError(t, err)
	require.Equal(t, []rollout.TokenID{4096, -1}, []rollout.TokenID{at(m, "<|a|>"), at(m, "<|b|>")}, "first that of the configuration")

	m, err = tokenize.Load(".", tokenize.LoadOptions{FS: folderWith(t, map[string]string{"special_tokens_map.json": `{"additional_special_tokens":["<|b|>"]}`, "tokenizer_config.json": `{}`})})
	require.NoError(t, err)
	require.Equal(t, rollout.TokenID(4096), at(m, "<|b|>"))

	m, err = tokenize.Load(".", tokenize.LoadOptions{FS: folderWith(t, map[string]string{"special_tokens_map.json": older, "tokenizer_config.json": `{"eos_token":"<|im_end|>","added_tokens_decoder":{}}`})})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"eos_token": "<|im_end|>"}, m.SpecialTokens)
	_, ok = m.Tokenizer.Vocab().ID("<|more|>")
	require.False(t, ok)
}

// A template that hits its limit in a short conversation is rejected when an encoder is made, after
// one rendering and not after one for each of some thirty probes or for each rollout. Loading
// renders nothing.
func TestTemplateAtItsLimitIsRefused(t *testing.T) {
	kit.OneGoroutine(t)
	tenth := chat.Options{Limits: chat.Limits{Work: 100_000_000}} // a tenth of the default, for a shorter test
	for _, hostile := range []string{
		"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
		"{% set ns=namespace(x=messages) %}{% for i in range(60) %}{% set ns.x=ns.x|tojson %}{% endfor %}{{ns.x}}",
	} {
		template, err := chat.Compile(hostile, tenth)
		require.NoError(t, err)
		one, err := chat.NewConversation(chat.List(chat.Object(chat.Member{Key: "role", Value: chat.String("user")}, chat.Member{Key: "content", Value: chat.String("x")})),
			chat.Null(), chat.Null(), chat.ConversationOptions{})
		require.NoError(t, err)
		began := time.Now()
		_, err = template.Render(t.Context(), one, chat.Input{})
		once := time.Since(began)
		require.ErrorIs(t, err, rollout.KindLimit)

		began = time.Now()
		m, err := tokenize.Load("embedded", tokenize.LoadOptions{TemplateText: hostile, Chat: tenth})
		require.NoError(t, err)
		require.Less(t, time.Since(began), once)
		began = time.Now()
		_, err = tokenize.NewEncoder(m, tokenize.Options{})
		require.ErrorIs(t, err, rollout.KindLimit)
		_, err = certify.Model(t.Context(), m)
		require.ErrorIs(t, err, rollout.KindLimit)

		dir := t.TempDir()
		definition, err := os.ReadFile(filepath.Join("embedded", "tokenizer.json"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), definition, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(hostile), 0o600))
		m, err = tokenize.Load(dir, tokenize.LoadOptions{Chat: tenth})
		require.NoError(t, err)
		_, err = tokenize.NewEncoder(m, tokenize.Options{})
		e, ok := errors.AsType[*rollout.Error](err)
		require.True(t, ok)
		require.Equal(t, filepath.Join(dir, "chat_template.jinja"), e.Where.File, "the file of the template")
		require.Less(t, time.Since(began), 8*once+time.Second)
	}
}
