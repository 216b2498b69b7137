package folder

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// addedEntry is a token as model folders write it: an entry of the added tokens, or just the
// content.
type addedEntry struct {
	ID         int64  `json:"id"` // ignored: engines number new tokens themselves, as the reference does
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

func (a *addedEntry) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &a.Content) == nil {
		return nil
	}
	type plain addedEntry
	return json.Unmarshal(b, (*plain)(a))
}

// namedTokens are the tokens that transformers adds to a tokenizer without them, in its order.
var namedTokens = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// complete adds to tok, the tokenizer of definition, the tokens that only the configuration names,
// and takes the matching rules of the others from the configuration, as transformers does when it
// loads the folder.
func (l *folder) complete(tok engine.Tokenizer, definition []byte, config *tokenizerConfig) (engine.Tokenizer, error) {
	described, named, err := l.configured(config)
	if err != nil {
		return nil, err
	}
	known := map[string]addedEntry{"": {}} // an empty text is not a token
	for _, a := range tok.Vocab().Added() {
		known[a.Content] = addedEntry{Content: a.Content, SingleWord: a.SingleWord, LStrip: a.LStrip, RStrip: a.RStrip, Normalized: a.Normalized, Special: a.Special}
	}
	var missing []any
	for _, a := range described {
		is, ok := known[a.Content]
		a.ID = 0
		is.Special = is.Special && a.Special // a special token stays special
		if a.Content != "" && (!ok || is != a) {
			known[a.Content] = a
			missing = append(missing, a)
		}
	}
	for _, a := range named {
		if _, ok := known[a.Content]; !ok {
			known[a.Content] = a
			missing = append(missing, a)
		}
	}
	if len(missing) == 0 {
		return tok, nil
	}
	var parts map[string]json.RawMessage
	var added []any
	if err := json.Unmarshal(definition, &parts); err != nil {
		return nil, err // tok was made from it
	}
	if raw, ok := parts["added_tokens"]; ok {
		if err := json.Unmarshal(raw, &added); err != nil {
			return nil, err
		}
	}
	if parts["added_tokens"], err = json.Marshal(append(added, missing...)); err != nil {
		return nil, err
	}
	if definition, err = json.Marshal(parts); err != nil {
		return nil, err
	}
	return l.parse(definition)
}

// configured returns the tokens that the folder describes outside tokenizer.json, and those that
// have a name or an entry in a list.
func (l *folder) configured(config *tokenizerConfig) (described, named []addedEntry, err error) {
	field := func(key string, v any) error {
		raw, ok := config.Rest[key]
		if !ok {
			return nil
		}
		if err := json.Unmarshal(raw, v); err != nil {
			return rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: "tokenizer_config.json", Field: "/" + key}, "the tokens cannot be read: %w", err)
		}
		return nil
	}
	for _, key := range namedTokens {
		var a addedEntry
		if err := field(key, &a); err != nil {
			return nil, nil, err
		}
		named = append(named, a)
	}
	const extra = "extra_special_tokens"
	var list []addedEntry
	if raw := config.Rest[extra]; len(raw) > 0 && raw[0] == '[' {
		if err := field(extra, &list); err != nil {
			return nil, nil, err
		}
	}
	named = append(named, list...)
	for i := range named {
		named[i].Special = true
	}
	var byID map[string]addedEntry
	if err := field("added_tokens_decoder", &byID); err != nil {
		return nil, nil, err
	}
	for id := range byID {
		if _, err := strconv.ParseUint(id, 10, 31); err != nil {
			return nil, nil, rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: "tokenizer_config.json", Field: "/added_tokens_decoder"}, "expected ids as keys, found %.40q", id).
				WithFix("take the file that was published with the model")
		}
	}
	if byID == nil { // older folders have this file instead
		var older map[string]int
		if err := l.json("added_tokens.json", &older); err != nil {
			return nil, nil, err
		}
		byID = map[string]addedEntry{}
		isNamed := map[string]bool{}
		for _, a := range named {
			isNamed[a.Content] = true
		}
		for content, id := range older {
			special := isNamed[content]
			byID[strconv.Itoa(id)] = addedEntry{Content: content, Normalized: !special, Special: special}
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(byID), byNumber) {
		described = append(described, byID[id])
	}
	return described, named, nil
}

// byNumber compares numbers written as text.
func byNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
