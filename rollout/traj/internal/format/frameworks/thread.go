package frameworks

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// All are the importers. The first that knows a record reads it.
func All() []format.Importer {
	return slices.Concat([]format.Importer{openCode(), cline()}, geminiCLI(), goose(), pydantic(), langChain(), contents(), converse(), vercelUI(), vercel(), spans())
}

// A dialect is how a framework writes messages.
type dialect struct {
	name string
	// is knows one message.
	is func(v format.Value) bool
	// add adds what one message says.
	add func(t *thread, v format.Value) error
	// list names the member of a record that holds the messages.
	list string
	// session says that the client writes its own prompt and tools, and does not keep
	// them.
	session bool
	// all says that every message tells itself: none is written as in any chat.
	all bool
}

// importers reads records whose list holds such messages, and files that are one list.
func (d dialect) importers() []format.Importer {
	return []format.Importer{
		{Name: d.name, Read: d.read, Stateless: true, Match: func(v format.Value, _ *format.File) bool {
			list := v.Get(d.list)
			if list.Kind() != jsonscan.Array {
				return false
			}
			for _, x := range list.Items() {
				if d.is(x) {
					return true
				}
				role := x.Get("role")
				if d.all || role.Kind() != jsonscan.String || x.Get("content").Kind() != jsonscan.String && !role.Is("user") && !role.Is("system") {
					return false // prompts and texts may be written as in any chat
				}
			}
			return false
		}},
		{Name: d.name, Match: func(v format.Value, in *format.File) bool { return in.InList && d.is(v) },
			Fold: func(in *format.File) format.Folder { return &folder{d, newThread(in)} }},
	}
}

type folder struct {
	d dialect
	t *thread
}

func (f *folder) Add(v format.Value) error { return f.d.add(f.t, v) }
func (f *folder) Finish() error            { return f.t.emit(f.d.session) }

// promptKeys are where a record keeps the system prompt beside the messages.
var promptKeys = []string{"system", "system_prompt", "systemPrompt", "instructions", "systemInstruction", "system_instruction"}

// read reads a record: its prompt, its messages, its tools, ids and outcome.
func (d dialect) read(in *format.File, v format.Value) error {
	t := newThread(in)
	r := t.r
	r.ID, r.Instance = format.FirstID(v, "traj_id", "trajectory_id", "rollout_id", "id", "session_id", "sessionId", "thread_id"), format.FirstID(v, "instance_id", "task_id")
	for _, key := range promptKeys {
		if x := v.Get(key); len(r.Messages) == 0 && !x.IsNull() && !x.Is("") {
			if err := t.prompt(x); err != nil {
				return err
			}
		}
	}
	for _, x := range v.Get(d.list).Items() {
		if err := d.add(t, x); err != nil {
			return err
		}
	}
	for _, defs := range []format.Value{v.Get("tools"), v.Path("toolConfig", "tools"), v.Path("config", "tools")} {
		if err := t.tools(defs); err != nil {
			return err
		}
	}
	r.Outcome.Reward = in.Reward(v.Get("reward"))
	r.Outcome.Resolved = in.Resolved(v.Get("resolved"))
	for _, settings := range []format.Value{v, v.Get("inferenceConfig"), v.Get("generationConfig"), v.Get("config")} {
		if f := format.Temperature(settings.Get("temperature")); r.Temperature == nil {
			r.Temperature = f
		}
	}
	in.Leftover(r, v, append(slices.Clone(promptKeys), d.list, "id", "traj_id", "instance_id", "tools", "toolConfig", "reward", "resolved")...)
	return t.emit(d.session)
}

// A thread is a conversation as it grows.
type thread struct {
	in   *format.File
	r    *rollout.Rollout
	lost string         // why what later turns saw is not known
	ends map[int]string // why replies ended
	// unseen are the messages whose turns saw what is not known.
	unseen map[int]bool
}

func newThread(in *format.File) *thread {
	return &thread{in: in, r: &rollout.Rollout{Index: format.NoIndex}, unseen: map[int]bool{}}
}

func (t *thread) at() rollout.Index { return rollout.At(len(t.r.Messages)) }

// say adds a message.
func (t *thread) say(m rollout.Message) {
	if m.Role == rollout.RoleAssistant && m.Sampled == rollout.SampledUnknown {
		m.Sampled = rollout.SampledByPolicy
		t.unseen[len(t.r.Messages)] = t.lost != ""
	}
	t.r.Messages = append(t.r.Messages, m)
}

