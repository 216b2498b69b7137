package prompt_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/internal/kit/kitmodel"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/certify"
	"github.com/turnpack/turnpack/tokenize/prompt"
)

var words = strings.Fields("Let us look at the file again, then run its tests — go test ./... fails: naïve 日本 don't 1,234 \t\u00a0 👩‍👩‍👧 `x := f(y)` {\"a\": [1, 2]} <b> end.")

func text(rng *rand.Rand, most int) string {
	var b strings.Builder
	for range 1 + rng.IntN(most) {
		b.WriteString(words[rng.IntN(len(words))])
		b.WriteString([]string{" ", " ", " ", "\n", "\n\n"}[rng.IntN(5)])
	}
	return strings.TrimSpace(b.String())
}

// kind says what the replies of a conversation contain.
type kind struct{ reasoning, tools bool }

// converse runs an agent of that kind for some turns, or until the template rejects the
// conversation or leaves a reply out.
func (h *harness) converse(k kind, turns int) {
	h.t.Helper()
	if h.tools = nil; k.tools {
		h.tools = bash
	}
	messages := []rollout.Message{user(text(h.rng, 20))}
	for i := range turns {
		if _, err := h.enc.Prompt(h.t.Context(), &rollout.Rollout{Tools: h.tools}, messages); err != nil {
			return
		}
		p := h.ask(messages)
		reasoning := ""
		if k.reasoning {
			reasoning = text(h.rng, 10)
		}
		var reply rollout.Message
		id := fmt.Sprintf("abcdef%03d", i)
		if k.tools && h.rng.IntN(5) > 0 {
			content := ""
			if !k.reasoning && h.rng.IntN(2) == 0 { // gpt-oss writes only one of both
				content = text(h.rng, 5)
			}
			reply = calls(reasoning, content, id, fmt.Sprintf(`{"command": %q}`, strings.Map(plain, text(h.rng, 8))))
			messages = append(messages, reply, result(id, text(h.rng, 30)))
		} else {
			reply = rollout.Message{Role: rollout.RoleAssistant, Reasoning: reasoning, Content: text(h.rng, 20)}
			messages = append(messages, reply, user(text(h.rng, 10)))
		}
		ids, err := h.spell(p, reply)
		if err != nil || len(ids) == 0 {
			return
		}
		h.sample(p, ids, &reply)
	}
}

func plain(r rune) rune {
	if r < ' ' || r > '~' {
		return '_'
	}
	return r
}

// docsPage is the page with the table below.
const docsPage = "../../docs/prompts.md"

// With every template of the kit, prompts spell what the template writes, with the control tokens
// that the guard allows, and a bridged turn costs no row.
func TestKitTemplates(t *testing.T) {
	kit.OneGoroutine(t)
	models := kitmodel.Templates(t)
	kinds := []kind{{}, {reasoning: true}, {tools: true}, {true, true}}
	var all prompt.Report
	alike := map[string][]string{} // templates by their table cells
	for _, name := range slices.Sorted(maps.Keys(models)) {
		m := models[name]
		cert, err := certify.Model(t.Context(), m)
		require.NoError(t, err, name)
		require.Empty(t, cert.Missing(tokenize.Whole), name)
		var cells []string
		kept := prompt.Report{}
		for i, k := range kinds {
			if k.reasoning && fails(cert, "reasoning_written") || k.tools && fails(cert, "tool_calls") {
				cells = append(cells, "–")
				continue
			}
			h := newHarness(t, m, prompt.Options{}, uint64(i))
			h.converse(k, 8)
			rep := h.tree.Report()
			forks := 0
			var why []string
			for _, reason := range slices.Sorted(maps.Keys(rep.Forked)) {
				forks += rep.Forked[reason]
				why = append(why, string(reason))
			}
			require.Len(t, h.rows(), rep.Opened+forks, "%s %+v", name, k)
			all.Add(rep)
			cell := "–"
			if rep.Turns > rep.Opened {
				cell = strings.TrimSpace(fmt.Sprintf("%.0f %% %s", 100*rep.Share(), strings.Join(why, ", ")))
			}
			cells = append(cells, cell)
			if forks == 0 {
				kept.Add(rep)
				continue
			}
			h = newHarness(t, m, prompt.Options{Keep: "all"}, uint64(i))
			h.converse(k, 8)
			rep = h.tree.Report()
			require.Len(t, h.rows(), rep.Turns-rep.Bridged-rep.Kept, "%s %+v", name, k)
			kept.Add(rep)
		}
		cells = append(cells, fmt.Sprintf("%.0f %%", 100*float64(kept.Bridged+kept.Kept)/float64(kept.Turns-kept.Opened)))
		line := strings.Join(cells, " | ")
		alike[line] = append(alike[line], name)
	}
	t.Logf("%+v, share %.3f", all, all.Share())
	require.Greater(t, all.Bridged, 700)
	var lines []string
	for cells, names := range alike {
		lines = append(lines, "| "+strings.Join(names, ", ")+" | "+cells+" |")
	}
	slices.Sort(lines)
	table := strings.Join(lines, "\n") + "\n"
	page, err := os.ReadFile(docsPage)
	require.NoError(t, err)
	const head = "|---|---|---|---|---|---|\n"
	before, _, ok := strings.Cut(string(page), head)
	require.True(t, ok)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(docsPage, []byte(before+head+table), 0o644))
		return
	}
	require.Equal(t, before+head+table, string(page), "UPDATE_GOLDEN=1 writes it")
}

func fails(c *certify.Certificate, p certify.Property) bool {
	for _, f := range c.Findings {
		if f.Property == p {
			return f.Verdict == certify.Fails
		}
	}
	return true
}
