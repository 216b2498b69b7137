package tokenize

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/completion"
	"github.com/turnpack/turnpack/tokenize/internal/folder"
)

// Model holds the tokenizer, chat templates and stop tokens of a Hugging Face model folder. It is
// safe for concurrent use and must not be changed.
type Model struct {
	Tokenizer engine.Tokenizer
	// Template is the default chat template, nil if the folder has none. Rollouts with tools may
	// take ToolUse's instead.
	Template *chat.Template
	// SpecialTokens are the named tokens that a template may print (bos_token, …).
	SpecialTokens map[string]string

	// ToolUse is this model with the template for rollouts with tools, nil if the folder has no
	// separate one.
	ToolUse *Model

	// NamedStops are the ids that end a completion according to the folder: the eos ids of
	// generation_config.json, else of config.json, with the tokenizer's eos_token. ListsStops says
	// that they come from generation_config.json.
	NamedStops []rollout.TokenID
	ListsStops bool

	templateDigest string
	templateFile   string
	names          []string // of the folder's templates, if none is the default
	rules          *rules
}

// LoadOptions says how a folder is read. The zero value is the default.
type LoadOptions struct {
	// FS holds the folder, which is then named as io/fs does: a/b, without a leading slash; nil is
	// the file system of the machine.
	FS fs.FS
	// Engine makes the tokenizer from the content of tokenizer.json; nil is the pure-Go engine
	// (tokenize/bpe). Package tokenize/hf has another.
	Engine func(name string, tokenizerJSON []byte) (engine.Tokenizer, error)
	// Template names the chat template to take for all rollouts if the folder has several; "" takes
	// the default one, and the one named tool_use for rollouts with tools. A name that the folder
	// lacks is a KindTemplate error.
	Template string
	// TemplateText replaces the folder's chat templates by one of this text; "" takes the folder's.
	// Its errors name no file.
	TemplateText string
	// Chat bounds what a template may do.
	Chat chat.Options
}

// Load reads a Hugging Face model folder: tokenizer.json (or tiktoken.model), tokenizer_config.json
// with the tokens that only it (or added_tokens.json) names, the chat template (chat_template.jinja
// with additional_chat_templates/NAME.jinja, or the chat_template of the configuration, or of
// chat_template.json) and generation_config.json. dir is a path of the system, or of opts.FS. Errors name the file, with
// dir. A folder without a template loads, but can encode captured token ids only. A folder with
// named templates only also loads, but rollouts need one named default, or tool_use if they have
// tools.
func Load(dir string, opts LoadOptions) (*Model, error) {
	fsys, join := opts.FS, path.Join
	if fsys == nil {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			why := "it is a file"
			if err != nil {
				why = "there is no such folder"
			}
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: dir}, "no model can be loaded: %s", why).WithFix("name the folder of a Hugging Face model, with tokenizer.json in it")
		}
		fsys, join = os.DirFS(dir), filepath.Join
	} else {
		var err error
		if fsys, err = fs.Sub(fsys, path.Clean(dir)); err != nil {
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: dir}, "no model can be loaded: %w", err).WithFix("name the folder as in a/b, or . for the root of the file system")
		}
	}
	m, err := load(fsys, opts)
	if e, ok := err.(*rollout.Error); ok && e.Where.File != "" {
		c := *e
		c.Where.File = join(dir, c.Where.File)
		return nil, &c
	}
	for x := m; err == nil && x != nil; x = x.ToolUse {
		if x.templateFile != "" {
			x.templateFile = join(dir, x.templateFile)
		}
	}
	return m, err
}

func load(fsys fs.FS, opts LoadOptions) (*Model, error) {
	f, err := folder.Read(fsys, opts.Engine)
	if err != nil {
		return nil, err
	}
	m := &Model{Tokenizer: f.Tokenizer, SpecialTokens: f.SpecialTokens, ListsStops: f.ListsStops, NamedStops: f.Stops, rules: &rules{}}
	return m, m.addTemplates(f, opts)
}

// EOS returns the id of the tokenizer's eos_token, which trainers pad with; false if the folder
// names none. Stops may hold others.
func (m *Model) EOS() (rollout.TokenID, bool) {
	return (&folder.Folder{Tokenizer: m.Tokenizer, SpecialTokens: m.SpecialTokens}).EOS()
}

// Stops returns the ids that end a completion: NamedStops and, in a folder without
// generation_config.json, the tokens with which the template ends replies, found by rendering
// probes on the first call. The caller must not change them.
func (m *Model) Stops() []rollout.TokenID { return m.rule().Ends().IDs }

// IsStop reports whether id ends a completion.
func (m *Model) IsStop(id rollout.TokenID) bool { return m.rule().IsStop(id) }

// rules holds what was found by probing a model's template, once.
type rules struct {
	once sync.Once
	rule *completion.Rule
}

// rule returns the rule for what the policy sampled in rollouts that take m.Template.
func (m *Model) rule() *completion.Rule {
	rs := m.rules
	if rs == nil { // m was not made by Load
		rs = &rules{}
	}
	rs.once.Do(func() {
		s := completion.Source{Template: m.Template, Names: m.SpecialTokens, Named: m.NamedStops, Listed: m.ListsStops}
		if m.Tokenizer != nil {
			s.Added = m.Tokenizer.Vocab().Added()
		}
		if m.ToolUse != nil {
			s.ToolUse = m.ToolUse.rule()
		}
		rs.rule = completion.New(s)
	})
	return rs.rule
}

// ruleFor returns the rule of the template that r takes.
func (m *Model) ruleFor(r *rollout.Rollout) *completion.Rule {
	if m.ToolUse != nil && len(r.Tools) > 0 {
		return m.ToolUse.rule()
	}
	return m.rule()
}

// checkLimits rejects a model whose template hits a limit in a short conversation.
func (m *Model) checkLimits() error {
	if m.ToolUse != nil {
		if err := m.ToolUse.checkLimits(); err != nil {
			return err
		}
	}
	return rollout.In(m.rule().Limit(), rollout.Where{File: m.templateFile})
}
