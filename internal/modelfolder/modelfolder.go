// Package modelfolder reads the model folders named by --model and --template.
package modelfolder

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Load reads a model folder with the named tokenizer engine, "" for the default one.
// template is the name of a chat template in it or, with a dot or a path separator, a file
// to use instead; "" uses those for rollouts with and without tools.
func Load(dir, template, engine string) (*tokenize.Model, error) {
	load, err := EngineOf(cmp.Or(engine, "bpe"))
	if err != nil {
		return nil, err
	}
	o := tokenize.LoadOptions{Engine: load, Template: template}
	if !strings.ContainsAny(template, `./\`) {
		return tokenize.Load(dir, o)
	}
	where := rollout.Where{File: template}
	text, err := os.ReadFile(template)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, rollout.Errorf(rollout.KindInput, where, "there is no such chat template").WithFix("name a file, or a template of the model folder (tool_use) without its path and ending")
	case err != nil:
		return nil, rollout.Errorf(rollout.KindInput, where, "the chat template cannot be read: %w", err)
	case len(text) == 0:
		return nil, rollout.Errorf(rollout.KindTemplate, where, "the chat template is empty").WithFix("name another file")
	}
	o.Template, o.TemplateText = "", string(text)
	m, err := tokenize.Load(dir, o)
	if e, ok := err.(*rollout.Error); ok && e.Where.File == "" {
		c := *e
		c.Where.File = filepath.Clean(template)
		return nil, &c
	}
	return m, err
}
