package chat

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/turnpack/turnpack/internal/pytext"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat/internal/eval"
	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Options configures Compile. The zero value is right for published templates.
type Options struct {
	// Name is the name of the template in errors: a file or model name.
	Name string
	// Limits bounds compilation and rendering.
	Limits Limits
}

// Limits bounds what a template may use. A zero field means its default, which exceeds what real templates use by a
// factor of at least 100. Sizes are checked before memory is allocated. Exceeding a limit is a KindLimit error that
// wraps an *Error of class LimitError.
//
// Work and Memory are budgets for a whole rendering. Every statement, operator and builtin draws on them by the size
// of what it reads and writes: with the defaults no template takes more than about 2 s or 512 MB for a conversation
// of ordinary size. The defaults grow by 100 units and 8 bytes for each byte of the conversation.
type Limits struct {
	Source  int // bytes of template source; default 2 MiB
	Nesting int // depth of expressions and blocks; default 2,000
	Output  int // bytes of rendered text; default 64 MiB
	Bytes   int // bytes of any other string; default 64 MiB
	Items   int // items of any list; default 1,000,000
	Range   int // items of range(); default 100,000, as in Jinja's sandbox
	Work    int // units of about a nanosecond: 50 for a statement, 1 for a byte; default 1,000,000,000
	Memory  int // bytes of all strings, lists and origins made, even if freed; default 128 MiB
	Calls   int // depth of macro calls; default 200
	Integer int // bytes of any integer; default 16 KiB
}

// limit is one field of Limits with its default.
type limit struct {
	name  string
	value *int
	usual int
}

func (l *Limits) all() []limit {
	return []limit{
		{"Source", &l.Source, 2 << 20}, {"Nesting", &l.Nesting, 2000}, {"Output", &l.Output, 64 << 20}, {"Bytes", &l.Bytes, 64 << 20},
		{"Items", &l.Items, 1_000_000}, {"Range", &l.Range, 100_000}, {"Work", &l.Work, 1_000_000_000}, {"Memory", &l.Memory, 128 << 20},
		{"Calls", &l.Calls, 200}, {"Integer", &l.Integer, 16 << 10},
	}
}

func (l Limits) withDefaults() Limits {
	for _, f := range l.all() {
		*f.value = cmp.Or(*f.value, f.usual)
	}
	return l
}

// validate returns an error that lists all invalid limits.
func (o Options) validate() error {
	var errs []error
	for _, f := range o.Limits.all() {
		if v := *f.value; v < 0 || v > math.MaxInt32 {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Limits." + f.name},
				"limit is %d, want 0 (default) to %d", v, math.MaxInt32))
		}
	}
	return errors.Join(errs...)
}

// Template is a compiled chat template. It is immutable and safe for concurrent use.
type Template struct {
	name   string
	source string // newlines normalised
	prog   *eval.Program
	limits Limits
	eval   rt.Limits // limits for a rendering without data
	// perByte is how much the limits grow per byte of data.
	perByte struct{ work, memory int64 }
	links   bool // the template may fetch a tool name from a call: see linker.go
}

// Compile compiles the source of a chat template. Errors are of KindTemplate (class syntax or other) or KindLimit,
// with line and column; see Error.
func Compile(source string, opts Options) (*Template, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	t := &Template{name: opts.Name, limits: opts.Limits.withDefaults()}
	if len(source) > t.limits.Source {
		return nil, rollout.Errorf(rollout.KindLimit, rollout.Where{File: t.name},
			"template source is %d bytes, the limit is %d", len(source), t.limits.Source)
	}
	t.source = syntax.Normalize(source)
	t.links = strings.Contains(t.source, "tool_call_id")
	body, err := syntax.Parse(t.source, t.limits.Nesting)
	if err == nil {
		t.prog, err = eval.Compile(body)
	}
	if se, ok := errors.AsType[*syntax.Error](err); ok {
		f := value.Fault{Class: value.Syntax, Msg: se.Msg}
		switch {
		case se.Limit:
			f.Class = value.Limit
		case se.Python:
			f.Class = value.Other
		}
		return nil, t.fail(f, se.Pos)
	}
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInternal, rollout.Where{File: t.name}, "compile: %w", err)
	}
	l := t.limits
	t.eval = rt.Limits{
		Limits: value.Limits{Bytes: l.Bytes, Items: l.Items, IntBytes: l.Integer, Depth: 200, Work: int64(l.Work), Memory: int64(l.Memory)},
		Output: l.Output, Macros: l.Calls, Range: l.Range,
	}
	t.perByte.work, t.perByte.memory = 100, 8
	if opts.Limits.Work > 0 {
		t.perByte.work = 0
	}
	if opts.Limits.Memory > 0 {
		t.perByte.memory = 0
	}
	return t, nil
}

// Source returns the template text as Jinja reads it: newlines are \n, and one final newline is dropped.
func (t *Template) Source() string { return t.source }

