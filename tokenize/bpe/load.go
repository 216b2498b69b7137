package bpe

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/model"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/norm"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/added"
	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// Open loads a tokenizer from a tokenizer.json file, from a tiktoken rank file (*.model, *.tiktoken, with
// tokenizer_config.json beside it), or from a model folder with one of them; tokenizer.json takes precedence.
func Open(name string) (engine.Tokenizer, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: name}, "the tokenizer cannot be read: %w", err)
	}
	if info.IsDir() {
		fsys := os.DirFS(name)
		if _, err := fs.Stat(fsys, "tokenizer.json"); err == nil {
			return Open(filepath.Join(name, "tokenizer.json"))
		}
		if _, err := fs.Stat(fsys, "tiktoken.model"); err != nil {
			return nil, rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: name}, "the folder has neither tokenizer.json nor tiktoken.model")
		}
		return LoadTiktokenFS(fsys, ".")
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: name}, "the tokenizer cannot be read: %w", err)
	}
	switch filepath.Ext(name) {
	case ".model", ".tiktoken":
		config, err := os.ReadFile(filepath.Join(filepath.Dir(name), "tokenizer_config.json"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: name}, "the added tokens cannot be read: %w", err)
		}
		return parseTiktoken(name, data, config)
	}
	return Parse(name, data)
}

// Parse returns the tokenizer of a tokenizer.json file with the given content. name is used only in errors, and data
// is not kept. A component that this engine cannot reproduce exactly is a KindTokenizer error that names it.
func Parse(name string, data []byte) (engine.Tokenizer, error) {
	l := &loader{file: name}
	digest := make(chan [sha256.Size]byte, 1)
	go func() { // runs while the tables are read
		uni.Load()
		digest <- sha256.Sum256(data)
	}()
	t, err := l.parse(data)
	sum := <-digest
	if err != nil {
		return nil, err
	}
	t.digest = "sha256:" + hex.EncodeToString(sum[:])
	return t, nil
}

// loader builds a tokenizer from its description.
type loader struct {
	file    string
	u       *uni.Tables
	inserts bool       // the normalizer may insert characters without origin
	spelled bool       // the normalizer writes bytes as characters
	parts   int        // components read so far
	timed   bool       // a component matches a pattern that may backtrack
	until   *time.Time // when to give up normalizing added tokens
	form    *norm.Form // set if the normalizer is a normal form
}

const (
	// maxParts bounds the total number of normalizers, pre-tokenizers, post-processors and decoders of a file;
	// published files have up to a dozen.
	maxParts = 256
	// maxNesting bounds the nesting of sequences, maxPartBytes the size of a component with all it contains: each
	// component is parsed once more for every sequence around it.
	maxNesting   = 8
	maxPartBytes = 4 << 20
	// maxAddedBytes bounds the total size of the added tokens of a file, maxAddedToken the size of one, and
	// maxPrefixes the number of added tokens that are prefixes of one: the cost of the search at each position of a
	// text. Runs of spaces have up to a few dozen.
	maxAddedBytes = 4 << 20
	maxAddedToken = 1 << 10
	maxPrefixes   = 256
)

func (l *loader) where(field string) rollout.Where {
	return rollout.Where{File: l.file, Field: field}
}

// damaged returns the error for an invalid file.
func (l *loader) damaged(field string, format string, args ...any) *rollout.Error {
	return rollout.Errorf(rollout.KindTokenizer, l.where(field), format, args...)
}

// refuse returns the error for a component that this engine does not support.
func (l *loader) refuse(field, format string, args ...any) *rollout.Error {
	return rollout.Errorf(rollout.KindTokenizer, l.where(field), "the bpe engine does not have "+format, args...).
		WithFix("load this tokenizer with the hf engine (tokenize/hf), which has every component of Hugging Face tokenizers")
}

