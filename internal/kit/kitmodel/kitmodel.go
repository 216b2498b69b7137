// Package kitmodel makes models from the templates kit.
package kitmodel

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/bpe"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// familyStops are the texts of the stop tokens that the model folders of these families name, by
// the prefix of the template's name; the first is eos_token.
var familyStops = []struct {
	prefix string
	stops  []string
}{
	{"cohere", []string{"<|END_OF_TURN_TOKEN|>"}},
	{"deepseek", []string{"<｜end▁of▁sentence｜>"}},
	{"diffusion_gemma", []string{"<turn|>", "<|tool_response>"}},
	{"gemma4", []string{"<turn|>", "<|tool_response>"}},
	{"gemma", []string{"<end_of_turn>"}},
	{"glm", []string{"<|endoftext|>", "<|user|>", "<|observation|>"}},
	{"gptoss", []string{"<|return|>", "<|call|>"}},
	{"idefics3", []string{"<end_of_utterance>"}},
	{"smolvlm", []string{"<end_of_utterance>"}},
	{"llama3", []string{"<|eot_id|>", "<|eom_id|>"}},
	{"llava", []string{"</s>"}},
	{"muse", []string{"<|eot|>"}},
	{"phi3", []string{"<|end|>"}},
	{"", []string{"<|im_end|>"}},
}

// Stops returns the texts of the stop tokens of a template of the kit; the first is eos_token.
func Stops(name string) []string {
	for _, f := range familyStops {
		if strings.HasPrefix(name, f.prefix) {
			return f.stops
		}
	}
	return nil
}

var marker = regexp.MustCompile(`<[|｜][^ <>{}']+[|｜]>|\[/?[A-Z_]{2,}\]|</?[a-z]+(?:_of)?_[a-z]+>|</?think>|<\|(?:channel|turn|tool(?:_call|_response)?)>|<(?:channel|turn|tool(?:_call|_response)?)\|>`)

// Templates returns a model for every template of the templates kit. They share Qwen3's tokenizer,
// extended by the markers of all templates.
func Templates(t testing.TB) map[string]*tokenize.Model {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(kit.Templates(t), "*.jinja"))
	require.NoError(t, err)
	sources := map[string]string{}
	var markers []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(f), ".jinja")
		sources[name] = string(b)
		markers = append(append(markers, marker.FindAllString(string(b), -1)...), Stops(name)...)
	}
	slices.Sort(markers)
	tok := extended(t, slices.Compact(markers))
	models := map[string]*tokenize.Model{}
	for name, source := range sources {
		config, err := json.Marshal(map[string]any{"eos_token": Stops(name)[0], "bos_token": "<s>"})
		require.NoError(t, err)
		var ids []rollout.TokenID
		for _, s := range Stops(name) {
			var e engine.Encoding
			require.NoError(t, tok.Encode(&e, s, engine.EncodeOptions{}))
			ids = append(ids, e.IDs...)
		}
		require.Len(t, ids, len(Stops(name)), name)
		generation, err := json.Marshal(map[string]any{"eos_token_id": ids})
		require.NoError(t, err)
		models[name], err = tokenize.Load(".", tokenize.LoadOptions{FS: fstest.MapFS{
			"tokenizer.json": {Data: []byte("{}")}, "tokenizer_config.json": {Data: config},
			"generation_config.json": {Data: generation}, "chat_template.jinja": {Data: []byte(source)},
		}, Engine: func(string, []byte) (engine.Tokenizer, error) { return tok, nil }})
		require.NoError(t, err, name)
	}
	return models
}

// extended returns Qwen3's tokenizer with more added tokens.
func extended(t testing.TB, markers []string) engine.Tokenizer {
	t.Helper()
	raw := kit.Qwen3(t)["tokenizer.json"].Data
	var file map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &file))
	var added []map[string]any
	require.NoError(t, json.Unmarshal(file["added_tokens"], &added))
	next := 0
	known := map[string]bool{}
	for _, a := range added {
		known[a["content"].(string)] = true
		next = max(next, int(a["id"].(float64))+1)
	}
	for _, m := range append([]string{"<s>"}, markers...) {
		if !known[m] {
			known[m] = true
			added = append(added, map[string]any{"id": next, "content": m, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": !strings.HasPrefix(m, "</") && !strings.Contains(m, "_call>")})
			next++
		}
	}
	var err error
	file["added_tokens"], err = json.Marshal(added)
	require.NoError(t, err)
	raw, err = json.Marshal(file)
	require.NoError(t, err)
	tok, err := bpe.Parse("tokenizer.json", raw)
	require.NoError(t, err)
	return tok
}
