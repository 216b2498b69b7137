package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/examples/turnpack/internal/show"
	"github.com/turnpack/turnpack/internal/modelfolder"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/certify"
)

type certifyCmd struct {
	Model    string `help:"Model folder: tokenizer.json and a chat template." required:"" type:"path"`
	Template string `help:"Chat template of the folder by its name, or a file in its place (with a dot or a slash)." placeholder:"NAME|FILE"`
	Mode     string `help:"Rows that are to be made: merged, perstep or whole. What they need decides the exit code." enum:"merged,perstep,whole" default:"merged"`
	Engine   string `help:"Tokenizer engine." enum:"bpe,hf" default:"bpe"`
	JSON     bool   `help:"Print the certificate with its probe conversations as JSON." name:"json"`
}

// Help returns the long help text.
func (c *certifyCmd) Help() string {
	return "A folder whose rollouts with tools take a template of their own (tool_use) gets a table for each. Exit code 0: what the mode needs holds. 1: it does not, or the template refuses what would show it. 2: there is nothing to certify (a folder, tokenizer or template that cannot be read)."
}

// Run certifies a model's chat template. It returns an error if a property that the mode
// needs fails.
func (c *certifyCmd) Run(p *cli.Program) error {
	model, err := modelfolder.Load(c.Model, c.Template, c.Engine)
	if err != nil {
		return cli.Mistake(err)
	}
	mode := tokenize.Mode(c.Mode)
	cert, err := certify.Model(p.Ctx, model)
	if e, ok := errors.AsType[*rollout.Error](err); ok && (e.Kind == rollout.KindTemplate || e.Kind == rollout.KindLimit) {
		none := *e
		none.Where.File = c.Model
		return cli.Mistake(&none)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		err = p.JSON(cert)
	} else {
		_, err = io.WriteString(p.Out, certificates(cert, mode))
	}
	if err != nil {
		return err
	}
	if missing := cert.Missing(mode); len(missing) > 0 {
		return rollout.Errorf(rollout.KindTemplate, rollout.Where{File: c.Model}, "%s rows need what the template lacks or refuses to show: %s", mode, propertyNames(missing))
	}
	return nil
}

func propertyNames(list []certify.Property) string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = string(p)
	}
	return strings.Join(names, ", ")
}

// certificates returns a table for each template that rollouts use.
func certificates(cert *certify.Certificate, mode tokenize.Mode) string {
	if cert.ToolUse == nil {
		return certificate(cert, mode)
	}
	plain := "no template default: the text of rollouts without tools is refused\n"
	if len(cert.Findings) > 0 {
		plain = "template default, for rollouts without tools\n" + certificate(cert, mode)
	}
	return plain +
		"\ntemplate tool_use, for rollouts with tools\n" + certificate(cert.ToolUse, mode)
}

// certificate returns the table of one template for a terminal of 80 columns: what was
// observed and, where a property fails, the conversation that shows it and advice.
func certificate(cert *certify.Certificate, mode tokenize.Mode) string {
	const indent = 31
	text := show.Printer{Width: 80 - indent}
	var b strings.Builder
	fmt.Fprintf(&b, "  %-17s   %-7s  what was seen\n", "property", "")
	for _, f := range cert.Findings {
		needed := " "
		if slices.Contains(certify.Needed(mode), f.Property) {
			needed = "*"
		}
		lines := []string{show.Visible(f.Detail)}
		if f.Verdict == certify.Fails {
			lines = append(lines, "shown by: "+witness(f.Witness), "advice: "+f.Advice)
		}
		var said []string
		for _, l := range lines {
			said = append(said, strings.Split(text.Wrap(l), "\n")...)
		}
		head := fmt.Sprintf("  %-17s %s %-7s  ", f.Property, needed, f.Verdict)
		for _, l := range said {
			fmt.Fprintln(&b, strings.TrimRight(head+l, " "))
			head = strings.Repeat(" ", indent)
		}
	}
	fmt.Fprintf(&b, "  * %s rows need it\n", mode)
	return b.String()
}

// witness returns a probe conversation in short form.
func witness(messages []rollout.Message) string {
	var out []string
	for _, m := range messages {
		said := []string{string(m.Role)}
		if m.Reasoning != "" {
			said = append(said, fmt.Sprintf("thinking %q", m.Reasoning))
		}
		if m.Content != "" {
			said = append(said, fmt.Sprintf("%q", m.Content))
		}
		for _, c := range m.ToolCalls {
			said = append(said, "calling "+c.Name)
		}
		out = append(out, strings.Join(said, " "))
	}
	return strings.Join(out, ", ")
}
