package bpe

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/turnpack/turnpack/tokenize/bpe/internal/model"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/norm"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/tjson"
	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// modelFile is the model section; the two big tables are read by hand.
type modelFile struct {
	Type         string   `json:"type"`
	Dropout      *float64 `json:"dropout"`
	UnkToken     *string  `json:"unk_token"`
	Prefix       *string  `json:"continuing_subword_prefix"`
	Suffix       *string  `json:"end_of_word_suffix"`
	FuseUnk      bool     `json:"fuse_unk"`
	ByteFallback bool     `json:"byte_fallback"`
	IgnoreMerges bool     `json:"ignore_merges"`

	vocab    *model.Vocab
	merges   []byte       // raw
	compiled *model.Model // instead of both
}

// release drops the tables once the model has them.
func (f *modelFile) release() { f.vocab, f.merges, f.compiled = nil, nil, nil }

func (l *loader) readModel(s *tjson.Scanner) (*modelFile, error) {
	if s.Peek() != '{' {
		return nil, l.damaged("/model", "expected an object")
	}
	m := &modelFile{}
	var small bytes.Buffer
	small.WriteByte('{')
	var err error
	s.Object(func(key []byte) {
		switch string(key) {
		case "vocab":
			if s.Peek() == '{' {
				m.vocab, err = l.readVocab(s)
				if err != nil {
					s.Fail("%v", err)
				}
			} else {
				s.Raw() // a list is another kind of model's
			}
		case "merges":
			m.merges = s.Raw()
		default:
			name, _ := json.Marshal(string(key))
			if small.Len() > 1 {
				small.WriteByte(',')
			}
			small.Write(name)
			small.WriteByte(':')
			small.Write(s.Raw())
		}
	})
	if err != nil || s.Err() != nil {
		return m, err // the caller reports the scanner's failure
	}
	small.WriteByte('}')
	if err := json.Unmarshal(small.Bytes(), m); err != nil {
		return nil, l.damaged("/model", "the model cannot be read: %w", err)
	}
	return m, nil
}

func (l *loader) readVocab(s *tjson.Scanner) (*model.Vocab, error) {
	v := model.NewVocab(1<<17, 1<<20)
	var err error
	s.Object(func(key []byte) {
		id := s.Int()
		if s.Err() == nil && err == nil {
			err = v.Add(key, id)
		}
	})
	if err != nil {
		return nil, l.damaged("/model/vocab", "%w", err)
	}
	return v, nil
}

// model checks the description and builds the model. spelled says that pieces
// come in the byte-level spelling.
func (l *loader) model(f *modelFile, spelled bool) (*model.Model, error) {
	if f.Type != "BPE" && !(f.Type == "" && (f.merges != nil || f.compiled != nil)) {
		return nil, l.refuse("/model/type", "the model %q, only BPE", f.Type)
	}
	if f.Dropout != nil && *f.Dropout != 0 {
		return nil, l.refuse("/model/dropout", "dropout (here %v), which gives random ids", *f.Dropout)
	}
	m := f.compiled
	if m == nil {
		if f.vocab == nil || f.merges == nil {
			return nil, l.damaged("/model", "a BPE model needs vocab and merges")
		}
		m = &model.Model{Vocab: f.vocab}
	}
	m.IgnoreMerges, m.FuseUnk, m.ByteFallback, m.Unk = f.IgnoreMerges, f.FuseUnk, f.ByteFallback, -1
	if f.Prefix != nil {
		m.Prefix = *f.Prefix
	}
	if f.Suffix != nil {
		m.Suffix = *f.Suffix
	}
	if m.ByteFallback && (m.Prefix != "" || m.Suffix != "") {
		return nil, l.refuse("/model/byte_fallback", "byte_fallback together with a subword prefix or word suffix")
	}
	if f.UnkToken != nil {
		if m.Unk = m.Vocab.Find([]byte(*f.UnkToken)); m.Unk < 0 {
			m.Unk = model.MissingUnk
		}
	}
	if m.Pairs == nil {
		var err error
		if m.Pairs, err = l.readMerges(f.merges, f.vocab, len(m.Prefix)); err != nil {
			return nil, err
		}
	}
	if spelled {
		m.Init(norm.ByteChar, unspell)
	} else {
		m.Init(nil, nil)
	}
	return m, nil
}

// readMerges reads both forms, "a b" and ["a", "b"]. Of equal pairs the last
// one counts, as in the reference.
func (l *loader) readMerges(raw []byte, v *model.Vocab, prefix int) (*model.Pairs, error) {
	s := tjson.New(raw)
	pairs := model.NewPairs(v.Len()) // few vocabularies have more merges than entries
	var rank uint32
	var joined []byte
	var err error
	s.Array(func() {
		var a, b []byte
		if s.Peek() == '[' {
			n := 0
			s.Array(func() {
				part := s.String()
				switch n++; n {
				case 1:
					a = part
				case 2:
					b = part
				}
			})
			if n != 2 && s.Err() == nil {
				err = fmt.Errorf("merge %d has %d parts, want 2", rank, n)
			}
		} else {
			line := s.String()
			if bytes.HasPrefix(line, []byte("#version")) {
				return
			}
			k := bytes.IndexByte(line, ' ')
			if s.Err() == nil && (k < 0 || bytes.IndexByte(line[k+1:], ' ') >= 0) {
				err = fmt.Errorf("merge %d is %q, want two parts with one space between", rank, line)
			} else if k >= 0 {
				a, b = line[:k], line[k+1:]
			}
		}
		if s.Err() != nil {
			return
		}
		ia, ib := v.Find(a), v.Find(b)
		into := int32(-1)
		if err == nil && len(b) >= prefix {
			joined = append(append(joined[:0], a...), b[prefix:]...)
			into = v.Find(joined)
		}
		if err == nil && (ia < 0 || ib < 0 || into < 0) {
			err = fmt.Errorf("merge %d joins %q and %q, and one of them or the result is not in the vocabulary", rank, a, b)
		}
		if err != nil {
			s.Fail("%v", err)
			return
		}
		pairs.Add(ia, ib, into, rank)
		rank++
	})
	s.End()
	if s.Err() != nil {
		return nil, l.damaged("/model/merges", "the merges cannot be read: %w", s.Err())
	}
	return pairs, nil
}

// unspell appends the bytes of a byte-level spelling to dst; false, and dst as it
// was, where it holds a character that spells no byte.
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
