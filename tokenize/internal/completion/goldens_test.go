package completion

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// kitClock is the instant that the templates kit's oracle fixed.
var kitClock = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

type kitSetting struct {
	ID                   string                     `json:"id"`
	AddGenerationPrompt  bool                       `json:"add_generation_prompt"`
	ContinueFinalMessage bool                       `json:"continue_final_message"`
	DropNullKeys         bool                       `json:"drop_null_keys"`
	Kwargs               map[string]json.RawMessage `json:"kwargs"`
}

type kitConversation struct {
	ID        string          `json:"id"`
	Messages  json.RawMessage `json:"messages"`
	Tools     json.RawMessage `json:"tools"`
	Documents json.RawMessage `json:"documents"`
	Settings  []kitSetting    `json:"settings"`
}

type kitError struct{ Kind, Message string }

type kitCase struct {
	kitSetting
	Template        string    `json:"template"`
	Conversation    string    `json:"conversation"`
	Setting         string    `json:"setting"`
	OK              bool      `json:"ok"`
	Text            string    `json:"text"`
	Error           *kitError `json:"error"`
	GenerationSpans *[][2]int `json:"generation_spans"`
}

func kitTemplate(t testing.TB, name string) *chat.Template {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(kit.Templates(t), name+".jinja"))
	require.NoError(t, err)
	tmpl, err := chat.Compile(string(src), chat.Options{Name: name})
	require.NoError(t, err)
	return tmpl
}

// kitTemplates are the templates of the kit by name, in its order.
func kitTemplates(t testing.TB) iter.Seq2[string, *chat.Template] {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(kit.Templates(t), "*.jinja"))
	require.NoError(t, err)
	return func(yield func(string, *chat.Template) bool) {
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".jinja")
			if !yield(name, kitTemplate(t, name)) {
				return
			}
		}
	}
}

func lines(t testing.TB, path string, each func([]byte)) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		r, err = gzip.NewReader(f)
		require.NoError(t, err)
	}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		each(sc.Bytes())
	}
	require.NoError(t, sc.Err())
}

func parse(t testing.TB, data json.RawMessage) chat.Value {
	t.Helper()
	if len(data) == 0 {
		return chat.Null()
	}
	v, err := chat.ParseJSON(data)
	require.NoError(t, err)
	return v
}

func kitConversations(t testing.TB) map[string]*kitConversation {
	t.Helper()
	data, err := os.ReadFile(kit.Dir(t, "conformance", "templates", "conversations.json"))
	require.NoError(t, err)
	var list []*kitConversation
	require.NoError(t, json.Unmarshal(data, &list))
	out := map[string]*kitConversation{}
	for _, c := range list {
		out[c.ID] = c
	}
	return out
}

func (c *kitConversation) prepare(t testing.TB, keepNull bool) *chat.Conversation {
	t.Helper()
	conv, err := chat.NewConversation(parse(t, c.Messages), parse(t, c.Tools), parse(t, c.Documents), chat.ConversationOptions{KeepNull: keepNull})
	require.NoError(t, err)
	return conv
}

func (s *kitSetting) input(t testing.TB) chat.Input {
	t.Helper()
	in := chat.Input{AddGenerationPrompt: s.AddGenerationPrompt, ContinueFinalMessage: s.ContinueFinalMessage, Now: kitClock, Kwargs: map[string]chat.Value{}}
	for k, v := range s.Kwargs {
		in.Kwargs[k] = parse(t, v)
	}
	return in
}

// kitCases calls each for every golden with what the engine gives for it.
func kitCases(t *testing.T, each func(c *kitCase, r *chat.Result, err error)) {
	convs := kitConversations(t)
	templates := map[string]*chat.Template{}
	kit.Templates(t)
	lines(t, kit.Dir(t, "conformance", "templates", "goldens.jsonl.gz"), func(line []byte) {
		c := &kitCase{}
		require.NoError(t, json.Unmarshal(line, c))
		if templates[c.Template] == nil {
			templates[c.Template] = kitTemplate(t, c.Template)
		}
		conv := convs[c.Conversation].prepare(t, !c.DropNullKeys)
		r, err := templates[c.Template].Render(t.Context(), conv, c.input(t))
		each(c, r, err)
	})
}