func (t *thread) text(role rollout.Role, text string) {
	t.say(rollout.Message{Role: role, Content: text})
}

// result adds the result of a call. A value that is no text was shown as JSON.
func (t *thread) result(id string, v format.Value) {
	t.say(rollout.Message{Role: rollout.RoleTool, ToolCallID: id, Content: format.PlainText(v), NoContent: v.IsNull()})
}

// unknown refuses a part that no rule is for.
func (t *thread) unknown(field, kind string) error {
	return t.in.Fail(t.at(), field, "a part of kind %q is not understood", kind)
}

// lose says that what the turns from here on saw is not known.
func (t *thread) lose(why string) {
	if t.lost == "" {
		t.lost = why
		t.in.Note("context_lost", t.at(), "%s: what later turns saw is not known", why)
	}
}

// prompt adds the system prompt: a text, a list of texts, or the parts of one.
func (t *thread) prompt(v format.Value) error {
	var texts []string
	if parts := v.Get("parts"); parts.Kind() == jsonscan.Array {
		v = parts
	}
	switch v.Kind() {
	case jsonscan.String:
		texts = []string{v.String()}
	case jsonscan.Array:
		for _, x := range v.Items() {
			s, ok := x.Text()
			if !ok {
				s, ok = x.Get("text").Text()
			}
			if !ok && x.Get("cachePoint").Kind() != jsonscan.Object {
				return t.in.Want(x, t.at(), "/system", "a text")
			}
			texts = append(texts, s)
		}
	default:
		return t.in.Want(v, t.at(), "/system", "a text or a list of texts")
	}
	if s := strings.Join(texts, ""); s != "" {
		t.text(rollout.RoleSystem, s)
	}
	return nil
}

// tools takes definitions of tools in the shapes of the APIs.
func (t *thread) tools(defs format.Value) error {
	defs, err := t.in.ParseInner(defs, "/tools")
	if err != nil {
		return err
	}
	for _, x := range defs.Items() {
		switch {
		case x.Get("toolSpec").Kind() == jsonscan.Object: // Bedrock
			spec := x.Get("toolSpec")
			t.define(spec.Get("name"), spec.Get("description"), spec.Path("inputSchema", "json"))
		case x.Get("functionDeclarations").Kind() == jsonscan.Array: // Gemini
			for _, f := range x.Get("functionDeclarations").Items() {
				schema := f.Get("parametersJsonSchema")
				if schema.IsNull() {
					schema = f.Get("parameters")
				}
				t.define(f.Get("name"), f.Get("description"), schema)
			}
		case x.Get("cachePoint").Kind() == jsonscan.Object:
		default:
			t.r.Tools = append(t.r.Tools, format.FunctionTools(defs)...)
			return nil
		}
	}
	return nil
}

func (t *thread) define(name, description, schema format.Value) {
	var f, o format.Object
	f.Text("name", name.String())
	if s, ok := description.Text(); ok {
		f.Text("description", s)
	}
	if !schema.IsNull() {
		f.Raw("parameters", schema.Clone())
	}
	o.Text("type", "function")
	o.Raw("function", f.End())
	t.r.Tools = append(t.r.Tools, o.End())
}

// emit completes the rollout.
func (t *thread) emit(session bool) error {
	r := t.r
	r.Turns = format.TurnsOf(r.Messages)
	for i := range r.Turns {
		turn := &r.Turns[i]
		turn.Context.Unknown = t.unseen[turn.Message]
		turn.FinishReason = t.ends[turn.Message]
	}
	if session {
		if t.in.Settings.System == "" && (len(r.Messages) == 0 || r.Messages[0].Role != rollout.RoleSystem) {
			t.in.Note("system_not_recorded", 0, "no session holds the system prompt; give it where it is known")
		}
		t.in.Note("tools_not_recorded", 0, "no session holds the definitions of tools")
	}
	t.in.NoteParts(r)
	t.in.UnlinkResults(r)
	return t.in.Emit(r)
}

func call(id, name string, arguments format.Value) rollout.ToolCall {
	c := rollout.ToolCall{ID: id, Name: name}
	if arguments.IsNull() {
		c.Arguments = "{}"
		return c
	}
	format.SetArguments(&c, arguments)
	return c
}

// end says why the reply that is added next ended.
func (t *thread) end(why string) {
	if why == "" {
		return
	}
	if t.ends == nil {
		t.ends = map[int]string{}
	}
	t.ends[len(t.r.Messages)] = why
}
