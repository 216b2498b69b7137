package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/internal/plumb/pipe"
)

type renderWant struct {
	ID    string
	OK    bool
	Text  string
	Error *pipe.Detail
	Gens  *[][2]int `json:"generation_spans"`
}

func renderLines(t *testing.T, data []byte, each func(line []byte)) {
	t.Helper()
	for _, l := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		each(l)
	}
}

func compareRender(t *testing.T, want renderWant, answer *renderAnswer) {
	t.Helper()
	if !want.OK {
		if assert.NotNil(t, answer.Error, want.ID) {
			assert.Equal(t, want.Error.Kind, answer.Error.Kind, want.ID)
			if want.Error.Kind == "raise_exception" {
				assert.Equal(t, want.Error.Message, answer.Error.Message, want.ID)
			}
		}
		return
	}
	if assert.Nil(t, answer.Error, want.ID) {
		assert.Equal(t, want.Text, *answer.Text, want.ID)
	}
}

func TestRenderKit(t *testing.T) {
	dir := kit.Dir(t, "conformance", "templates")
	var out, diagnostics bytes.Buffer
	code := Main(context.Background(), []string{"render", "--templates", kit.Templates(t), "--conversations", filepath.Join(dir, "conversations.json"),
		"--now", "2026-01-15T12:00:00", filepath.Join(dir, "goldens.jsonl.gz")}, nil, &out, &diagnostics)
	require.Zero(t, code, diagnostics.String())
	answers := map[string]*renderAnswer{}
	renderLines(t, out.Bytes(), func(line []byte) {
		var a struct {
			ID string
			renderAnswer
		}
		require.NoError(t, json.Unmarshal(line, &a))
		answers[a.ID] = &a.renderAnswer
	})
	eachLine(t, filepath.Join(dir, "goldens.jsonl.gz"), func(line []byte) {
		var want renderWant
		require.NoError(t, json.Unmarshal(line, &want))
		compareRender(t, want, answers[want.ID])
		if want.Gens != nil {
			assert.ElementsMatch(t, *want.Gens, *answers[want.ID].GenerationSpans, want.ID)
		}
	})
	assert.Len(t, answers, 4329)
	checkProvenance(t, filepath.Join(dir, "provenance.jsonl.gz"), answers)
}

// checkProvenance compares the fields with status exact or absent. Complete cases must
// have no other fields.
func checkProvenance(t *testing.T, path string, answers map[string]*renderAnswer) {
	t.Helper()
	eachLine(t, path, func(line []byte) {
		var p struct {
			ID       string
			Complete bool
			Fields   []struct {
				renderField
				Status string
				Shared bool
			}
		}
		require.NoError(t, json.Unmarshal(line, &p))
		got := map[string][][4]int{}
		require.NotNil(t, answers[p.ID].Fields, p.ID)
		for _, f := range *answers[p.ID].Fields {
			got[f.Path] = f.Spans
		}
		listed := map[string]bool{}
		for _, f := range p.Fields {
			listed[f.Path] = true
			if !f.Shared && (f.Status == "exact" || f.Status == "absent") {
				assert.Equal(t, f.Spans, got[f.Path], "%s %s", p.ID, f.Path)
			}
		}
		if p.Complete {
			for path := range got {
				assert.True(t, listed[path], "%s: %s is not a field of the kit", p.ID, path)
			}
		}
	})
}

func eachLine(t *testing.T, path string, each func([]byte)) {
	t.Helper()
	r, err := pipe.Open(path)
	require.NoError(t, err)
	defer r.Close()
	var data bytes.Buffer
	_, err = data.ReadFrom(r)
	require.NoError(t, err)
	renderLines(t, data.Bytes(), each)
}

func TestRenderSnippets(t *testing.T) {
	path := kit.Dir(t, "conformance", "templates", "snippets.jsonl")
	var out, diagnostics bytes.Buffer
	require.Zero(t, Main(context.Background(), []string{"render", "--snippets", "--now", "2026-01-15T12:00:00", path}, nil, &out, &diagnostics), diagnostics.String())
	answers := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	n := 0
	eachLine(t, path, func(line []byte) {
		var want renderWant
		var got renderAnswer
		require.NoError(t, json.Unmarshal(line, &want))
		require.NoError(t, json.Unmarshal(answers[n], &got))
		compareRender(t, want, &got)
		n++
	})
	assert.Equal(t, len(answers), n)
}

func TestRenderInline(t *testing.T) {
	lines := `{"id":1,"template_text":"{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ x }}","messages":[{"role":"user","content":"é","n":null}],"kwargs":{"x":1.0}}
{"id":2,"template_text":"{{ raise_exception('no ' ~ messages[0].role) }}","messages":[{"role":"user"}]}
{"id":3,"template_text":"x","messages":{"role":"user"}}
{"id":4,"template":"../x","messages":[]}`
	var out, diagnostics bytes.Buffer
	code := Main(context.Background(), []string{"render"}, strings.NewReader(lines), &out, &diagnostics)
	assert.Equal(t, 1, code, "two lines fail")
	assert.Equal(t, `{"id":1,"ok":true,"text":"<user>é1.0","fields":[{"path":"/messages/0/content","spans":[[6,8,0,2]]}],"other_fields":[{"path":"/messages/0/role","spans":[[1,5,0,4]]}],"sampled":[],"generation_spans":[]}
{"id":2,"ok":false,"error":{"kind":"raise_exception","message":"no user","line":1,"column":19}}
{"id":3,"error":{"kind":"input","message":"/messages: messages is a dict, want a list of objects"}}
{"id":4,"error":{"kind":"input","message":"template: the line names template \"../x\"; want a name and --templates DIR, or --template FILE"}}
`, out.String())
}
