package verbs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/turnpack/turnpack/internal/plumb/pipe"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// renderLine is a case of the templates kit, or a case with its own template.
type renderLine struct {
	Template     string `json:"template"`
	TemplateText string `json:"template_text"`
	Conversation string `json:"conversation"`
	renderData
	AddGenerationPrompt  bool                       `json:"add_generation_prompt"`
	ContinueFinalMessage any                        `json:"continue_final_message"` // bool, or the name of a field
	DropNullKeys         *bool                      `json:"drop_null_keys"`         // default true
	Kwargs               map[string]json.RawMessage `json:"kwargs"`
	Context              json.RawMessage            `json:"context"` // variables of a template snippet
}

type renderData struct {
	Messages  json.RawMessage `json:"messages"`
	Tools     json.RawMessage `json:"tools"`
	Documents json.RawMessage `json:"documents"`
}

type renderAnswer struct {
	OK              bool           `json:"ok"`
	Text            *string        `json:"text,omitempty"`
	Fields          *[]renderField `json:"fields,omitempty"`
	OtherFields     []renderField  `json:"other_fields,omitempty"`
	Sampled         *[][2]int      `json:"sampled,omitempty"`
	GenerationSpans *[][2]int      `json:"generation_spans,omitempty"`
	Error           *templateError `json:"error,omitempty"`
}

// templateError is an error of a template with its 1-based position in the source.
type templateError struct {
	pipe.Detail
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
}

// renderField lists the spans of a field in the output: [out_start, out_end, field_start,
// field_end] in bytes.
type renderField struct {
	Path  string   `json:"path"`
	Spans [][4]int `json:"spans"`
}

// renderer holds what all lines share.
type renderer struct {
	dir           string
	single        *chat.Template
	now           time.Time
	templates     map[string]*chat.Template
	conversations map[string]renderData
}

func renderVerb() pipe.Verb {
	return pipe.Verb{Name: "render", Help: "render conversations with chat templates", Setup: func(fs *flag.FlagSet) func() (pipe.Run, error) {
		dir := fs.String("templates", "", "folder of NAME.jinja files")
		file := fs.String("template", "", "one template for all lines")
		convs := fs.String("conversations", "", "JSON file of conversations that lines name by id")
		now := fs.String("now", "", "what strftime_now sees, as 2006-01-02T15:04:05 (default: the clock)")
		snippets := fs.Bool("snippets", false, "lines hold template_text (or template) and context")
		return func() (pipe.Run, error) {
			r := &renderer{dir: *dir, templates: map[string]*chat.Template{}}
			if *now != "" {
				t, err := time.Parse("2006-01-02T15:04:05", *now)
				if err != nil {
					return pipe.Run{}, fmt.Errorf("--now is %q, want a time like 2026-01-15T12:00:00", *now)
				}
				r.now = t
			}
			if *file != "" {
				var err error
				if r.single, err = compileFile(*file); err != nil {
					return pipe.Run{}, err
				}
			}
			if *convs != "" {
				if err := r.readConversations(*convs); err != nil {
					return pipe.Run{}, err
				}
			}
			if *snippets {
				return pipe.Run{Lines: pipe.Cases(r.snippet)}, nil
			}
			return pipe.Run{Lines: pipe.Cases(r.line)}, nil
		}
	}}
}

func compileFile(path string) (*chat.Template, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return chat.Compile(string(src), chat.Options{Name: filepath.Base(path)})
}

func (r *renderer) readConversations(path string) error {
	data, err := pipe.ReadFile(path)
	if err != nil {
		return err
	}
	var list []struct {
		ID string `json:"id"`
		renderData
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("%s: want a list of conversations: %w", path, err)
	}
	r.conversations = make(map[string]renderData, len(list))
	for _, c := range list {
		r.conversations[c.ID] = c.renderData
	}
	return nil
}

