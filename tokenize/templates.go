package tokenize

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
	"github.com/turnpack/turnpack/tokenize/internal/folder"
)

// toolUseTemplate is transformers' name for the template of rollouts with tools.
const toolUseTemplate = "tool_use"

// addTemplates gives m the template that the options name or hold, else the default one and, for
// rollouts with tools, the one named tool_use, as transformers chooses.
func (m *Model) addTemplates(f *folder.Folder, opts LoadOptions) error {
	if opts.TemplateText != "" {
		if opts.Template != "" {
			return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "LoadOptions"}, "both the name of a template and a text are given").WithFix("leave Template or TemplateText empty")
		}
		return m.compile(folder.Template{Text: opts.TemplateText}, opts.Chat)
	}
	found, err := f.Templates()
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(found))
	if want := opts.Template; want != "" {
		source, ok := found[want]
		if !ok {
			err := rollout.Errorf(rollout.KindTemplate, rollout.Where{File: "."}, "no chat template is named %q", want)
			if len(names) > 0 {
				err = err.WithFix("take one of %s", strings.Join(names, ", "))
			}
			return err
		}
		return m.compile(source, opts.Chat)
	}
	if tools, ok := found[toolUseTemplate]; ok {
		other := *m
		if err := other.compile(tools, opts.Chat); err != nil {
			return err
		}
		m.ToolUse = &other
	}
	if source, ok := found[folder.DefaultTemplate]; ok {
		return m.compile(source, opts.Chat)
	}
	m.names = names
	return nil
}

// compile compiles a template and sets it in m.
func (m *Model) compile(source folder.Template, opts chat.Options) (err error) {
	if m.Template, err = chat.Compile(source.Text, opts); err != nil {
		return rollout.In(err, rollout.Where{File: source.File})
	}
	m.templateDigest, m.templateFile, m.rules = digest(source.Text), source.File, &rules{}
	return nil
}

// TemplateDigest returns "sha256:<hex>" of the template's text, or of the digests of both texts if
// rollouts with tools have a separate template (the digest of a missing default template is ""); ""
// without any. Sequences carry it, with tools or without, so that the rows of one folder fit into
// one file.
func (m *Model) TemplateDigest() string {
	if m.ToolUse == nil {
		return m.templateDigest
	}
	return digest(m.templateDigest + m.ToolUse.templateDigest)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// TemplateFor returns the chat template that r takes, or an error that says what the folder lacks.
func (m *Model) TemplateFor(r *rollout.Rollout) (*chat.Template, error) {
	if r == nil {
		return nil, zero.Rollout()
	}
	if m.ToolUse != nil && len(r.Tools) > 0 {
		return m.ToolUse.Template, nil
	}
	if m.Template == nil {
		return nil, m.lacks(r)
	}
	return m.Template, nil
}

// lacks returns the error of a rollout that no template of the folder can render.
func (m *Model) lacks(r *rollout.Rollout) *rollout.Error {
	where := rollout.Where{Rollout: r.ID}
	if !hasModel(m) {
		return rollout.Errorf(rollout.KindInput, where, "the prompt or the reply has no recorded token ids, and no model is given to make them of the text").
			WithFix("load a model folder (convert --model, in Go tokenize.Load), or record the engine's token ids of every turn")
	}
	if len(m.names) == 0 {
		return rollout.Errorf(rollout.KindInput, where, "the model has no chat template").
			WithFix("add chat_template.jinja to its folder, or record the engine's token ids, which merged and per-step rows take")
	}
	kind, name := "without tools", folder.DefaultTemplate
	if len(r.Tools) > 0 {
		kind, name = "with tools", toolUseTemplate+" or "+folder.DefaultTemplate
	}
	return rollout.Errorf(rollout.KindTemplate, where, "rollouts %s take a chat template named %s; the model folder has only %s", kind, name, strings.Join(m.names, ", ")).
		WithFix("load the folder with the name of the one that the engine used: --template NAME, in Go LoadOptions.Template")
}
