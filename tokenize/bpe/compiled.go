package bpe

import (
	"encoding/binary"
	"encoding/json"
	"math"

	"github.com/turnpack/turnpack/tokenize/bpe/internal/model"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/norm"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// A compiled tokenizer (.tpk) is the description of its parts as JSON and the big
// tables as they lie in memory:
//
//	magic     8 bytes, little-endian 'TPK2' and zeros
//	checksum  8 bytes, of all that follows; it tells damage, not forgery, which
//	          the checks of the tables have to bear
//	header    8 bytes length, then JSON, with spaces up to 8 bytes
//	tables    vocabulary, merges, widths
const (
	compiledMagic  = 'T' | 'P'<<8 | 'K'<<16 | '2'<<24
	compiledPrefix = 8 + 8
)

// source is the description of a tokenizer without its tables.
type source struct {
	Digest        string              `json:"digest"`
	Added         json.RawMessage     `json:"added_tokens,omitempty"`
	Normalizer    json.RawMessage     `json:"normalizer,omitempty"`
	PreTokenizer  json.RawMessage     `json:"pre_tokenizer,omitempty"`
	PostProcessor json.RawMessage     `json:"post_processor,omitempty"`
	Decoder       json.RawMessage     `json:"decoder,omitempty"`
	Model         *modelFile          `json:"model,omitempty"`
	Pattern       string              `json:"pattern,omitempty"` // tiktoken
	Tokens        []engine.AddedToken `json:"tokens,omitempty"`  // tiktoken
}

// AppendCompiled appends the compiled form of t (.tpk), which [ParseCompiled]
// loads many times faster than the file t came from. Equal tokenizers give equal
// bytes.
func (t *Tokenizer) AppendCompiled(dst []byte) ([]byte, error) {
	if err := t.made(); err != nil {
		return dst, err
	}
	src := t.source
	src.Digest = t.digest
	header, err := json.Marshal(src)
	if err != nil {
		return dst, err
	}
	header = append(header, "       "[:-len(header)&7]...)
	body := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	body = t.model.Tables(append(body, header...))
	dst = binary.NativeEndian.AppendUint64(dst, compiledMagic)
	dst = binary.LittleEndian.AppendUint64(dst, model.Checksum(body))
	return append(dst, body...), nil
}

// IsCompiled reports whether data begins as a compiled tokenizer.
func IsCompiled(data []byte) bool {
	return len(data) >= compiledPrefix && binary.NativeEndian.Uint64(data) == compiledMagic
}

// ParseCompiled makes a tokenizer from its compiled form, after checking its
// checksum and every index in its tables. The digest of the result is that of
// the tokenizer that was compiled. name is used in errors only. The tables stay
// in data, which the tokenizer keeps: it must not change afterwards.
func ParseCompiled(name string, data []byte) (*Tokenizer, error) {
	l := &loader{file: name, u: uni.Load()}
	if !IsCompiled(data) {
		return nil, l.damaged("", "the file is not a compiled tokenizer of this machine's byte order").WithFix("compile the tokenizer again, here")
	}
	data = model.Aligned(data)
	body := data[compiledPrefix:]
	if model.Checksum(body) != binary.LittleEndian.Uint64(data[8:]) {
		return nil, l.damaged("", "the compiled tokenizer does not have its own checksum").WithFix("compile the tokenizer again")
	}
	n := uint64(math.MaxUint64)
	if len(body) >= 8 {
		n = binary.LittleEndian.Uint64(body)
		body = body[8:]
	}
	if n > uint64(len(body)) || n%8 != 0 {
		return nil, l.damaged("", "the compiled tokenizer is cut off")
	}
	var src source
	if err := json.Unmarshal(body[:n], &src); err != nil {
		return nil, l.damaged("", "the compiled tokenizer's header cannot be read: %w", err)
	}
	compiled := &model.Model{Unk: -1}
	if err := compiled.ReadTables(body[n:]); err != nil {
		return nil, l.damaged("", "the compiled tokenizer cannot be used: %w", err)
	}
	if src.Pattern != "" {
		compiled.IgnoreMerges = true
		compiled.Init(norm.ByteChar, unspell)
		return l.tiktoken(compiled, src)
	}
	if src.Model == nil {
		return nil, l.damaged("", "the compiled tokenizer has no model")
	}
	src.Model.compiled = compiled
	return l.build(src)
}
