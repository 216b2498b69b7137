package eval

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// TestLanguage runs testdata/*.txtar, which covers the language by chapters: "NAME/template" with the variables of
// "data" renders to "NAME/text", or fails with "NAME/error". internal/oracle/language_cases.py writes the results of
// jinja2.
func TestLanguage(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		sections := readSections(t, file)
		data, err := py.ParseJSON([]byte(sections["data"]))
		require.NoError(t, err, file)
		for name, source := range sections {
			name, ok := strings.CutSuffix(name, "/template")
			if !ok {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+name, func(t *testing.T) {
				text, kind, says := render(t, source, data.(*value.Dict))
				want, written := sections[name+"/text"]
				if kind == "" {
					require.True(t, written, "gives %q, want %s", text, sections[name+"/error"])
					require.Equal(t, want, text)
					return
				}
				require.False(t, written, "fails with %s: %s", kind, says)
				wantKind, wantSays, _ := strings.Cut(sections[name+"/error"], ": ")
				require.Equal(t, wantKind, kind, says)
				if wantSays != "" {
					require.Equal(t, wantSays, says)
				}
			})
		}
	}
}

var sectionHead = regexp.MustCompile(`(?m)^-- (.+) --\n`)

// readSections reads a file of sections and drops the last newline of each.
func readSections(t *testing.T, file string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	out := map[string]string{}
	heads := sectionHead.FindAllSubmatchIndex(b, -1)
	for i, h := range heads {
		end := len(b)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		out[string(b[h[2]:h[3]])] = strings.TrimSuffix(string(b[h[1]:end]), "\n")
	}
	return out
}

// render returns the text of a template, or the kind of error and its message, which for bad syntax is the line.
func render(t *testing.T, source string, data *value.Dict) (text, kind, says string) {
	t.Helper()
	source = syntax.Normalize(source)
	body, err := syntax.Parse(source, 200)
	var p *Program
	if err == nil {
		p, err = Compile(body)
	}
	if err != nil {
		e := err.(*syntax.Error)
		if e.Python {
			return "", "other", e.Msg
		}
		return "", "syntax", fmt.Sprint("line ", 1+strings.Count(source[:e.Pos], "\n"))
	}
	limits := rt.Limits{
		Limits: value.Limits{Bytes: 1 << 20, Items: 10_000, IntBytes: 16 << 10, Depth: 200, Work: 100_000_000, Memory: 16 << 20},
		Output: 1 << 20, Macros: 200, Range: 100_000,
	}
	now := func() time.Time { return time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC) }
	failure := p.Run(t.Context(), Input{Vars: data.GetString, Now: now, Limits: &limits}, func(out *Output) { text = string(out.Text.B) })
	if failure != nil {
		return "", string(failure.Class), failure.Msg
	}
	return text, "", ""
}
