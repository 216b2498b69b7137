package chat

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

func TestKitGoldens(t *testing.T) {
	kit.OneGoroutine(t)
	n, gens := 0, 0
	kitCases(t, func(c *kit.TemplateGolden, r *Result, err error) {
		n++
		if !c.OK {
			checkError(t, c.ID, err, c.Error)
			return
		}
		if !assert.NoError(t, err, c.ID) {
			return
		}
		if r.Text != c.Text {
			assert.Equal(t, c.Text, r.Text, c.ID)
			return
		}
		checkCover(t, c.ID, r)
		if c.GenerationSpans != nil {
			gens++
			assert.ElementsMatch(t, *c.GenerationSpans, r.Generation, c.ID)
		}
	})
	assert.Equal(t, 4329, n, "cases of the templates kit")
	assert.Equal(t, 1707, gens, "cases with generation spans")
}

func checkError(t *testing.T, id string, err error, want *struct{ Kind, Message string }) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !assert.True(t, ok, "%s: expected an error %v, got %v", id, want, err) {
		return
	}
	assert.Equal(t, want.Kind, string(e.Class), "%s: want %s, got %s", id, want.Message, e.Message)
	if want.Kind == "raise_exception" {
		assert.Equal(t, want.Message, e.Message, id)
	}
}

// checkCover requires that Result.Spans covers the text once, in order.
func checkCover(t *testing.T, id string, r *Result) {
	t.Helper()
	at := 0
	for s := range r.Spans() {
		require.Equal(t, at, s.Start, id)
		require.Greater(t, s.End, s.Start, id)
		at = s.End
	}
	require.Len(t, r.Text, at, id)
}

func TestKitSnippets(t *testing.T) {
	n := 0
	for c := range kit.Lines[struct {
		ID, Template string
		Context      json.RawMessage
		OK           bool
		Text         string
		Error        *struct{ Kind, Message string }
		Gens         *[][2]int `json:"generation_spans"`
		Reliable     bool      `json:"generation_spans_reliable"`
	}](t, kit.Dir(t, "conformance", "templates", "snippets.jsonl")) {
		n++
		var r *Result
		tmpl, err := Compile(c.Template, Options{})
		if err == nil {
			r, err = tmpl.RenderVars(t.Context(), parse(t, c.Context), Input{Now: kit.TemplateClock})
		}
		if !c.OK {
			checkError(t, c.ID+" "+c.Template, err, c.Error)
			continue
		}
		if assert.NoError(t, err, c.ID+" "+c.Template) {
			assert.Equal(t, c.Text, r.Text, c.ID+" "+c.Template)
			checkCover(t, c.ID, r)
			if c.Gens != nil && c.Reliable {
				assert.ElementsMatch(t, *c.Gens, r.Generation, c.ID)
			}
		}
	}
	assert.Equal(t, 478, n, "snippets of the templates kit")
}
