package show

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/embedded"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// Tabs expand to the tab stops of the printed line, with marks and wide characters
// counted. In labels they are made visible.
func TestTabs(t *testing.T) {
	var b bytes.Buffer
	out := bufio.NewWriter(&b)
	v := Printer{Width: 80}
	column := v.run(out, "", "ab\tc\n\t\td", false, 0)
	require.Equal(t, 17, column)
	column = v.run(out, "", "x\t漢\ty", true, column)
	require.NoError(t, out.Flush())
	require.Equal(t, "ab      c\n"+strings.Repeat(" ", 16)+"d«x     漢      y»", b.String())
	require.Equal(t, 17+7+8+2, column)
	require.Equal(t, "a␉b", Visible("a\tb"))
}

// A row prints with log probabilities, control characters and on a narrow terminal.
func TestPrinter(t *testing.T) {
	m, err := embedded.Model()
	require.NoError(t, err)
	var e engine.Encoding
	require.NoError(t, m.Tokenizer.Encode(&e, "<|im_start|>user\n\x1b[31mred 🙂\x07\u202e<|im_end|>\n<|im_start|>assistant\nok 🙂<|im_end|>", engine.EncodeOptions{}))
	s := rollout.Sample{ID: "a-rather-long-row-name#0", Status: rollout.StatusCompleted}
	s.IDs = e.IDs
	s.Weight, s.Logprob = make([]float32, len(e.IDs)), make([]float32, len(e.IDs))
	for i := len(e.IDs) - 4; i < len(e.IDs); i++ {
		s.Weight[i], s.Logprob[i] = 1, -3
	}
	print := func(v Printer) string {
		var b bytes.Buffer
		require.NoError(t, v.Row(&b, m, &s))
		return b.String()
	}
	plain := print(Printer{By: "logprob", Width: 30})
	require.Contains(t, plain, "␛[31mred 🙂␇\ufffd<|im_end|>\n", "recorded text does not steer the terminal")
	require.Contains(t, plain, "message 1 assistant, token \n20, logprob mean -3.000, least \n-3.000 ─")
	for _, line := range strings.Split(plain, "\n") {
		if strings.HasPrefix(line, "──") {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, " ")), 30)
		}
	}
	coloured := print(Printer{By: "logprob", Color: true, Width: 80})
	require.Contains(t, coloured, "\x1b[30;48;5;208m")
	require.True(t, utf8.ValidString(coloured), "no escape stands inside a character")
	require.NotContains(t, coloured, "\x1b[31m")
	for _, line := range strings.Split(coloured, "\n") {
		require.Equal(t, strings.Count(line, "\x1b["), 2*strings.Count(line, styleNone), "colours end on their line: %q", line)
	}
	require.Error(t, Printer{By: "advantage"}.Row(io.Discard, m, &s))
}

// No printed line is wider than the terminal, in any script.
func TestWidths(t *testing.T) {
	m, err := embedded.Model()
	require.NoError(t, err)
	var e engine.Encoding
	require.NoError(t, m.Tokenizer.Encode(&e, "<|im_start|>user\nhi<|im_end|>", engine.EncodeOptions{}))
	s := rollout.Sample{ID: "漢字かな 👩‍👩‍👧‍👦 交じり文 e\u0301te\u0301#0", Status: rollout.StatusCompleted, FinishReason: "stop"}
	s.Group, s.IDs, s.Weight = "組 分け 🙂 グループ", e.IDs, make([]float32, len(e.IDs))
	for width := 20; width <= 200; width++ {
		var b bytes.Buffer
		require.NoError(t, Printer{By: "mask", Width: width}.Row(&b, m, &s))
		for line := range strings.Lines(b.String()) {
			if line = strings.TrimRight(line, " \n"); strings.Contains(line, " ") && !strings.HasPrefix(line, "<") {
				require.LessOrEqual(t, uniseg.StringWidth(line), max(width, 28), "%q", line)
			}
		}
	}
}
