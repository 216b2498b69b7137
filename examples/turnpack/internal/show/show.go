// Package show prints rows of a batch, and details of one token, on a terminal.
package show

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/turnpack/turnpack/examples/turnpack/internal/tokens"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Printer prints rows on a terminal or to a pager.
type Printer struct {
	By    string // what colours a token: mask, source, logprob, advantage
	Color bool
	Width int
}

const (
	styleNone    = "\x1b[0m"
	styleContext = "\x1b[90m"
	styleTrained = "\x1b[1;32m"
	styleRule    = "\x1b[36m"
)

// heat are the styles of log probabilities above each bound; the last is for all others.
var heat = []struct {
	above float64
	style string
}{{-0.1, "\x1b[1;32m"}, {-0.7, "\x1b[30;48;5;229m"}, {-2, "\x1b[30;48;5;221m"}, {-4, "\x1b[30;48;5;208m"}, {math.Inf(-1), "\x1b[97;48;5;160m"}}

func (v Printer) paint(style, s string) string {
	if !v.Color || s == "" {
		return s
	}
	return style + s + styleNone
}

// Row prints the facts of a row and its text, with a rule before each message. Trained
// tokens are coloured, or between «» without colour.
func (v Printer) Row(w io.Writer, m *tokenize.Model, s *rollout.Sample) error {
	if v.By == "source" && !tokens.Traced(s) {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: s.Rollout, Field: "--by"}, "the batch does not say where its tokens are from").WithFix("convert again with --trace on, or use --by mask")
	}
	if v.By == "logprob" && s.Logprob == nil || v.By == "advantage" && s.Credit == nil && s.Advantage == nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: s.Rollout, Field: "--by"}, "the batch holds no %s", v.By).WithFix("use --by mask")
	}
	out := bufio.NewWriter(w)
	adv := "none"
	if s.Advantage != nil {
		adv = fmt.Sprintf("%+.4f", *s.Advantage)
	}
	fmt.Fprintln(out, v.Wrap(fmt.Sprintf("row %s  group %s  %s  status %s (%s)", Visible(s.ID), orNone(Visible(s.Group)), steps(s), s.Status, orNone(Visible(s.FinishReason)))))
	fmt.Fprintln(out, v.Wrap(fmt.Sprintf("%d tokens, %d trained  reward %s  advantage %s", s.Len(), s.Trained(), rewardOf(s), adv)))
	cut := tokens.NewBoundaries(m)
	cut.Learn(s.IDs)
	spell := tokens.NewSpeller(m.Tokenizer)
	for n, message := range cut.Messages(s) {
		fmt.Fprintln(out, v.rule(n, message, s))
		if err := v.message(out, spell, message, s); err != nil {
			return err
		}
	}
	return out.Flush()
}

func steps(s *rollout.Sample) string {
	switch {
	case s.FirstStep < 0:
		return "steps unknown"
	case s.FirstStep == s.LastStep:
		return fmt.Sprintf("step %d", s.FirstStep)
	}
	return fmt.Sprintf("steps %d to %d", s.FirstStep, s.LastStep)
}

