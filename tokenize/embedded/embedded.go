package embedded

import (
	"embed"

	"github.com/turnpack/turnpack/tokenize"
)

//go:embed tokenizer.json tokenizer_config.json chat_template.jinja
var files embed.FS

// Model loads the embedded model.
func Model() (*tokenize.Model, error) { return tokenize.Load(".", tokenize.LoadOptions{FS: files}) }
