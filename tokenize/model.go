package tokenize

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/bpe"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// Model is what a Hugging Face model folder says about text and tokens. It is
// safe for concurrent use and must not be changed.
type Model struct {
	Tokenizer Tokenizer
	// Template is the default chat template, nil when the folder has none. Rollouts
	// with tools may take another one, with or without it.
	Template *chat.Template
	// Stops are the ids that end a completion: the eos ids of
	// generation_config.json, else of config.json, with the tokenizer's eos_token; in a
	// folder without generation_config.json also the tokens that the template ends
	// replies with.
	Stops []rollout.TokenID
	// SpecialTokens are the named tokens a template may print (bos_token, …).
	SpecialTokens map[string]string

	listsStops     bool // generation_config.json says what ends a completion
	named          int  // how many of Stops the folder names; the others are the template's
	templateDigest string
	toolUse        *Model   // this one with the template for rollouts that have tools, if the folder has one
	names          []string // of the folder's templates, where none is the default one
	reply          *replyRule
	shape          shape
	tools          *toolbox
	probing        *limitMet // while the template is asked with probes
}

// LoadOptions chooses how a folder is read. The zero value is the default.
type LoadOptions struct {
	// Engine makes the tokenizer from the content of tokenizer.json; nil is the
	// pure-Go engine (tokenize/bpe). tokenize/hf has the other one.
	Engine func(name string, tokenizerJSON []byte) (Tokenizer, error)
	// Template names the chat template of a folder that has several, for all
	// rollouts; "" is the default one, and the one named tool_use for rollouts with
	// tools. A name that the folder lacks is a KindTemplate error.
	Template string
	// TemplateText is the text of a chat template in place of those of the folder;
	// "" takes theirs. Its errors name no file.
	TemplateText string
	// Chat bounds what a template may do.
	Chat chat.Options
}

// Load reads a Hugging Face model folder with the pure-Go engine:
// tokenizer.json (or tiktoken.model), tokenizer_config.json with the tokens that
// only it (or added_tokens.json) names, the chat template
// (chat_template.jinja with additional_chat_templates/NAME.jinja, or the
// chat_template of the configuration) and generation_config.json. A folder without
// a template loads; it can encode captured token ids only. So does one with named
// templates alone, for rollouts that none of them is meant for: they need one named
// default, or tool_use where they have tools.
func Load(dir string) (*Model, error) { return LoadDir(dir, LoadOptions{}) }

// LoadDir is Load with options. Errors name the files in dir.
func LoadDir(dir string, opts LoadOptions) (*Model, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		why := "it is a file"
		if err != nil {
			why = "there is no such folder"
		}
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: dir}, "no model can be loaded: %s", why).WithFix("name the folder of a Hugging Face model, with tokenizer.json in it")
	}
	m, err := LoadWith(os.DirFS(dir), ".", opts)
	if e, ok := err.(*rollout.Error); ok && e.Where.File != "" {
		c := *e
		c.Where.File = filepath.Join(dir, c.Where.File)
		return nil, &c
	}
	return m, err
}

// LoadFS is Load over a file system.
func LoadFS(fsys fs.FS, dir string) (*Model, error) { return LoadWith(fsys, dir, LoadOptions{}) }

// LoadWith is LoadFS with options.
func LoadWith(fsys fs.FS, dir string, opts LoadOptions) (*Model, error) {
	l := &folder{fsys: fsys, dir: dir, opts: opts}
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
	m := &Model{Tokenizer: tok, SpecialTokens: map[string]string{}}
	m.name(&config)
	if err := l.bosFromTokenizer(m); err != nil {
		return nil, err
	}
	if err := l.stops(m); err != nil {
		return nil, err
	}
	return m, l.addTemplates(m, &config)
}

// EOS is the id of the tokenizer's eos_token, which trainers pad with; false
// where the folder names none. Stops may hold others.
func (m *Model) EOS() (rollout.TokenID, bool) {
	text := m.SpecialTokens["eos_token"]
	if text == "" {
		return 0, false
	}
	return addedID(m.Tokenizer, text)
}

// IsStop reports whether id ends a completion.
func (m *Model) IsStop(id rollout.TokenID) bool { return slices.Contains(m.Stops, id) }

// namesToken reports whether a template variable says which token it is
// (eos_token) and nothing else.
func (m *Model) namesToken(key string, value json.RawMessage) bool {
	var text string
	return strings.HasSuffix(key, "_token") && json.Unmarshal(value, &text) == nil &&
		slices.ContainsFunc(m.reply.specials, func(a AddedToken) bool { return a.Content == text })
}

// limitMet is the error of the first probe that met a limit of its template.
type limitMet struct{ err error }

