package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

type certifyCmd struct {
	Model  string `help:"Model folder." required:"" type:"path"`
	Mode   string `help:"Mode whose needed properties decide the exit code." enum:"merged,perstep,whole" default:"merged"`
	Engine string `help:"Tokenizer engine." enum:"bpe,hf" default:"bpe"`
	JSON   bool   `help:"Print the certificate with its witnesses as JSON." name:"json"`
}

// Run certifies a model's chat template; a needed property that fails is an
// error.
func (c *certifyCmd) Run(p *program) error {
	model, err := loadModel(c.Model, c.Engine)
	if err != nil {
		return err
	}
	mode, err := tokenize.ParseMode(c.Mode)
	if err != nil {
		return err
	}
	cert, err := tokenize.Certify(p.ctx, model)
	if err != nil {
		return err
	}
	if c.JSON {
		e := json.NewEncoder(p.out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		if err := e.Encode(cert); err != nil {
			return err
		}
	} else if err := certifyTable(p.out, cert); err != nil {
		return err
	}
	if missing := cert.Missing(mode); len(missing) > 0 {
		return rollout.Errorf(rollout.KindTemplate, rollout.Where{File: c.Model}, "mode %s needs %v, which fails", mode, missing).
			WithFix("see the witness in --json")
	}
	return nil
}

func certifyTable(w io.Writer, cert *tokenize.Certificate) error {
	for _, f := range cert.Findings {
		if _, err := fmt.Fprintf(w, "  %-18s %-6s %s\n", f.Property, f.Verdict, f.Detail); err != nil {
			return err
		}
	}
	return nil
}
