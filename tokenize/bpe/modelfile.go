package bpe

import (
	"bytes"
	"encoding/json"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/model"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/norm"
	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// modelFile is the model section. The two big tables are read value by value.
type modelFile struct {
	Type         string   `json:"type"`
	Dropout      *float64 `json:"dropout"`
	UnkToken     *string  `json:"unk_token"`
	Prefix       *string  `json:"continuing_subword_prefix"`
	Suffix       *string  `json:"end_of_word_suffix"`
	FuseUnk      bool     `json:"fuse_unk"`
	ByteFallback bool     `json:"byte_fallback"`
	IgnoreMerges bool     `json:"ignore_merges"`

	vocab, merges jsonscan.Value
}

func (l *loader) readModel(v jsonscan.Value) (*modelFile, error) {
	if v.Kind() != jsonscan.Object {
		return nil, l.damaged("/model", "expected an object")
	}
	m := &modelFile{}
	small := map[string]json.RawMessage{}
	for key, value := range v.Members() {
		switch key {
		case "vocab":
			m.vocab = value
		case "merges":
			m.merges = value
		default:
			small[key] = value.Raw()
		}
	}
	data, err := json.Marshal(small)
	if err == nil {
		err = json.Unmarshal(data, m)
	}
	if err != nil {
		return nil, l.damaged("/model", "the model cannot be read: %w", err)
	}
	return m, nil
}

// text returns the decoded string v, which shares memory with the file unless it has escapes. It returns false if v
// is not a string of Unicode characters.
func text(v jsonscan.Value) ([]byte, bool) {
	return v.Key(), v.Kind() == jsonscan.String && !v.LoneSurrogate()
}

func (l *loader) readVocab(entries jsonscan.Value) (*model.Vocab, error) {
	v := model.NewVocab(entries.Within()/2, entries.Size())
	for key, value := range entries.Fields() {
		id, ok := value.Int()
		spelling, isText := text(key)
		if !ok || !isText {
			return nil, l.damaged("/model/vocab", "byte %d: expected a text and a whole number, found %.40s: %.20s", key.Offset(), key.Raw(), value.Raw())
		}
		if err := v.Add(spelling, id); err != nil {
			return nil, l.damaged("/model/vocab", "%w", err)
		}
	}
	return v, nil
}

// model validates the description and builds the model. spelled is set if pieces have the byte-level spelling.
func (l *loader) model(f *modelFile, spelled bool) (*model.Model, error) {
	if f.Type != "BPE" && !(f.Type == "" && f.merges.Kind() == jsonscan.Array) {
		return nil, l.refuse("/model/type", "the model %q, only BPE", f.Type)
	}
	if f.Dropout != nil && *f.Dropout != 0 {
		return nil, l.refuse("/model/dropout", "dropout (here %v), which gives random ids", *f.Dropout)
	}
	if f.vocab.Kind() != jsonscan.Object || f.merges.Kind() != jsonscan.Array {
		return nil, l.damaged("/model", "a BPE model needs vocab, an object, and merges, a list")
	}
	m := &model.Model{}
	var err error
	if m.Vocab, err = l.readVocab(f.vocab); err != nil {
		return nil, err
	}
	m.IgnoreMerges, m.FuseUnk, m.ByteFallback, m.Unk = f.IgnoreMerges, f.FuseUnk, f.ByteFallback, -1
	m.Prefix, m.Suffix = or(f.Prefix, ""), or(f.Suffix, "")
	if m.ByteFallback && (m.Prefix != "" || m.Suffix != "") {
		return nil, l.refuse("/model/byte_fallback", "byte_fallback together with a subword prefix or word suffix")
	}
	for _, x := range [][2]string{{"unk_token", or(f.UnkToken, "")}, {"continuing_subword_prefix", m.Prefix}, {"end_of_word_suffix", m.Suffix}} {
		if n := len(x[1]); n > maxAddedToken { // any character may stand for it
			return nil, l.damaged("/model/"+x[0], "the text has %d bytes, more than %d", n, maxAddedToken)
		}
	}
	if f.UnkToken != nil {
		if m.Unk = m.Vocab.Find([]byte(*f.UnkToken)); m.Unk < 0 {
			m.Unk = model.MissingUnk
		}
	}
	merges := func() (*model.Pairs, error) { return l.readMerges(f.merges, m.Vocab, len(m.Prefix)) }
	if spelled {
		return m, m.Init(norm.ByteChar, unspell, merges)
	}
	return m, m.Init(nil, nil, merges)
}

// readMerges reads both forms, "a b" and ["a", "b"]. Of equal pairs the last one wins, as in the reference.
func (l *loader) readMerges(list jsonscan.Value, v *model.Vocab, prefix int) (*model.Pairs, error) {
	pairs := model.NewPairs(v.Len()) // few vocabularies have more merges than entries
	var rank uint32
	var parts [][]byte // of the next merges: both parts and the product
	var ids [model.Many]int32
	var joined []byte
	add := func() error {
		v.FindAll(ids[:len(parts)], parts)
		for i := 0; i < len(parts); i += 3 {
			if ids[i] < 0 || ids[i+1] < 0 || ids[i+2] < 0 || len(parts[i+1]) < prefix {
				return l.damaged("/model/merges", "merge %d joins %q and %q, and one of them or the result is not in the vocabulary", rank, parts[i], parts[i+1])
			}
			pairs.Add(ids[i], ids[i+1], ids[i+2], rank)
			rank++
		}
		parts, joined = parts[:0], joined[:0]
		return nil
	}
	for _, item := range list.Items() {
		a, ok := text(item)
		if ok && bytes.HasPrefix(a, []byte("#version")) {
			continue
		}
		var b []byte
		if ok {
			a, b, ok = bytes.Cut(a, []byte{' '})
			ok = ok && bytes.IndexByte(b, ' ') < 0
		} else if x, y, two := item.Pair(); two {
			a, ok = text(x)
			b, two = text(y)
			ok = ok && two
		}
		if len(parts)+3 > model.Many || !ok {
			if err := add(); err != nil {
				return nil, err
			}
		}
		if !ok {
			return nil, l.damaged("/model/merges", "merge %d is %.80s, want two parts with one space between, or a list of two", rank, item.Raw())
		}
		from := len(joined)
		joined = append(append(joined, a...), b[min(prefix, len(b)):]...)
		parts = append(parts, a, b, joined[from:])
	}
	return pairs, add()
}

// unspell appends the bytes of a byte-level spelling to dst. It returns dst unchanged and false if a character stands
// for no byte.
func unspell(dst, b []byte) ([]byte, bool) {
	n := len(dst)
	for i := 0; i < len(b); {
		r, size := uni.DecodeRune(b[i:])
		c, ok := norm.CharByte(r)
		if !ok {
			return dst[:n], false
		}
		dst = append(dst, c)
		i += size
	}
	return dst, true
}
