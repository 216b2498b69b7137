package verbs

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/bpe"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// engines lists the tokenizer engines of this build by name. Each opens a
// tokenizer.json, a rank file or a model folder.
func engines() map[string]func(path string) (engine.Tokenizer, error) {
	table := map[string]func(path string) (engine.Tokenizer, error){"bpe": openBPE}
	maps.Copy(table, cgoEngines())
	return table
}

func openBPE(path string) (engine.Tokenizer, error) {
	if ext := filepath.Ext(path); ext != ".gz" && ext != ".zst" {
		return orNil(bpe.Open(path))
	}
	r, err := openMaybeCompressed(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return orNil(bpe.Parse(path, data))
}

// orNil keeps a nil pointer from becoming an interface that is not nil.
func orNil[T engine.Tokenizer](t T, err error) (engine.Tokenizer, error) {
	if err != nil {
		return nil, err
	}
	return t, nil
}

// tokenizerFlags registers the flags that choose a tokenizer.
func tokenizerFlags(fs *flag.FlagSet) func() (engine.Tokenizer, error) {
	path := fs.String("tokenizer", "", "tokenizer.json (also .gz, .zst), tiktoken.model, or the folder of one")
	name := fs.String("engine", "bpe", "tokenizer engine: "+strings.Join(slices.Sorted(maps.Keys(engines())), " or "))
	return func() (engine.Tokenizer, error) {
		if *path == "" {
			return nil, fmt.Errorf("--tokenizer is missing")
		}
		open, ok := engines()[*name]
		if !ok {
			return nil, fmt.Errorf("--engine is %q, and this build has %s", *name, strings.Join(slices.Sorted(maps.Keys(engines())), " and "))
		}
		return open(*path)
	}
}

type idsOut struct {
	IDs     []rollout.TokenID `json:"ids"`
	Offsets *[]int32          `json:"offsets,omitempty"` // nil: not asked for
}

func idsVerb() verb {
	return verb{name: "ids", help: "encode text", setup: func(fs *flag.FlagSet) starter {
		open := tokenizerFlags(fs)
		literal := fs.Bool("literal", false, "take special added tokens for plain text")
		plain := fs.Bool("plain", false, "take every added token for plain text")
		offsets := fs.Bool("offsets", false, "give byte ranges, too")
		return func(context.Context) (running, error) {
			tok, err := open()
			if err != nil {
				return running{}, err
			}
			opts := engine.EncodeOptions{Offsets: *offsets}
			switch {
			case *plain:
				opts.Added = engine.NoAdded
			case *literal:
				opts.Added = func(m engine.AddedMatch) bool { return !m.Token.Special }
			}
			return running{lines: func(_ context.Context, line []byte) (any, error) {
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

func decodeVerb() verb {
	return verb{name: "decode", help: "decode ids", setup: func(fs *flag.FlagSet) starter {
		open := tokenizerFlags(fs)
		return func(context.Context) (running, error) {
			tok, err := open()
			if err != nil {
				return running{}, err
			}
			return running{lines: func(_ context.Context, line []byte) (any, error) {
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