// Input is the input of a rendering besides the conversation.
type Input struct {
	// AddGenerationPrompt appends the opening of the next assistant turn.
	AddGenerationPrompt bool
	// ContinueFinalMessage leaves the last message open, so that a model can continue it.
	ContinueFinalMessage bool
	// ContinueField is the field of the last message that is left open, "content" if empty.
	ContinueField string
	// Kwargs are further variables: special tokens (bos_token, …) and template arguments (enable_thinking, …). Their
	// text is scaffold, except that of values made by Recorded.
	Kwargs map[string]Value
	// Now is the time that strftime_now formats; zero means the current time.
	Now time.Time
	// Reuse is an earlier result that is no longer used, or nil. Its memory, including the bytes of its Text, is
	// reused for this result, so it must not be accessed again.
	Reuse *Result
	// Replay saves work where the same messages are rendered repeatedly with more messages after them; may be nil. It
	// does not change the result.
	Replay *Replay
}

// Replay holds what the last rendering that had it as Input.Replay wrote for each message. The zero value is ready to
// use. It serves one rendering at a time. The last result may be passed as Reuse once the next rendering has ended.
type Replay struct{ passes eval.Replay }

// Render renders a conversation to the text that transformers' apply_chat_template(tokenize=False) returns, byte for
// byte. Errors are of KindTemplate or KindLimit and wrap an *Error. Cancelling ctx stops a long rendering with a
// KindLimit error whose cause is the error of ctx.
func (t *Template) Render(ctx context.Context, c *Conversation, in Input) (*Result, error) {
	if err := t.checkNonZero(c); err != nil {
		return nil, err
	}
	messages, open := c.messages, ""
	if in.ContinueFinalMessage {
		var err error
		if messages, open, err = t.continued(c, in.ContinueField); err != nil {
			return nil, err
		}
	}
	run := t.input(c, messages, in)
	if in.Replay != nil && !in.ContinueFinalMessage {
		run.Replay = &in.Replay.passes
	}
	r, err := t.run(ctx, run, in.Reuse)
	if err != nil {
		return nil, err
	}
	if t.link(c, r) && run.Replay != nil {
		run.Replay.Forget()
	}
	if in.ContinueFinalMessage {
		if err := t.cut(r, open); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// checkNonZero returns an error if the template or the conversation is a zero value.
func (t *Template) checkNonZero(c *Conversation) error {
	switch {
	case t == nil || t.prog == nil:
		return zero.Value("chat.Template", "Compile")
	case c == nil || c.messages == nil:
		return zero.Value("chat.Conversation", "NewConversation")
	}
	return nil
}

// link attributes the names of called functions in r to the messages that answer the calls. It returns false if the
// template or the conversation has no such links.
func (t *Template) link(c *Conversation, r *Result) bool {
	l := c.linked
	if !t.links || l == nil || !l.named(c.Len()) {
		return false
	}
	l.link(c, r.runs, r.Extents)
	return true
}

// input returns the input of a run over the given messages of c.
func (t *Template) input(c *Conversation, messages *value.List, in Input) eval.Input {
	return eval.Input{
		Vars: func(name string) value.Value {
			switch name {
			case "messages":
				return messages
			case "tools":
				return c.tools
			case "documents":
				return c.documents
			case "add_generation_prompt":
				return value.NewBool(in.AddGenerationPrompt)
			}
			if v, ok := in.Kwargs[name]; ok {
				return v.get()
			}
			return nil
		},
		Now:    clock(in.Now),
		Limits: t.limitsFor(c.size),
	}
}

// limitsFor returns the limits for a rendering of size bytes of data.
func (t *Template) limitsFor(size int) *rt.Limits {
	l := t.eval
	l.Work += t.perByte.work * int64(size)
	l.Memory += t.perByte.memory * int64(size)
	return &l
}

// RenderVars renders a template snippet with arbitrary variables, the members of the object vars, instead of a
// conversation. The paths of their strings are relative to vars.
func (t *Template) RenderVars(ctx context.Context, vars Value, in Input) (*Result, error) {
	d, ok := vars.get().(*value.Dict)
	if !ok {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: t.name}, "variables are a %s, want an object", vars.get().TypeName())
	}
	located := value.NewDict(d.Len())
	for i := range d.Len() {
		name, _ := d.KeyString(i)
		located.SetString(name, locate(d.Val(i), rootField(name)))
	}
	return t.run(ctx, eval.Input{Vars: located.GetString, Now: clock(in.Now), Limits: t.limitsFor(sizeOf(d))}, nil)
}