// finish asks the template, with probes, what it writes. A template that meets a limit
// for one of these short conversations is refused at once: each further probe would
// take as long.
func (m *Model) finish() error {
	met := &limitMet{}
	m.probing = met
	defer func() { m.probing = nil }()
	m.reply = &replyRule{specials: m.Tokenizer.Vocab().Added(), stops: map[string]rollout.TokenID{}}
	for _, a := range m.reply.specials {
		if m.IsStop(a.ID) {
			m.reply.stops[a.Content] = a.ID
		}
	}
	m.tools = &toolbox{}
	m.shape = shapeOf(m)
	m.learnEnds()
	if m.Template != nil {
		m.reply.opening = openingOf(m)
	}
	return met.err
}

func inFile(err error, name string) error {
	if e, ok := errors.AsType[*rollout.Error](err); ok && e.Where.File == "" {
		c := *e
		c.Where.File = name
		return &c
	}
	return err
}

// folder reads one model folder.
type folder struct {
	fsys fs.FS
	dir  string
	opts LoadOptions
}

// read returns the content of a file, nil when it is not there.
func (l *folder) read(name string) ([]byte, error) {
	b, err := fs.ReadFile(l.fsys, path.Join(l.dir, name))
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

// json decodes a file into v; a missing file leaves v alone.
func (l *folder) json(name string, v any) error {
	b, err := l.read(name)
	if err != nil || b == nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: name}, "the file is not the JSON it should be: %w", err).
			WithFix("take the file that was published with the model")
	}
	return nil
}

func (l *folder) tokenizer(config *tokenizerConfig) (Tokenizer, error) {
	b, err := l.read("tokenizer.json")
	if err != nil {
		return nil, err
	}
	if b == nil {
		if ranks, err := l.read("tiktoken.model"); err != nil {
			return nil, err
		} else if ranks != nil {
			return bpe.LoadTiktokenFS(l.fsys, l.dir)
		}
		return nil, rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: path.Join(l.dir, "tokenizer.json")}, "the model folder has no tokenizer.json").
			WithFix("name the folder of a Hugging Face model; transformers makes the file of older ones: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)")
	}
	tok, err := l.parse(b)
	if err != nil {
		return nil, err
	}
	return l.complete(tok, b, config)
}

// parse makes the tokenizer of a definition.
func (l *folder) parse(definition []byte) (Tokenizer, error) {
	if l.opts.Engine != nil {
		return l.opts.Engine("tokenizer.json", definition)
	}
	return bpe.Parse("tokenizer.json", definition)
}

// tokenizerConfig is what counts here of tokenizer_config.json.
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

// tokenText reads a token given as a string or as an object with content.
func tokenText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var o struct {
		Content string `json:"content"`
	}
	if json.Unmarshal(raw, &o) == nil {
		return o.Content
	}
	return ""
}

// olderNames adds what special_tokens_map.json says to the configuration, as
// transformers does: it is read where the configuration has no added_tokens_decoder,
// and holds there even against what that says. additional_special_tokens is the older
// word for extra_special_tokens and counts where that lists none, first of all in the
// configuration.
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
func (m *Model) name(config *tokenizerConfig) {
	for k, raw := range config.Rest {
		if strings.HasSuffix(k, "_token") {
			if text := tokenText(raw); text != "" {
				m.SpecialTokens[k] = text
			}
		}
	}
}

// bosFromTokenizer fills bos_token, where the folder does not name it, with the
// token that tokenizer.json puts before a text.
func (l *folder) bosFromTokenizer(m *Model) error {
	if _, ok := m.SpecialTokens["bos_token"]; ok {
		return nil
	}
	type processor struct {
		Single []struct {
			SpecialToken *struct{ ID string }
		}
		Processors []processor
	}
	var f struct {
		Post *processor `json:"post_processor"`
	}
	if b, err := l.read("tokenizer_config.json"); b != nil || err != nil {
		return err // a folder with a configuration says all it has to say
	}
	if err := l.json("tokenizer.json", &f); err != nil || f.Post == nil {
		return err
	}
	for _, p := range append(f.Post.Processors, *f.Post) {
		if len(p.Single) > 0 && p.Single[0].SpecialToken != nil {
			m.SpecialTokens["bos_token"] = p.Single[0].SpecialToken.ID
		}
	}
	return nil
}

// stops finds the ids that end a completion.
func (l *folder) stops(m *Model) error {
	add := func(id rollout.TokenID) {
		if _, known := m.Tokenizer.Vocab().Token(id); known && !slices.Contains(m.Stops, id) {
			m.Stops = append(m.Stops, id)
		}
	}
	const published = "generation_config.json" // config.json may repeat a default of its class
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
		m.listsStops = name == published
		break
	}
	if id, ok := m.EOS(); ok {
		add(id)
	}
	m.named = len(m.Stops)
	return nil
}

func addedID(t Tokenizer, text string) (rollout.TokenID, bool) {
	for _, a := range t.Vocab().Added() {
		if a.Content == text {
			return a.ID, true
		}
	}
	return t.Vocab().ID(text)
}
