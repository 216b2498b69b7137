package folder

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
)

// DefaultTemplate is the name of a template without a name.
const DefaultTemplate = "default"

// templateDirs hold further templates, by the version of transformers that wrote them.
var templateDirs = []string{"additional_chat_templates", "chat_templates"}

// Template is the text of a chat template and the file it comes from.
type Template struct{ Text, File string }

// templates returns the chat templates of the folder by name. If there are template files, those of
// the configuration are ignored.
func (l *folder) templates(config *tokenizerConfig) (map[string]Template, error) {
	found := map[string]Template{}
	if err := l.readTemplate(found, DefaultTemplate, "chat_template.jinja"); err != nil {
		return nil, err
	}
	for _, dir := range templateDirs {
		entries, err := fs.ReadDir(l.fsys, dir)
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

// readTemplate adds the template in a file, if the file exists.
func (l *folder) readTemplate(found map[string]Template, name, file string) error {
	b, err := l.read(file)
	if b == nil || err != nil {
		return err
	}
	return addTemplate(found, name, string(b), rollout.Where{File: file})
}

// addTemplate adds a template under its name. A template without text is an error, since it would
// render nothing.
func addTemplate(found map[string]Template, name, text string, where rollout.Where) error {
	switch {
	case name == "":
		return rollout.Errorf(rollout.KindTemplate, where, "a chat template has no name").WithFix("name it, default if it is the only one")
	case strings.TrimSpace(text) == "":
		return rollout.Errorf(rollout.KindTemplate, where, "the chat template %s is empty", name).WithFix("put its text there, or delete it")
	case !utf8.ValidString(text):
		return rollout.Errorf(rollout.KindTemplate, where, "the chat template %s is not UTF-8", name).WithFix("save it as UTF-8")
	}
	found[name] = Template{text, where.File}
	return nil
}

// addNamed adds the templates of a configuration: a text, a list of names and texts, or an object
// of texts by name.
func addNamed(found map[string]Template, raw json.RawMessage, file string) error {
	var text string
	var list []struct{ Name, Template string }
	var byName map[string]string
	where := rollout.Where{File: file, Field: "/chat_template"}
	switch {
	case raw == nil || string(raw) == "null" || string(raw) == `""`:
	case json.Unmarshal(raw, &text) == nil:
		return addTemplate(found, DefaultTemplate, text, where)
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
