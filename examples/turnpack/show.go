package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

type showCmd struct {
	File  string `arg:"" help:"Parquet file of a batch."`
	Row   int    `arg:"" help:"Row number, from 0." default:"0"`
	Model string `help:"Model folder with the tokenizer the batch was made with; the embedded one is recognised."`
	Color string `help:"Colour: auto, always, never." enum:"auto,always,never" default:"auto"`
	Width int    `help:"Columns of the terminal; 0 asks it." default:"0"`
}

// Run prints one row.
func (c *showCmd) Run(p *program) error {
	r, err := export.Open(c.File)
	if err != nil {
		return err
	}
	defer r.Close()
	if c.Row < 0 || int64(c.Row) >= r.Info().Rows {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: c.File}, "row %d asked for, the file has rows 0 to %d", c.Row, r.Info().Rows-1)
	}
	var row rollout.Sample
	for i := 0; i <= c.Row; i++ {
		if row, err = r.Read(); err != nil {
			return err
		}
	}
	model, err := modelOf(c.Model, r.Info().Tokenizer)
	if err != nil {
		return err
	}
	return view{color: c.color(p.out), width: c.width(p.out)}.row(p.out, model, &row)
}

// modelOf loads the tokenizer a batch was made with.
func modelOf(dir, digest string) (*tokenize.Model, error) {
	var m *tokenize.Model
	var err error
	if dir != "" {
		m, err = tokenize.Load(dir)
	} else {
		m, err = embeddedModel()
	}
	if err != nil {
		return nil, err
	}
	if digest != "" && m.Tokenizer.Digest() != digest {
		e := rollout.Errorf(rollout.KindInput, rollout.Where{}, "the batch was made with tokenizer %s, this one is %s", digest, m.Tokenizer.Digest())
		return nil, e.WithFix("name the model folder with --model")
	}
	return m, nil
}

func (c *showCmd) color(w io.Writer) bool {
	switch c.Color {
	case "always":
		return true
	case "never":
		return false
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == ""
}

func (c *showCmd) width(w io.Writer) int {
	if c.Width > 0 {
		return c.Width
	}
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 20 {
			return n
		}
	}
	return 100
}

// view prints rows.
type view struct {
	color bool
	width int
}

const (
	styleNone    = "\x1b[0m"
	styleContext = "\x1b[90m"
	styleTrained = "\x1b[1;32m"
	styleRule    = "\x1b[36m"
)

func (v view) paint(style, s string) string {
	if !v.color {
		return s
	}
	return style + s + styleNone
}

// row prints the facts of a row and its text: trained tokens green, or between
// «» without colour, with a rule before each message.
func (v view) row(w io.Writer, m *tokenize.Model, s *rollout.Sample) error {
	out := bufio.NewWriter(w)
	adv := "none"
	if s.Advantage != nil {
		adv = fmt.Sprintf("%+.4f", *s.Advantage)
	}
	fmt.Fprintf(out, "row %s  group %s  steps %d to %d  status %s (%s)\n", s.ID, s.Group, s.FirstStep, s.LastStep, s.Status, s.FinishReason)
	fmt.Fprintf(out, "%d tokens, %d trained  reward %g  advantage %s\n", s.Len(), s.Trained(), s.Reward, adv)
	vocab := m.Tokenizer.Vocab()
	special := map[rollout.TokenID]bool{}
	for _, a := range vocab.Added() {
		special[a.ID] = a.Special
	}
	message, boundary := 0, true
	for i := 0; i < s.Len(); {
		trained := s.Weight[i] > 0
		if boundary {
			v.rule(out, message, i)
			message, boundary = message+1, false
		}
		end := i + 1
		for end < s.Len() && (s.Weight[end] > 0) == trained && !v.starts(m, special, s, end) {
			end++
		}
		text, err := m.Tokenizer.Decode(s.IDs[i:end])
		if err != nil {
			return err
		}
		if end < s.Len() && v.starts(m, special, s, end) {
			boundary = true
			text = strings.TrimSuffix(text, "\n")
		}
		style := styleContext
		if trained {
			style = styleTrained
		}
		if !v.color && trained {
			text = "«" + text + "»"
		}
		for k, line := range strings.Split(text, "\n") {
			if k > 0 {
				out.WriteByte('\n')
			}
			if line != "" {
				out.WriteString(v.paint(style, line))
			}
		}
		if boundary {
			out.WriteByte('\n')
		}
		i = end
	}
	out.WriteByte('\n')
	return errors.Join(out.Flush())
}

// starts reports whether a message begins at token i: at a special token that
// does not end the message before.
func (v view) starts(m *tokenize.Model, special map[rollout.TokenID]bool, s *rollout.Sample, i int) bool {
	return special[s.IDs[i]] && !m.IsStop(s.IDs[i]) && (i == 0 || !special[s.IDs[i-1]] || m.IsStop(s.IDs[i-1]))
}

func (v view) rule(out *bufio.Writer, message, token int) {
	head := fmt.Sprintf("── message %d, token %d ", message, token)
	fmt.Fprintln(out, v.paint(styleRule, head+strings.Repeat("─", max(0, v.width-len([]rune(head))))))
}