func (l *loader) parse(data []byte) (*tokenizer, error) {
	data = bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))
	var doc jsonscan.Doc
	file, err := doc.Parse(data, jsonscan.Options{Values: len(data) / 14})
	if err != nil && !utf8.Valid(data) {
		return nil, l.damaged("", "the file is not valid UTF-8")
	}
	if err != nil || file.Kind() != jsonscan.Object {
		return nil, l.damaged("", "the file is not a tokenizer.json: %w", cmp.Or(err, errors.New("it is no object")))
	}
	l.u = uni.Load()
	m, err := l.readModel(file.Get("model"))
	if err != nil {
		return nil, err
	}
	t := &tokenizer{u: l.u}
	if t.normalizers, err = l.normalizer("/normalizer", file.Get("normalizer").Raw()); err != nil {
		return nil, err
	}
	if len(t.normalizers) == 1 {
		t.form = l.form
	}
	var c cutter
	if err = l.preTokenizer("/pre_tokenizer", file.Get("pre_tokenizer").Raw(), &c); err != nil {
		return nil, err
	}
	if t.trim, err = l.postProcessor("/post_processor", file.Get("post_processor").Raw()); err != nil {
		return nil, err
	}
	if t.decoder, err = l.decoder("/decoder", file.Get("decoder").Raw()); err != nil {
		return nil, err
	}
	spelled := c.spelled || l.spelled || t.decoder.spells()
	if t.model, err = l.model(m, spelled); err != nil {
		return nil, err
	}
	if t.model.Raw() && c.spelled && !c.after {
		t.raw, t.splitter, t.stages = true, c.splitter(l.u), c.stages[:len(c.stages)-1]
	} else {
		t.stages = c.stages
	}
	if err = l.added(t, file.Get("added_tokens").Raw()); err != nil {
		return nil, err
	}
	t.finish()
	return t, nil
}

// finish derives the tables for encoding and decoding.
func (t *tokenizer) finish() {
	t.facts = newFacts(t)
	t.measured = t.splitter != nil && len(t.trim) == 0 && len(t.respelled) == 0 &&
		!slices.ContainsFunc(t.facts.added, func(a engine.AddedToken) bool {
			_, plain := t.model.Vocab.Bytes(int(a.ID)) // the model makes this token from other text, too
			return a.LStrip || a.RStrip || plain && t.model.Width(a.ID) != len(a.Content)
		})
	if t.decoder.plainBytes() {
		t.bytes = sync.OnceValue(func() *byteTable { return newByteTable(t) })
	}
}

// addedFile is an entry of added_tokens.
type addedFile struct {
	ID         int64   `json:"id"`
	Content    *string `json:"content"`
	SingleWord bool    `json:"single_word"`
	LStrip     bool    `json:"lstrip"`
	RStrip     bool    `json:"rstrip"`
	Normalized *bool   `json:"normalized"`
	Special    bool    `json:"special"`
}

// added reads the added tokens.
func (l *loader) added(t *tokenizer, raw json.RawMessage) error {
	if isNull(raw) {
		return l.place(t, nil)
	}
	var files []addedFile
	if err := json.Unmarshal(raw, &files); err != nil {
		return l.damaged("/added_tokens", "the added tokens cannot be read: %w", err)
	}
	list := make([]engine.AddedToken, 0, len(files))
	for i, f := range files {
		if f.Content == nil {
			return l.damaged(fmt.Sprintf("/added_tokens/%d", i), "the token has no content")
		}
		normalized := !f.Special
		if f.Normalized != nil {
			normalized = *f.Normalized
		}
		list = append(list, engine.AddedToken{ID: rollout.TokenID(f.ID), Content: *f.Content, Special: f.Special,
			LStrip: f.LStrip, RStrip: f.RStrip, SingleWord: f.SingleWord, Normalized: normalized})
	}
	return l.place(t, list)
}

