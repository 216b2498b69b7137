package folder

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/bpe"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// Folder is the content of a model folder.
type Folder struct {
	Tokenizer engine.Tokenizer
	// SpecialTokens are the named tokens (eos_token), by name.
	SpecialTokens map[string]string
	// Stops are the ids that the folder names as the end of a completion; ListsStops says that they
	// come from generation_config.json.
	Stops      []rollout.TokenID
	ListsStops bool

	reader *folder
	config *tokenizerConfig
}

// Read reads the model folder fsys. engine makes the tokenizer from tokenizer.json; nil is
// bpe.Parse. Errors name files of fsys.
func Read(fsys fs.FS, engine func(name string, tokenizerJSON []byte) (engine.Tokenizer, error)) (*Folder, error) {
	l := &folder{fsys: fsys, engine: engine}
	var config tokenizerConfig
	if err := l.json("tokenizer_config.json", &config); err != nil {
		return nil, err
	}
	if err := l.olderNames(&config); err != nil {
		return nil, err
	}
	tok, err := l.tokenizer(&config)
	if err != nil {
		return nil, err
	}
	m := &Folder{Tokenizer: tok, SpecialTokens: map[string]string{}, reader: l, config: &config}
	m.name(&config)
	if err := l.stops(m); err != nil {
		return nil, err
	}
	return m, nil
}

// Templates returns the chat templates of the folder by name.
func (m *Folder) Templates() (map[string]Template, error) { return m.reader.templates(m.config) }

// EOS returns the id of the eos_token, false if there is none.
func (m *Folder) EOS() (rollout.TokenID, bool) {
	text := m.SpecialTokens["eos_token"]
	if text == "" {
		return 0, false
	}
	return addedID(m.Tokenizer, text)
}

// folder reads one model folder.
type folder struct {
	fsys   fs.FS
	engine func(name string, tokenizerJSON []byte) (engine.Tokenizer, error)
}

// read returns the content of a file, nil if it does not exist.
func (l *folder) read(name string) ([]byte, error) {
	b, err := fs.ReadFile(l.fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: name}, "the model folder cannot be read: %w", err)
	}
	if bytes.HasPrefix(b, []byte("version https://git-lfs.github.com/spec/")) {
		return nil, rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: name}, "the file is a pointer of Git LFS, not its content").WithFix("run git lfs pull in the folder, or download the file")
	}
	return b, nil
}

// json decodes a file into v; if the file does not exist, v is unchanged.
func (l *folder) json(name string, v any) error {
	b, err := l.read(name)
	if err != nil || b == nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return notJSON(name, err)
	}
	return nil
}

func notJSON(name string, err error) error {
	return rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: name}, "the file is not the JSON it should be: %w", err).
		WithFix("take the file that was published with the model")
}

func (l *folder) tokenizer(config *tokenizerConfig) (engine.Tokenizer, error) {
	b, err := l.read("tokenizer.json")
	if err != nil {
		return nil, err
	}
	if b == nil {
		if ranks, err := l.read("tiktoken.model"); err != nil {
			return nil, err
		} else if ranks != nil {
			return bpe.LoadTiktokenFS(l.fsys, ".")
		}
		return nil, rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: "tokenizer.json"}, "the model folder has no tokenizer.json").
			WithFix("name the folder of a Hugging Face model; transformers makes the file of older ones: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)")
	}
	tok, err := l.parse(b)
	if err != nil {
		return nil, err
	}
	return l.complete(tok, b, config)
}

// parse makes a tokenizer from a definition.
func (l *folder) parse(definition []byte) (engine.Tokenizer, error) {
	if l.engine != nil {
		return l.engine("tokenizer.json", definition)
	}
	return bpe.Parse("tokenizer.json", definition)
}

// tokenizerConfig is the content of tokenizer_config.json.
type tokenizerConfig struct {
	ChatTemplate json.RawMessage `json:"chat_template"`
	Rest         map[string]json.RawMessage
}

func (c *tokenizerConfig) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &c.Rest); err != nil {
		return err
	}
	if c.Rest == nil {
		return errors.New("found null, expected an object")
	}
	c.ChatTemplate = c.Rest["chat_template"]
	return nil
}

// olderNames adds special_tokens_map.json to the configuration, as transformers does: the file is
// read if the configuration has no added_tokens_decoder, and then takes precedence over the
// configuration. additional_special_tokens is the older name of extra_special_tokens and is used if
// that lists none, in the configuration first.
func (l *folder) olderNames(config *tokenizerConfig) error {
	const list, olderList = "extra_special_tokens", "additional_special_tokens"
	renamed := func() {
		var has []json.RawMessage
		if raw, ok := config.Rest[olderList]; ok && (json.Unmarshal(config.Rest[list], &has) != nil || len(has) == 0) {
			config.Rest[list] = raw
		}
		delete(config.Rest, olderList)
	}
	renamed()
	defer renamed()
	if _, ok := config.Rest["added_tokens_decoder"]; ok {
		return nil
	}
	var older map[string]json.RawMessage
	if err := l.json("special_tokens_map.json", &older); err != nil {
		return err
	}
	if config.Rest == nil {
		config.Rest = map[string]json.RawMessage{}
	}
	var had, more []json.RawMessage
	if json.Unmarshal(config.Rest[list], &had) == nil && json.Unmarshal(older[list], &more) == nil {
		both, err := json.Marshal(append(had, more...))
		if err != nil {
			return err
		}
		older[list] = both
	}
	maps.Copy(config.Rest, older)
	return nil
}

// name fills the named tokens.
func (m *Folder) name(config *tokenizerConfig) {
	for k, raw := range config.Rest {
		if strings.HasSuffix(k, "_token") {
			var a addedEntry
			_ = json.Unmarshal(raw, &a) // anything but a token has no content
			if a.Content != "" {
				m.SpecialTokens[k] = a.Content
			}
		}
	}
}

// stops finds the ids that end a completion.
func (l *folder) stops(m *Folder) error {
	add := func(id rollout.TokenID) {
		if _, known := m.Tokenizer.Vocab().Token(id); known && !slices.Contains(m.Stops, id) {
			m.Stops = append(m.Stops, id)
		}
	}
	const published = "generation_config.json" // config.json may repeat its class's default
	for _, name := range []string{published, "config.json"} {
		var c struct {
			EOS json.RawMessage `json:"eos_token_id"`
		}
		if err := l.json(name, &c); err != nil {
			return err
		}
		var one rollout.TokenID
		var many []rollout.TokenID
		switch {
		case len(c.EOS) == 0 || string(c.EOS) == "null":
			continue
		case json.Unmarshal(c.EOS, &one) == nil:
			add(one)
		case json.Unmarshal(c.EOS, &many) == nil:
			for _, id := range many {
				add(id)
			}
		default:
			return rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: name, Field: "/eos_token_id"}, "expected an id or a list of ids, found %.40s", c.EOS).
				WithFix("take the file that was published with the model")
		}
		if name == published && len(m.Stops) == 0 && string(c.EOS) != "[]" {
			return rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: name, Field: "/eos_token_id"}, "expected ids of the tokenizer's %d, found %.40s", m.Tokenizer.Vocab().Size(), c.EOS).
				WithFix("take tokenizer and configuration of the same model")
		}
		m.ListsStops = name == published
		break
	}
	if id, ok := m.EOS(); ok {
		add(id)
	}
	return nil
}

func addedID(t engine.Tokenizer, text string) (rollout.TokenID, bool) {
	for _, a := range t.Vocab().Added() {
		if a.Content == text {
			return a.ID, true
		}
	}
	return t.Vocab().ID(text)
}
