package chat

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

// TestBuiltinsAgainstJinja compares every filter, test, method, operator and statement with the result of
// transformers' environment (testdata/snippets.jsonl, written by internal/oracle/chat_snippets.py, and
// language.jsonl, by diff_language.py). TURNPACK_SNIPPETS names another file in that format, such as a fuzzing run.
func TestBuiltinsAgainstJinja(t *testing.T) {
	kit.OneGoroutine(t)
	files, err := filepath.Glob(filepath.Join("testdata", "*.jsonl"))
	require.NoError(t, err)
	if f := os.Getenv("TURNPACK_SNIPPETS"); f != "" {
		files = []string{f}
	}
	require.NotEmpty(t, files)
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) { compareSnippets(t, f) })
	}
}

func compareSnippets(t *testing.T, file string) {
	var context Value
	n, bad := 0, 0
	for c := range kit.Lines[struct {
		Context  json.RawMessage
		Template string
		Text     *string
		Error    string
		Message  string
	}](t, file) {
		if c.Context != nil {
			context = parse(t, c.Context)
			continue
		}
		n++
		var r *Result
		tmpl, err := Compile(c.Template, Options{})
		if err == nil {
			r, err = tmpl.RenderVars(t.Context(), context, Input{Now: kit.TemplateClock})
		}
		ok := true
		got := ""
		if c.Text == nil {
			e, isError := errors.AsType[*Error](err)
			ok = isError && string(e.Class) == c.Error
			if isError {
				got = string(e.Class) + ": " + e.Message
			} else if r != nil {
				got = r.Text
			}
			if !ok {
				bad++
				if bad < 1000 {
					t.Errorf("%s\nwant %s: %s\ngot  %s", c.Template, c.Error, c.Message, got)
				}
			}
			continue
		}
		if err != nil || r.Text != *c.Text {
			bad++
			if bad < 1000 {
				if err != nil {
					t.Errorf("%s\nwant %q\ngot  %v", c.Template, *c.Text, err)
				} else {
					t.Errorf("%s\nwant %q\ngot  %q", c.Template, *c.Text, r.Text)
				}
			}
			continue
		}
		checkCover(t, c.Template, r)
	}
	assert.NotZero(t, n)
	t.Logf("%d snippets, %d differ", n, bad)
}

// Jinja reads tokens on demand, and takes the line of the last token read as the end of the template.
func TestLineOfSyntaxErrors(t *testing.T) {
	for _, c := range []struct {
		source, reason string
		line           int
	}{
		{"{{ a b }}\n{{ ? }}", "the parser's error stands in front of the lexer's", 1},
		{"{{ a\n? }}\n{{ b c }}", "the lexer's error stands in front of the parser's", 2},
		{"a\n{{ x\n\n", "the end is at the last token", 2},
		{"a\n{% if x %}\n\ny\n", "the end is where the last text begins", 3},
	} {
		_, err := Compile(c.source, Options{})
		e, ok := errors.AsType[*Error](err)
		if assert.True(t, ok, c.reason) {
			assert.Equal(t, Class("syntax"), e.Class, c.reason)
			assert.Equal(t, c.line, e.Line, c.reason)
		}
	}
}