func (t *Template) run(ctx context.Context, in eval.Input, reuse *Result) (*Result, error) {
	in.Into = &value.Memory{}
	if reuse != nil {
		in.Into = &value.Memory{B: reuse.buf, Runs: reuse.runs}
	}
	var r *Result
	done := func(out *eval.Output) {
		if r = newResult(out, reuse); in.Replay != nil {
			in.Replay.Wrote(value.Memory{B: r.buf, Runs: r.runs})
		}
	}
	if failure := t.prog.Run(ctx, in, done); failure != nil {
		return nil, t.fail(failure.Fault, failure.Pos)
	}
	return r, nil
}

// clock returns a clock that always shows now or, if now is zero, the time of its first call.
func clock(now time.Time) func() time.Time {
	return func() time.Time {
		if now.IsZero() {
			now = time.Now()
		}
		return now
	}
}

const continueTag = "CONTINUE_FINAL_MESSAGE_TAG "

var reasoningFields = []string{"reasoning_content", "thinking", "reasoning"}

// continued returns the messages with a tag after the text that stays open at the end of the rendering, and that
// text.
func (t *Template) continued(c *Conversation, field string) (messages *value.List, text string, err error) {
	l := &t.limitsFor(c.size).Limits
	if field == "" {
		field = "content"
	}
	n := len(c.messages.Items)
	if n == 0 {
		return nil, "", t.failf(value.Other, "continue_final_message is set but the conversation is empty!")
	}
	last := c.messages.Items[n-1].(*value.Dict)
	final := last.GetString(field)
	if _, none := final.(*value.None); final == nil || none {
		return nil, "", t.failf(value.Other, "continue_final_message is set but the final message has no %q to continue!", field)
	}
	fields := []string{field}
	for _, f := range reasoningFields {
		if f != field {
			continue
		}
		fields = nil
		for _, f := range reasoningFields {
			if v := last.GetString(f); v != nil {
				if value.Equal(l, v, final) {
					fields = append(fields, f)
				}
			}
		}
	}
	accepted := false
	for _, f := range fields {
		accepted = accepted || strings.Contains(t.source, f)
	}
	if !accepted {
		return nil, "", t.failf(value.Other, "continue_final_message is set to %q but this is not an accepted field in the chat_template", field)
	}
	tagged := last.Clone(0)
	if list, ok := final.(*value.List); ok {
		var open *value.List
		if open, text, err = t.tagLastText(list, l); err != nil {
			return nil, "", err
		}
		tagged.SetString(field, open)
	} else {
		for _, f := range fields {
			v := last.GetString(f)
			tagged.SetString(f, py.Arith(l, "+", v, value.Lit(continueTag)))
			if l.Err != nil {
				return nil, "", t.fail(*l.Err, -1)
			}
		}
		s, ok := final.(*value.Str)
		if !ok {
			return nil, "", t.failf(value.Other, "'%s' object has no attribute 'strip'", final.TypeName())
		}
		text = s.S
	}
	items := append([]value.Value(nil), c.messages.Items...)
	items[n-1] = tagged
	return &value.List{Items: items, F: c.messages.F}, text, nil
}

// tagLastText returns list with a tag appended to its last text block, and the untagged text of that block.
func (t *Template) tagLastText(list *value.List, l *value.Limits) (*value.List, string, error) {
	items := append([]value.Value(nil), list.Items...)
	for i := len(items) - 1; i >= 0; i-- {
		has := value.Contains(l, items[i], value.Lit("text"))
		if l.Err != nil {
			return nil, "", t.fail(*l.Err, -1)
		}
		if !has {
			continue
		}
		d, ok := items[i].(*value.Dict)
		if !ok {
			return nil, "", t.failf(value.Type, "content block is a %s, not a mapping", items[i].TypeName())
		}
		s, ok := d.GetString("text").(*value.Str)
		if !ok {
			return nil, "", t.failf(value.Type, "unsupported operand type(s) for +: '%s' and 'str'", d.GetString("text").TypeName())
		}
		open := value.Concat(l, s, value.Lit(continueTag))
		if l.Err != nil {
			return nil, "", t.fail(*l.Err, -1)
		}
		d = d.Clone(0)
		d.SetString("text", open)
		items[i] = d
		return &value.List{Items: items, F: list.F}, s.S, nil
	}
	return nil, "", t.failf(value.Other, "continue_final_message is set but we could not find any text to continue in the final message!")
}

// cut removes the tag after the text and everything that follows.
func (t *Template) cut(r *Result, text string) error {
	tag := strings.TrimSpace(continueTag)
	i := strings.LastIndex(r.Text, tag)
	if i < 0 || !strings.Contains(r.Text, strings.TrimFunc(text, pytext.IsSpace)) {
		return t.failf(value.Other, "continue_final_message is set but the final message does not appear in the chat after applying the chat template! This can happen if the chat template deletes portions of the final message. Please verify the chat template and final message in your chat to ensure they are compatible.")
	}
	if !strings.HasPrefix(r.Text[i:], continueTag) {
		i = len(strings.TrimRightFunc(r.Text[:i], pytext.IsSpace))
	}
	r.truncate(i)
	return nil
}
