package bpe

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/model"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/norm"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/pretok"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// Split patterns of published tiktoken encodings.
const (
	patternR50K   = `'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s`
	patternCL100K = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`
	patternLlama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternQwen   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternO200K  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternKimi   = `[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// knownRanks maps the sha256 of a published rank file to its pattern.
var knownRanks = map[string]string{
	"306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": patternR50K,
	"94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": patternR50K,
	"223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": patternCL100K,
	"446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": patternO200K,
	"82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55": patternLlama3,
	"b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186": patternQwen,
	"b6c497a7469b33ced9c38afb1ad6e47f03f5e5dc05f15930799210ec050c5103": patternKimi,
}

// LoadTiktokenFS loads dir/tiktoken.model with dir/tokenizer_config.json, whose added_tokens_decoder lists the added
// tokens. The split pattern is that of the published encoding with these ranks, or of the family that the
// configuration names.
func LoadTiktokenFS(fsys fs.FS, dir string) (engine.Tokenizer, error) {
	name := path.Join(dir, "tiktoken.model")
	ranks, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: name}, "the tokenizer cannot be read: %w", err)
	}
	config, err := fs.ReadFile(fsys, path.Join(dir, "tokenizer_config.json"))
	if err != nil {
		return nil, rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: path.Join(dir, "tokenizer_config.json")}, "the added tokens cannot be read: %w", err)
	}
	return parseTiktoken(name, ranks, config)
}

// parseTiktoken returns the tokenizer of ranks, lines of base64 text and rank. Offsets are exact byte ranges, also
// inside characters. config may be nil; name is used only in errors.
func parseTiktoken(name string, ranks, config []byte) (engine.Tokenizer, error) {
	l := &loader{file: name, u: uni.Load()}
	sum := sha256.Sum256(ranks)
	added, family, err := l.tiktokenConfig(config)
	if err != nil {
		return nil, err
	}
	pattern := knownRanks[hex.EncodeToString(sum[:])]
	if pattern == "" && family {
		pattern = patternKimi
	}
	if pattern == "" {
		return nil, l.damaged("", "the split pattern of these ranks is not known").
			WithFix("make a tokenizer.json of them: convert_tiktoken_to_fast of transformers.integrations.tiktoken")
	}
	m, err := l.ranks(ranks)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	fmt.Fprintf(h, "tiktoken\n%x\n%s\n", sum, pattern)
	for _, a := range added {
		fmt.Fprintf(h, "%d %q %v\n", a.ID, a.Content, a.Special)
	}
	return l.tiktoken(m, "sha256:"+hex.EncodeToString(h.Sum(nil)), pattern, added)
}

// tiktoken builds the tokenizer from its parts.
func (l *loader) tiktoken(m *model.Model, digest, pattern string, added []engine.AddedToken) (engine.Tokenizer, error) {
	if !m.Raw() {
		return nil, l.damaged("", "the ranks lack some single byte, so some text could not be encoded")
	}
	t := &tokenizer{u: l.u, raw: true, exact: true, decoder: chain{byteLevel}, model: m, digest: digest}
	t.splitter = pretok.KnownOfTiktoken(l.u, pattern)
	if err := l.tiktokenAdded(t, added); err != nil {
		return nil, err
	}
	t.finish()
	return t, nil
}

// tiktokenConfig returns the added tokens in id order, and whether the configuration names the Kimi tokenizer.
func (l *loader) tiktokenConfig(config []byte) (added []engine.AddedToken, kimi bool, err error) {
	if config == nil {
		return nil, false, nil
	}
	var c struct {
		Added   map[string]addedFile       `json:"added_tokens_decoder"`
		AutoMap map[string]json.RawMessage `json:"auto_map"`
	}
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, false, l.damaged("/added_tokens_decoder", "the tokenizer configuration cannot be read: %w", err)
	}
	for key, f := range c.Added {
		id, err := strconv.Atoi(key)
		if err != nil || f.Content == nil || id < 0 || id >= model.MaxID {
			return nil, false, l.damaged("/added_tokens_decoder/"+key, "the entry needs content, and an id in [0, %d)", model.MaxID)
		}
		added = append(added, engine.AddedToken{ID: rollout.TokenID(id), Content: *f.Content, Special: f.Special})
	}
	sortAdded(added)
	return added, bytes.Contains(c.AutoMap["AutoTokenizer"], []byte("tokenization_kimi.")), nil
}

func (l *loader) tiktokenAdded(t *tokenizer, added []engine.AddedToken) error {
	seen := map[string]bool{}
	for _, a := range added {
		if a.ID < 0 || a.ID >= model.MaxID || a.Content == "" || seen[a.Content] {
			return l.damaged("", "the added token %d %q has an id outside [0, %d), no content, or the content of another", a.ID, a.Content, model.MaxID)
		}
		seen[a.Content] = true
		a.LStrip, a.RStrip, a.SingleWord, a.Normalized = false, false, false, false
		t.early = append(t.early, a)
	}
	return l.match(t)
}

// ranks reads the rank file. tiktoken joins any two neighbours whose text is a token, lowest rank first, so every way
// to cut a token in two is a merge.
func (l *loader) ranks(data []byte) (*model.Model, error) {
	v := model.NewVocab(bytes.Count(data, []byte{'\n'})+1, 2*len(data))
	var ids []int
	var raw, spelled []byte
	for n, line := range bytes.Split(data, []byte{'\n'}) {
		line = bytes.TrimRight(line, "\r")
		if len(line) == 0 {
			continue
		}
		text, rank, ok := bytes.Cut(line, []byte{' '})
		id, err := strconv.Atoi(string(rank))
		if ok && err == nil {
			raw, err = base64.StdEncoding.AppendDecode(raw[:0], text)
		}
		if len(raw) > maxAddedToken {
			return nil, rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: l.file, Line: n + 1}, "the token has %d bytes, more than %d", len(raw), maxAddedToken)
		}
		if !ok || err != nil || len(raw) == 0 {
			return nil, rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: l.file, Line: n + 1}, "expected base64 text, a space and a rank, found %.60q", line)
		}
		spelled = spelled[:0]
		for _, b := range raw {
			spelled = utf8.AppendRune(spelled, norm.ByteChar(b))
		}
		if err := v.Add(spelled, id); err != nil {
			return nil, rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: l.file, Line: n + 1}, "%w", err)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	m := &model.Model{Vocab: v, IgnoreMerges: true, Exact: true, Unk: -1}
	return m, m.Init(norm.ByteChar, unspell, func() (*model.Pairs, error) {
		pairs := model.NewPairs(2 * len(ids))
		for i, id := range ids {
			if i > 0 && ids[i-1] == id {
				return nil, l.damaged("", "rank %d occurs twice", id)
			}
			text, _ := v.Bytes(id)
			for k := 0; k < len(text); {
				_, size := uni.DecodeRune(text[k:])
				if k += size; k == len(text) {
					break
				}
				if a := v.Find(text[:k]); a >= 0 {
					if b := v.Find(text[k:]); b >= 0 {
						pairs.Add(a, b, int32(id), uint32(id))
					}
				}
			}
		}
		return pairs, nil
	})
}