// place assigns ids to the added tokens as the reference does, and builds the two matchers. An entry of the model's
// vocabulary keeps its id; any other gets the next free id, whatever the file says. Of entries with equal content the
// last wins, but once special or with a normalised spelling, the token stays so.
func (l *loader) place(t *tokenizer, list []engine.AddedToken) error {
	ids := map[string]rollout.TokenID{}
	byID := map[rollout.TokenID]engine.AddedToken{}
	special := map[string]bool{}
	t.respelled = map[rollout.TokenID]string{}
	total := 0
	for _, a := range list {
		total += len(a.Content)
	}
	if total > maxAddedBytes {
		return l.damaged("/added_tokens", "the added tokens have %d bytes together, more than %d", total, maxAddedBytes)
	}
	t.timed = l.timed
	l.until = t.deadline(total)
	room := growth*total + growthSlack
	next := rollout.TokenID(t.model.Vocab.Len())
	for _, a := range list {
		if a.Content == "" {
			continue
		}
		id, again := ids[a.Content]
		if !again {
			if id = t.model.Vocab.Find([]byte(a.Content)); id < 0 {
				id = next
				next++
			}
		}
		if id >= model.MaxID {
			return l.damaged("/added_tokens", "token id %d is outside [0, %d)", id, model.MaxID)
		}
		special[a.Content] = special[a.Content] || a.Special
		a.ID, a.Special = id, special[a.Content]
		ids[a.Content], byID[id] = id, a
		if a.Normalized {
			if err := l.respell(t, a, room); err != nil {
				return err
			}
			room = max(1, room-len(t.respelled[a.ID]))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		if a := byID[id]; a.Normalized {
			t.late = append(t.late, a)
		} else {
			t.early = append(t.early, a)
		}
	}
	return l.match(t)
}

// respell records the normalised spelling of a, of up to most bytes, if it differs from the content.
func (l *loader) respell(t *tokenizer, a engine.AddedToken, most int) error {
	text := norm.Text{Buf: []byte(a.Content), Most: most, Until: l.until}
	if err := t.normalize(&text); err != nil {
		return l.damaged("/added_tokens", "the token %q cannot be normalised: %w", a.Content, err)
	}
	if len(text.Buf) == 0 {
		return l.refuse("/added_tokens", "the added token %q, which the normalizer makes empty: the reference fails on it", a.Content)
	}
	if string(text.Buf) != a.Content {
		t.respelled[a.ID] = string(text.Buf)
	}
	return nil
}

// match builds the matchers; late tokens are matched by their normalised spelling.
func (l *loader) match(t *tokenizer) error {
	early := make([]string, len(t.early))
	for i, a := range t.early {
		early[i] = a.Content
	}
	if err := l.checkSearchable(early); err != nil {
		return err
	}
	t.earlyMatcher = added.New(t.early, nil)
	contents := make([]string, len(t.late))
	seen := map[string]string{}
	for i, a := range t.late {
		s, ok := t.respelled[a.ID]
		if !ok {
			s = a.Content
		}
		if other, ok := seen[s]; ok {
			return l.refuse("/added_tokens", "the added tokens %q and %q together, which the normalizer spells alike: the reference takes one of them at random each time it loads the file", other, a.Content)
		}
		seen[s], contents[i] = a.Content, s
	}
	if err := l.checkSearchable(contents); err != nil {
		return err
	}
	t.lateMatcher = added.New(t.late, contents)
	return nil
}

// checkSearchable refuses added tokens whose spellings make searching slow.
func (l *loader) checkSearchable(contents []string) error {
	var open []string // the last spelling, after its prefixes
	for _, s := range slices.Sorted(slices.Values(contents)) {
		for len(open) > 0 && !strings.HasPrefix(s, open[len(open)-1]) {
			open = open[:len(open)-1]
		}
		if open = append(open, s); len(s) > maxAddedToken || len(open) > maxPrefixes {
			return l.damaged("/added_tokens", "the token %.60q has %d bytes and begins with %d others; at most %d and %d can be looked for", s, len(s), len(open)-1, maxAddedToken, maxPrefixes-1)
		}
	}
	return nil
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