// rewardOf formats the reward: "none" for NaN, which stands for a file without rewards.
func rewardOf(s *rollout.Sample) string {
	if math.IsNaN(s.Reward) {
		return "none"
	}
	return fmt.Sprintf("%g", s.Reward)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// message prints the tokens of a message, grouped into runs of one style.
func (v Printer) message(out *bufio.Writer, spell *tokens.Speller, m tokens.Message, s *rollout.Sample) error {
	var text []byte
	column := 0
	for i := m.From; i < m.To; {
		style := v.style(s, i, m.Role)
		text = text[:0]
		end := i
		// A run does not end within a character.
		for ; end < m.To && (end == i || v.style(s, end, m.Role) == style || !utf8.Valid(text)); end++ {
			b, ok := spell.Bytes(s.IDs[end])
			if !ok {
				return rollout.Errorf(rollout.KindTokenizer, rollout.Where{Rollout: s.Rollout, Token: rollout.At(end)}, "id %d is not in the vocabulary", s.IDs[end]).
					WithFix("name the model folder of the batch with --model")
			}
			text = append(text, b...)
		}
		line := string(text)
		if end == m.To {
			line = strings.TrimSuffix(line, "\n")
		}
		column = v.run(out, style, line, s.Weight[i] > 0, column)
		i = end
	}
	return out.WriteByte('\n')
}

// run prints text in one style from the given column, and returns the column after it.
// Line breaks stay outside the escapes, so that colours survive a pager that cuts lines.
func (v Printer) run(out *bufio.Writer, style, text string, trained bool, column int) int {
	if !v.Color && trained {
		text = "«" + text + "»"
	}
	for k, line := range strings.Split(text, "\n") {
		if k > 0 {
			out.WriteByte('\n')
			column = 0
		}
		line, column = untabbed(line, column)
		out.WriteString(v.paint(style, line))
	}
	return column
}

const tabStop = 8

// untabbed returns a part of a line that starts at column, with tabs expanded to spaces,
// and the column after it.
func untabbed(line string, column int) (string, int) {
	var b strings.Builder
	for i, part := range strings.Split(line, "\t") {
		if i > 0 {
			n := tabStop - column%tabStop
			b.WriteString(strings.Repeat(" ", n))
			column += n
		}
		part = Visible(part)
		b.WriteString(part)
		column += uniseg.StringWidth(part)
	}
	return b.String(), column
}

// roleStyles maps the author of a message to its colour.
var roleStyles = map[string]string{"system": "35", "developer": "35", "user": "34", "assistant": "32", "tool": "33"}

// style returns the style of token i in a message with the given role.
func (v Printer) style(s *rollout.Sample, i int, role string) string {
	if v.By == "source" && v.Color && s.Source[i] >= 0 {
		code, ok := roleStyles[role]
		if !ok {
			code = "36"
		}
		if s.Weight[i] > 0 {
			code = "1;" + code
		}
		return "\x1b[" + code + "m"
	}
	if s.Weight[i] <= 0 {
		return styleContext
	}
	switch {
	case !v.Color:
	case v.By == "logprob":
		for _, h := range heat {
			if float64(s.Logprob[i]) > h.above {
				return h.style
			}
		}
		return heat[len(heat)-1].style
	case v.By == "advantage":
		switch a := advantage(s, i); {
		case a > 0:
			return "\x1b[1;94m"
		case a < 0:
			return "\x1b[1;38;5;208m"
		}
		return "\x1b[1m"
	}
	return styleTrained
}

// advantage returns the advantage of token i: its own, or else that of the row.
func advantage(s *rollout.Sample, i int) float64 {
	if s.Credit != nil {
		return float64(s.Credit[i])
	}
	if s.Advantage != nil {
		return *s.Advantage
	}
	return 0
}

// title returns the title of the n-th message of a row: its index in the rollout if the
// row has it, and its role if known.
func title(n int, m tokens.Message) string {
	if m.Index >= 0 {
		n = m.Index
	}
	return strings.TrimRight(fmt.Sprintf("message %d %s", n, Visible(m.Role)), " ")
}

// rule returns the line before a message. It fills the width; longer text wraps.
func (v Printer) rule(n int, m tokens.Message, s *rollout.Sample) string {
	head := fmt.Sprintf("── %s, token %d%s ", title(n, m), m.From, v.spread(m, s))
	lines := strings.Split(v.Wrap(head), "\n")
	last := len(lines) - 1
	lines[last] += strings.Repeat("─", max(0, v.Width-uniseg.StringWidth(lines[last])))
	for i := range lines {
		lines[i] = v.paint(styleRule, lines[i])
	}
	return strings.Join(lines, "\n")
}

// spread summarizes the values that colour the trained tokens of a message.
func (v Printer) spread(m tokens.Message, s *rollout.Sample) string {
	if v.By != "logprob" && v.By != "advantage" {
		return ""
	}
	n, sum, lo, hi := 0, 0.0, math.Inf(1), math.Inf(-1)
	for i := m.From; i < m.To; i++ {
		if s.Weight[i] <= 0 {
			continue
		}
		x := advantage(s, i)
		if v.By == "logprob" {
			x = float64(s.Logprob[i])
		}
		n, sum, lo, hi = n+1, sum+x, min(lo, x), max(hi, x)
	}
	switch {
	case n == 0:
		return ""
	case v.By == "logprob":
		return fmt.Sprintf(", logprob mean %.3f, least %.3f", sum/float64(n), lo)
	case lo == hi:
		return fmt.Sprintf(", advantage %+.4f", lo)
	}
	return fmt.Sprintf(", advantage %+.4f to %+.4f", lo, hi)
}

// Wrap breaks a line at spaces to fit the width. Longer words stay whole.
func (v Printer) Wrap(s string) string {
	var b strings.Builder
	column := 0
	for word := range strings.SplitAfterSeq(s, " ") {
		n := uniseg.StringWidth(strings.TrimRight(word, " "))
		if column > 0 && n > 0 && column+n > v.Width {
			b.WriteByte('\n')
			column = 0
		}
		b.WriteString(word)
		column += uniseg.StringWidth(word)
	}
	return b.String()
}

// Visible makes control characters visible, so that recorded text cannot control the
// terminal, and replaces invalid UTF-8.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ':
			return '␀' + r
		case r == 0x7f:
			return '␡'
		case r >= 0x80 && r < 0xa0, r != 0x200d && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp): // joiners are parts of emoji
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}
