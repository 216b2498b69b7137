//go:build cgo && turnpack_hf

package verbs

import (
	"io"
	"os"
	"path/filepath"

	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/hf"
)

// cgoEngines adds the Hugging Face engine.
func cgoEngines() map[string]func(path string) (engine.Tokenizer, error) {
	return map[string]func(path string) (engine.Tokenizer, error){"hf": openHF}
}

func openHF(path string) (engine.Tokenizer, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "tokenizer.json")
	}
	r, err := openMaybeCompressed(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return orNil(hf.Load(path, data))
}