func (r *renderer) template(in *renderLine) (*chat.Template, error) {
	switch {
	case in.TemplateText != "":
		return chat.Compile(in.TemplateText, chat.Options{})
	case r.single != nil:
		return r.single, nil
	case r.dir == "" || in.Template == "":
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "template"}, "the line names template %q; want a name and --templates DIR, or --template FILE", in.Template)
	case strings.ContainsAny(in.Template, `/\`):
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "template"}, "template name %q holds a path separator", in.Template)
	}
	if t := r.templates[in.Template]; t != nil {
		return t, nil
	}
	t, err := compileFile(filepath.Join(r.dir, in.Template+".jinja"))
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "template"}, "no template %q in the folder of --templates: %w", in.Template, path.Err)
	}
	if err == nil {
		r.templates[in.Template] = t
	}
	return t, err
}

func (r *renderer) line(ctx context.Context, in *renderLine) (any, error) {
	if in.Conversation != "" && in.Messages == nil {
		data, ok := r.conversations[in.Conversation]
		if !ok {
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "conversation"}, "conversation %q is not in the file of --conversations", in.Conversation)
		}
		in.renderData = data
	}
	conv, err := in.prepare()
	if err != nil {
		return nil, err
	}
	input, err := in.input(r.now)
	if err != nil {
		return nil, err
	}
	t, err := r.template(in)
	if err != nil {
		return refusal(err)
	}
	res, err := t.Render(ctx, conv, input)
	if err != nil {
		return refusal(err)
	}
	a := answerOf(res, kitMarks)
	if !input.ContinueFinalMessage {
		replies, err := tokenize.FindReplies(ctx, t, conv, input, res, nil)
		if err != nil {
			return nil, err
		}
		sampled := [][2]int{}
		for _, r := range replies {
			sampled = append(sampled, [2]int{r.Start, r.End})
		}
		a.Sampled = &sampled
	}
	return a, nil
}

func (in *renderLine) prepare() (*chat.Conversation, error) {
	var v [3]chat.Value
	for i, raw := range []json.RawMessage{in.Messages, in.Tools, in.Documents} {
		if raw == nil {
			continue
		}
		var err error
		if v[i], err = chat.ParseJSON(raw); err != nil {
			return nil, err
		}
	}
	keep := in.DropNullKeys != nil && !*in.DropNullKeys
	return chat.NewConversation(v[0], v[1], v[2], chat.ConversationOptions{KeepNull: keep})
}

func (in *renderLine) input(now time.Time) (chat.Input, error) {
	out := chat.Input{AddGenerationPrompt: in.AddGenerationPrompt, Now: now, Kwargs: make(map[string]chat.Value, len(in.Kwargs))}
	switch c := in.ContinueFinalMessage.(type) {
	case bool:
		out.ContinueFinalMessage = c
	case string:
		out.ContinueFinalMessage, out.ContinueField = true, c
	}
	for name, raw := range in.Kwargs {
		v, err := chat.ParseJSON(raw)
		if err != nil {
			return out, err
		}
		out.Kwargs[name] = v
	}
	return out, nil
}

func (r *renderer) snippet(ctx context.Context, in *renderLine) (any, error) {
	vars := chat.Object()
	if in.Context != nil {
		var err error
		if vars, err = chat.ParseJSON(in.Context); err != nil {
			return nil, err
		}
	}
	t, err := chat.Compile(cmp.Or(in.TemplateText, in.Template), chat.Options{})
	if err != nil {
		return refusal(err)
	}
	res, err := t.RenderVars(ctx, vars, chat.Input{Now: r.now})
	if err != nil {
		return refusal(err)
	}
	return answerOf(res, func(*chat.Field) bool { return true }), nil
}

// refusal returns an error of the template as an answer and any other error as an error.
func refusal(err error) (any, error) {
	if e, ok := errors.AsType[*chat.Error](err); ok {
		return renderAnswer{Error: &templateError{pipe.Detail{Kind: string(e.Class), Message: e.Message}, e.Line, e.Column}}, nil
	}
	return nil, err
}

// answerOf lists fields in order of first appearance. Fields that main does not accept go
// to other_fields.
func answerOf(r *chat.Result, main func(*chat.Field) bool) renderAnswer {
	a := renderAnswer{OK: true, Text: &r.Text, Fields: &[]renderField{}, GenerationSpans: &[][2]int{}}
	*a.GenerationSpans = append(*a.GenerationSpans, r.Generation...)
	type place struct {
		list *[]renderField
		i    int
	}
	seen := map[*chat.Field]place{}
	for s := range r.Spans() {
		if s.Field == nil {
			continue
		}
		p, ok := seen[s.Field]
		if !ok {
			p.list = &a.OtherFields
			if main(s.Field) {
				p.list = a.Fields
			}
			p.i = len(*p.list)
			*p.list = append(*p.list, renderField{Path: s.Field.Path()})
			seen[s.Field] = p
		}
		f := &(*p.list)[p.i]
		f.Spans = append(f.Spans, [4]int{s.Start, s.End, s.FieldStart, s.FieldEnd})
	}
	return a
}

// kitMarks reports whether the templates kit lists a place as a field: message text, ids,
// names, tool calls, and names and descriptions of tool schemas and documents. Roles and
// the rest of the schemas are data too, but the kit does not list them.
func kitMarks(f *chat.Field) bool {
	e := f.Elements()
	last := e[len(e)-1]
	switch e[0] {
	case "messages":
		return kitMarksMessage(f, e[2:])
	case "tools":
		if f.IsKey || f.Scalar {
			return false
		}
		return last == "description" || last == "name" && len(e) > 2 && e[len(e)-2] == "function"
	case "documents":
		return !f.IsKey && !f.Scalar && len(e) == 3 && (last == "title" || last == "text")
	}
	return false
}

// kitMarksMessage is kitMarks for the path e within a message.
func kitMarksMessage(f *chat.Field, e []string) bool {
	if len(e) == 0 {
		return false
	}
	switch e[0] {
	case "content", "reasoning_content", "reasoning", "thinking", "tool_call_id", "name":
		if len(e) == 1 {
			return !f.IsKey && !f.Scalar
		}
		child := f
		for range len(e) - 2 {
			child = child.Parent
		}
		if child.Index >= 0 { // content parts
			return len(e) == 3 && e[2] == "text" && !f.IsKey && !f.Scalar
		}
		return true
	case "tool_calls":
		if len(e) < 3 || f.IsKey && len(e) < 5 {
			return false
		}
		if e[2] == "id" {
			return len(e) == 3 && !f.Scalar
		}
		return e[2] == "function" && len(e) > 3 && (e[3] == "arguments" || e[3] == "name" && len(e) == 4)
	}
	return false
}
