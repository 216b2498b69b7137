package verbs

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/turnpack/turnpack/internal/modelfolder"
	"github.com/turnpack/turnpack/internal/plumb/pipe"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/bpe"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// openTokenizer opens a tokenizer.json, a rank file or a model folder with the named engine.
func openTokenizer(path, name string) (engine.Tokenizer, error) {
	load, err := modelfolder.EngineOf(name)
	if err != nil {
		return nil, err
	}
	ext := filepath.Ext(path)
	if load == nil && ext != ".gz" && ext != ".zst" {
		return bpe.Open(path)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "tokenizer.json")
	}
	data, err := pipe.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if load == nil {
		return bpe.Parse(path, data)
	}
	return load(path, data)
}

// tokenizerFlags registers the flags that select a tokenizer. The function it returns
// opens it.
func tokenizerFlags(fs *flag.FlagSet) func() (engine.Tokenizer, error) {
	path := fs.String("tokenizer", "", "tokenizer.json (also .gz, .zst), tiktoken.model, or the folder of one")
	name := fs.String("engine", "bpe", "tokenizer engine: bpe, or hf in a build that has it")
	return func() (engine.Tokenizer, error) {
		if *path == "" {
			return nil, fmt.Errorf("--tokenizer is missing")
		}
		return openTokenizer(*path, *name)
	}
}

type idsOut struct {
	IDs     []rollout.TokenID `json:"ids"`
	Offsets *[]int32          `json:"offsets,omitempty"` // nil if not requested
}

func idsVerb() pipe.Verb {
	return pipe.Verb{Name: "ids", Help: "encode text", Setup: func(fs *flag.FlagSet) func() (pipe.Run, error) {
		open := tokenizerFlags(fs)
		literal := fs.Bool("literal", false, "take special added tokens for plain text")
		plain := fs.Bool("plain", false, "take every added token for plain text")
		offsets := fs.Bool("offsets", false, "give byte ranges, too")
		return func() (pipe.Run, error) {
			tok, err := open()
			if err != nil {
				return pipe.Run{}, err
			}
			opts := engine.EncodeOptions{Offsets: *offsets}
			switch {
			case *plain:
				opts.Added = engine.NoAdded
			case *literal:
				opts.Added = func(m engine.AddedMatch) bool { return !m.Token.Special }
			}
			return pipe.Run{Lines: func(_ context.Context, line []byte) (any, error) {
				var in struct {
					Text *string `json:"text"`
				}
				if err := json.Unmarshal(line, &in); err != nil || in.Text == nil {
					return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "text"}, "the line needs a string text")
				}
				e := engine.Encoding{IDs: []rollout.TokenID{}, Offsets: []int32{}}
				if err := tok.Encode(&e, *in.Text, opts); err != nil {
					return nil, err
				}
				out := idsOut{IDs: e.IDs}
				if *offsets {
					out.Offsets = &e.Offsets
				}
				return out, nil
			}}, nil
		}
	}}
}

func decodeVerb() pipe.Verb {
	return pipe.Verb{Name: "decode", Help: "decode ids", Setup: func(fs *flag.FlagSet) func() (pipe.Run, error) {
		open := tokenizerFlags(fs)
		return func() (pipe.Run, error) {
			tok, err := open()
			if err != nil {
				return pipe.Run{}, err
			}
			return pipe.Run{Lines: func(_ context.Context, line []byte) (any, error) {
				var in struct {
					IDs []rollout.TokenID `json:"ids"`
				}
				if err := json.Unmarshal(line, &in); err != nil || in.IDs == nil {
					return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "ids"}, "the line needs a list ids of whole numbers")
				}
				text, err := tok.Decode(in.IDs)
				return struct {
					Text string `json:"text"`
				}{text}, err
			}}, nil
		}
	}}
}
