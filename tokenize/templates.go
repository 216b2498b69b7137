package tokenize

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// The names of templates that transformers knows.
const (
	defaultTemplate = "default"
	toolUseTemplate = "tool_use"
)

// templateDirs hold further templates, by the version of transformers that wrote them.
var templateDirs = []string{"additional_chat_templates", "chat_templates"}

// templateSource is the text of a chat template and the file it stands in.
type templateSource struct{ text, file string }

// addTemplates gives m the template that the options name or hold, else the default
// one and, for rollouts with tools, the one named tool_use, as transformers chooses.
func (l *folder) addTemplates(m *Model, config *tokenizerConfig) error {
	if l.opts.TemplateText != "" {
		if l.opts.Template != "" {
			return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "LoadOptions"}, "both the name of a template and a text are given").WithFix("leave Template or TemplateText empty")
		}
		return l.finish(m, templateSource{text: l.opts.TemplateText})
	}
	found, err := l.templates(config)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(found))
	if want := l.opts.Template; want != "" {
		source, ok := found[want]
		if !ok {
			err := rollout.Errorf(rollout.KindTemplate, rollout.Where{File: l.dir}, "no chat template is named %q", want)
			if len(names) > 0 {
				err = err.WithFix("take one of %s", strings.Join(names, ", "))
			}
			return err
		}
		return l.finish(m, source)
	}
	if tools, ok := found[toolUseTemplate]; ok {
		other := *m
		if err := l.finish(&other, tools); err != nil {
			return err
		}
		m.toolUse, m.Stops = &other, other.Stops
	}
	if source, ok := found[defaultTemplate]; ok {
		return l.finish(m, source)
	}
	m.names = names
	return m.finish()
}

// finish compiles the template of m.
func (l *folder) finish(m *Model, source templateSource) (err error) {
	if m.Template, err = chat.Compile(source.text, l.opts.Chat); err != nil {
		return inFile(err, source.file)
	}
	m.templateDigest = digest(source.text)
	return inFile(m.finish(), source.file)
}

// TemplateDigest is "sha256:<hex>" of the template's text, or of the digests of both
// texts where rollouts with tools have a template of their own (that of a missing
// default one is ""); "" without any. Sequences carry it, with tools or without, so
// that the rows of one folder fit into one file.
func (m *Model) TemplateDigest() string {
	if m.toolUse == nil {
		return m.templateDigest
	}
	return digest(m.templateDigest + m.toolUse.templateDigest)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// of returns the model as it is for r: with the template that r takes.
func (m *Model) of(r *rollout.Rollout) *Model {
	if m.toolUse != nil && len(r.Tools) > 0 {
		return m.toolUse
	}
	return m
}

// probe shows messages to the template that rollouts without tools take, else, where
// there is none or it refuses them, to the one for rollouts with tools. It is nil
// for a model without templates.
func (m *Model) probe(ctx context.Context, messages ...rollout.Message) (*renderer, error) {
	var refused error
	for _, tools := range [][]rollout.Tool{nil, probeTools} {
		r := &rollout.Rollout{Messages: messages, Tools: tools}
		if m.of(r).Template == nil {
			continue
		}
		x, err := newRenderer(ctx, m, r, Options{})
		if err == nil {
			_, err = x.document()
		}
		if err == nil {
			return x, nil
		}
		if refused == nil {
			refused = err
		}
	}
	return nil, refused
}

// lacks is the error of a rollout that no template of the folder writes.
func (m *Model) lacks(r *rollout.Rollout) *rollout.Error {
	where := rollout.Where{Rollout: r.ID}
	if !given(m) {
		return rollout.Errorf(rollout.KindInput, where, "the prompt or the reply has no recorded token ids, and no model is given to make them of the text").
			WithFix("load a model folder (convert --model, in Go tokenize.Load), or record the engine's token ids of every turn")
	}
	if len(m.names) == 0 {
		return rollout.Errorf(rollout.KindInput, where, "the model has no chat template").
			WithFix("add chat_template.jinja to its folder, or record the engine's token ids, which merged and per-step rows take")
	}
	kind, name := "without tools", defaultTemplate
	if len(r.Tools) > 0 {
		kind, name = "with tools", toolUseTemplate+" or "+defaultTemplate
	}
	return rollout.Errorf(rollout.KindTemplate, where, "rollouts %s take a chat template named %s; the model folder has only %s", kind, name, strings.Join(m.names, ", ")).
		WithFix("load the folder with the name of the one that the engine used: --template NAME, in Go LoadOptions.Template")
}

// templates returns the chat templates of the folder by name. Files of their own
// replace those of the configuration.
func (l *folder) templates(config *tokenizerConfig) (map[string]templateSource, error) {
	found := map[string]templateSource{}
	if err := l.readTemplate(found, defaultTemplate, "chat_template.jinja"); err != nil {
		return nil, err
	}
	for _, dir := range templateDirs {
		entries, err := fs.ReadDir(l.fsys, path.Join(l.dir, dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, rollout.Errorf(rollout.KindTemplate, rollout.Where{File: dir}, "the folder cannot be read: %w", err)
		}
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), ".jinja"); ok {
				if err := l.readTemplate(found, name, path.Join(dir, e.Name())); err != nil {
					return nil, err
				}
			}
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	raw, file := config.ChatTemplate, "tokenizer_config.json"
	if raw == nil {
		var older struct {
			ChatTemplate json.RawMessage `json:"chat_template"`
		}
		file = "chat_template.json"
		if err := l.json(file, &older); err != nil {
			return nil, err
		}
		raw = older.ChatTemplate
	}
	return found, addNamed(found, raw, file)
}

// readTemplate adds the template that a file holds, if the file is there.
func (l *folder) readTemplate(found map[string]templateSource, name, file string) error {
	b, err := l.read(file)
	if b == nil || err != nil {
		return err
	}
	return addTemplate(found, name, string(b), rollout.Where{File: file})
}

// addTemplate adds a template under its name. One without text would write nothing of
// any conversation.
func addTemplate(found map[string]templateSource, name, text string, where rollout.Where) error {
	switch {
	case name == "":
		return rollout.Errorf(rollout.KindTemplate, where, "a chat template has no name").WithFix("name it, default if it is the only one")
	case strings.TrimSpace(text) == "":
		return rollout.Errorf(rollout.KindTemplate, where, "the chat template %s is empty", name).WithFix("put its text there, or delete it")
	case !utf8.ValidString(text):
		return rollout.Errorf(rollout.KindTemplate, where, "the chat template %s is not UTF-8", name).WithFix("save it as UTF-8")
	}
	found[name] = templateSource{text, where.File}
	return nil
}

// addNamed adds the templates of a configuration: a text, a list of names and
// texts, or an object of texts by name.
func addNamed(found map[string]templateSource, raw json.RawMessage, file string) error {
	var text string
	var list []struct{ Name, Template string }
	var byName map[string]string
	where := rollout.Where{File: file, Field: "/chat_template"}
	switch {
	case raw == nil || string(raw) == "null" || string(raw) == `""`:
	case json.Unmarshal(raw, &text) == nil:
		return addTemplate(found, defaultTemplate, text, where)
	case json.Unmarshal(raw, &list) == nil:
		for _, t := range list {
			if err := addTemplate(found, t.Name, t.Template, where); err != nil {
				return err
			}
		}
	case json.Unmarshal(raw, &byName) == nil:
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			if err := addTemplate(found, name, byName[name], where); err != nil {
				return err
			}
		}
	default:
		return rollout.Errorf(rollout.KindTemplate, where, "expected a text, a list of named templates, or texts by name; found %.40s", raw)
	}
	return nil
}
