//go:build cgo

package hf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// definition is a parsed tokenizer.json.
type definition struct {
	name  string
	raw   []byte
	added []engine.AddedToken
	ids   map[string]rollout.TokenID
	token []string
	known []bool
	// byteLevel is set for models that spell each byte as a letter (GPT-2).
	byteLevel bool
	// marks holds, for each After, whether it gives other tokens than AfterNothing.
	marks [engine.AfterText + 1]bool
}

// variant selects a modified copy of the definition.
type variant struct {
	plain bool // without added tokens
	after engine.After
	swap  byte // control character exchanged with NUL, 0 for none
}

// maxSwap is the last control character that may be exchanged with NUL; the next one is the tab.
const maxSwap = 8

func parse(name string, data []byte) (*definition, error) {
	var f struct {
		Added []struct {
			ID         rollout.TokenID `json:"id"`
			Content    string          `json:"content"`
			Special    bool            `json:"special"`
			LStrip     bool            `json:"lstrip"`
			RStrip     bool            `json:"rstrip"`
			SingleWord bool            `json:"single_word"`
			Normalized bool            `json:"normalized"`
		} `json:"added_tokens"`
		Decoder    json.RawMessage `json:"decoder"`
		Normalizer json.RawMessage `json:"normalizer"`
		Pre        json.RawMessage `json:"pre_tokenizer"`
		Model      struct {
			Vocab json.RawMessage `json:"vocab"`
		} `json:"model"`
	}
	bad := func(format string, args ...any) error {
		return rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: name}, format, args...)
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, bad("the file is not a tokenizer.json: %w", err)
	}
	d := &definition{name: name, raw: data, ids: map[string]rollout.TokenID{},
		byteLevel: bytes.Contains(f.Decoder, []byte(`"ByteLevel"`)) || bytes.Contains(f.Pre, []byte(`"ByteLevel"`))}
	for after := range d.marks {
		d.marks[after] = marks(f.Normalizer, engine.After(after)) || marks(f.Pre, engine.After(after))
	}
	var pairs [][2]any
	if err := json.Unmarshal(f.Model.Vocab, &d.ids); err != nil {
		if err := json.Unmarshal(f.Model.Vocab, &pairs); err != nil {
			return nil, bad("the vocabulary is neither a map nor a list of pairs: %w", err)
		}
		for i, p := range pairs {
			text, ok := p[0].(string)
			if !ok {
				return nil, bad("vocabulary entry %d has no text", i)
			}
			d.ids[text] = rollout.TokenID(i)
		}
	}
	for _, a := range f.Added {
		d.added = append(d.added, engine.AddedToken{ID: a.ID, Content: a.Content, Special: a.Special, LStrip: a.LStrip, RStrip: a.RStrip, SingleWord: a.SingleWord, Normalized: a.Normalized})
		d.ids[a.Content] = a.ID
	}
	slices.SortFunc(d.added, func(a, b engine.AddedToken) int { return int(a.ID - b.ID) })
	size := rollout.TokenID(0)
	for _, id := range d.ids {
		if id < 0 || id > 1<<27 {
			return nil, bad("the vocabulary has the id %d", id)
		}
		size = max(size, id+1)
	}
	d.token, d.known = make([]string, size), make([]bool, size)
	for text, id := range d.ids {
		d.token[id], d.known[id] = text, true
	}
	return d, nil
}

// Size returns one more than the largest id.
func (d *definition) Size() int { return len(d.token) }

// ID returns the id of a vocabulary entry.
func (d *definition) ID(token string) (rollout.TokenID, bool) { id, ok := d.ids[token]; return id, ok }

// Token returns the vocabulary entry of an id, the inverse of ID.
func (d *definition) Token(id rollout.TokenID) (string, bool) {
	if id < 0 || int(id) >= len(d.token) {
		return "", false
	}
	return d.token[id], d.known[id]
}

// Added returns the added tokens in ascending id order.
func (d *definition) Added() []engine.AddedToken { return d.added }

// spelling returns how the vocabulary writes a control character inside an entry: the mapped letter in byte-level
// models, the character itself in others. byteToken is the other spelling.
func (d *definition) spelling(c byte) string {
	if d.byteLevel {
		return string(rune(0x100 + int(c)))
	}
	return string(rune(c))
}

func byteToken(c byte) string { return fmt.Sprintf("<0x%02X>", c) }

// spells reports whether one of ids may stand for text with the control character c.
func (d *definition) spells(ids []rollout.TokenID, c byte) bool {
	in, whole := d.spelling(c), byteToken(c)
	for _, id := range ids {
		if text := d.token[id]; strings.Contains(text, in) || text == whole {
			return true
		}
	}
	return false
}

// variant returns a modified copy of the file.
func (d *definition) variant(v variant) ([]byte, error) {
	if v == (variant{}) {
		return d.raw, nil
	}
	dec := json.NewDecoder(bytes.NewReader(d.raw))
	dec.UseNumber()
	var f map[string]any
	if err := dec.Decode(&f); err != nil {
		return nil, rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: d.name}, "the file is not a tokenizer.json: %w", err)
	}
	if v.plain {
		f["added_tokens"] = []any{}
		f["post_processor"] = nil
	}
	if v.after != engine.AfterNothing {
		f["normalizer"] = unmarked(f["normalizer"], v.after)
		f["pre_tokenizer"] = unmarked(f["pre_tokenizer"], v.after)
	}
	if v.swap > 0 {
		if m, ok := f["model"].(map[string]any); ok {
			nul, other := d.spelling(0), d.spelling(v.swap)
			r := strings.NewReplacer(nul, other, other, nul, byteToken(0), byteToken(v.swap), byteToken(v.swap), byteToken(0))
			m["vocab"] = respell(m["vocab"], r)
			m["merges"] = respell(m["merges"], r)
		}
	}
	return json.Marshal(f)
}

// unmarked changes a normalizer or pre-tokenizer so that it does not mark a beginning where none is: no text begins
// after an added token, and no section begins after text.
func unmarked(v any, after engine.After) any {
	switch v := v.(type) {
	case map[string]any:
		behindText := after == engine.AfterText
		switch {
		case after == engine.AfterNothing:
			return v
		case v["type"] == "Metaspace" && (behindText || v["prepend_scheme"] == "first"):
			v["prepend_scheme"] = "never"
			delete(v, "add_prefix_space")
		case v["type"] == "ByteLevel" && behindText && v["add_prefix_space"] != nil:
			v["add_prefix_space"] = false
		case v["type"] == "Prepend" && behindText:
			return map[string]any{"type": "Sequence", "normalizers": []any{}}
		}
		for k := range v {
			v[k] = unmarked(v[k], after)
		}
	case []any:
		for i := range v {
			v[i] = unmarked(v[i], after)
		}
	}
	return v
}

// marks reports whether a component puts a mark where, according to after, nothing begins.
func marks(component json.RawMessage, after engine.After) bool {
	var v any
	if json.Unmarshal(component, &v) != nil {
		return false
	}
	was, _ := json.Marshal(v)
	is, _ := json.Marshal(unmarked(v, after))
	return !bytes.Equal(was, is)
}

// respell replaces spellings in every string, including keys.
func respell(v any, r *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return r.Replace(v)
	case []any:
		for i := range v {
			v[i] = respell(v[i], r)
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[r.Replace(k)] = respell(x, r)
		}
		return out
	}
	return v
}
