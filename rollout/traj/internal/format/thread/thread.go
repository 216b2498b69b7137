package thread

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Dialect describes the messages of a framework.
type Dialect struct {
	Name string
	// Is reports whether v is a message of the dialect.
	Is func(v format.Value) bool
	// Add adds the content of one message.
	Add func(t *Thread, v format.Value)
	// List is the key of the messages in a record.
	List string
	// Session says that the client has its own system prompt and tools, and does not record
	// them.
	Session bool
	// All says that Is recognizes every message: none looks like a message of another
	// format.
	All bool
	// Start looks at a record before its messages are added.
	Start func(t *Thread, v format.Value)
	// Call returns the model call in a record that is one, or the history in the object
	// that contains it.
	Call func(v format.Value) (Call, bool)
}

// Call is the request of a model call and its reply.
type Call struct {
	Request, Reply format.Value
	Plain          bool   // the request is a history, and there is no reply
	End            string // finish reason
	Others         int    // number of further choices
}

// call returns the model call that a record holds; false if it holds none.
func (d Dialect) call(v format.Value) (Call, bool) {
	if d.Call == nil {
		return Call{}, false
	}
	return d.Call(v)
}

// Importers reads records whose list holds such messages, and files that are one list.
func (d Dialect) Importers() []format.Importer {
	return []format.Importer{
		{Name: d.Name, Read: d.read, Stateless: true, Match: func(v format.Value, _ *format.File) bool {
			if c, is := d.call(v); is {
				v = c.Request
			}
			list := v.Get(d.List)
			if list.Kind() != jsonscan.Array {
				return false
			}
			for _, x := range list.Items() {
				if d.Is(x) {
					return true
				}
				role := x.Get("role")
				if d.All || role.Kind() != jsonscan.String || x.Get("content").Kind() != jsonscan.String && !role.Is("user") && !role.Is("system") {
					return false // prompts and texts may look like any chat
				}
			}
			return false
		}},
		{Name: d.Name, Match: func(v format.Value, in *format.File) bool { return in.InList && d.Is(v) },
			Fold: func(in *format.File) format.Folder { return d.Folder(New(in)) }},
	}
}

// Folder returns a folder that reads a file of such messages into t.
func (d Dialect) Folder(t *Thread) format.Folder { return &folder{d, t} }

type folder struct {
	d Dialect
	t *Thread
}

func (f *folder) Add(v format.Value) error {
	f.d.Add(f.t, v)
	return f.t.OrLose()
}

func (f *folder) Finish() error { return f.t.Emit(f.d.Session) }

// OrLose returns the fault of the message; if there is one, later contexts are unknown.
func (t *Thread) OrLose() error {
	err := t.TakeBack(len(t.Rollout.Messages))
	if err != nil {
		t.Lose("a message is not understood and was left out")
	}
	return err
}

// TakeBack returns the fault of the messages since from; if there is one, it drops them, and
// what was noted of the one that is not said.
func (t *Thread) TakeBack(from int) error {
	err := t.In.Checked(nil)
	if err != nil {
		t.Rollout.Messages = t.Rollout.Messages[:from]
		delete(t.Cut, from)
		delete(t.Ends, from)
	}
	return err
}

// promptKeys are keys of a system prompt beside the messages.
var promptKeys = []string{"system", "system_prompt", "systemPrompt", "instructions", "systemInstruction", "system_instruction"}

// read reads a record: its prompt, its messages, its tools, ids and outcome.
func (d Dialect) read(in *format.File, v format.Value) error {
	t := New(in)
	r := t.Rollout
	r.ID, r.Instance = format.FirstID(v, "traj_id", "trajectory_id", "rollout_id", "id", "session_id", "sessionId", "thread_id"), format.FirstID(v, "instance_id", "task_id")
	body, call := v, Call{}
	if c, is := d.call(v); is {
		body, call = c.Request, c
	}
	for _, place := range []format.Value{body, body.Get("config"), v} {
		for _, key := range promptKeys {
			x := place.Get(key)
			if x.IsNull() || x.Is("") {
				continue
			}
			if len(r.Messages) > 0 {
				if s, ok := x.Text(); ok && s != r.Messages[0].Content {
					in.Note("system_differs", 0, "the key %q holds another system prompt than a key read before it; the first counts", key)
				}
				continue
			}
			t.Prompt(x)
		}
	}
	if d.Start != nil {
		d.Start(t, v)
	}
	for _, x := range body.Get(d.List).Items() {
		d.Add(t, x)
	}
	if call.Request.Kind() != jsonscan.Absent && !call.Plain {
		if err := d.reply(t, call); err != nil {
			return err
		}
	}
	for _, defs := range []format.Value{body.Get("tools"), body.Path("toolConfig", "tools"), body.Path("config", "tools"), v.Get("tools"), body.Get("functions")} {
		if len(r.Tools) == 0 {
			t.Tools(defs)
		}
	}
	r.Outcome = in.Outcome(v)
	for _, settings := range []format.Value{body, body.Get("inferenceConfig"), body.Get("generationConfig"), body.Get("generation_config"), body.Get("config"), body.Get("sampling_params")} {
		in.TemplateKwargs(r, settings)
		if f := format.Temperature(settings.Get("temperature")); r.Temperature == nil {
			r.Temperature = f
		}
	}
	taken := slices.Clone(promptKeys)
	if call.Request.Kind() != jsonscan.Absent {
		taken = append(taken, "request", "response", "input", "output", "candidates", "values", "channel_values", "checkpoint", "kwargs")
	}
	in.Leftover(r, v, append(taken, d.List, "id", "traj_id", "instance_id", "tools", "toolConfig", "functions", "chat_template_kwargs", "template_kwargs", "reward", "resolved")...)
	return t.Emit(d.Session || call.Plain)
}

// reply adds the reply of a call, the only sampled message in it.
func (d Dialect) reply(t *Thread, c Call) error {
	n := len(t.Rollout.Messages)
	format.MarkReplies(t.Rollout.Messages, rollout.SampledPrefilled)
	clear(t.Ends)
	t.Need(c.Reply, jsonscan.Object, "/response", "the reply of the model")
	t.End(c.End)
	d.Add(t, c.Reply)
	if t.In.Broken() {
		return nil
	}
	if len(t.Rollout.Messages) != n+1 || t.Rollout.Messages[n].Role != rollout.RoleAssistant {
		return t.In.Fail(rollout.At(n), "/response", "what was replied is no message of the model")
	}
	if c.Others > 0 {
		t.In.Note("other_choices", rollout.At(n), "%d choices were sampled, the first was taken", c.Others+1)
	}
	return nil
}

// Thread is a conversation under construction.
type Thread struct {
	In      *format.File
	Rollout *rollout.Rollout
	Lost    string         // why the contexts of later turns are unknown
	Ends    map[int]string // finish reasons by message
	Unseen  map[int]bool   // messages whose turns have an unknown context
	Cut     map[int]string // why replies are incomplete, by message
	// Shown returns the text in which the client shows the response of a function.
	Shown func(response format.Value) string
	err   error // the first fault that refuses the rollout
}

// New returns an empty Thread.
func New(in *format.File) *Thread {
	return &Thread{In: in, Rollout: &rollout.Rollout{Index: format.NoIndex}, Ends: map[int]string{}, Unseen: map[int]bool{}, Cut: map[int]string{}, Shown: onlyOutput}
}

// At returns the index of the next message.
func (t *Thread) At() rollout.Index { return rollout.At(len(t.Rollout.Messages)) }

// Say adds a message.
func (t *Thread) Say(m rollout.Message) {
	if t.In.Broken() {
		return
	}
	if m.Role == rollout.RoleAssistant && m.Sampled == rollout.SampledUnknown {
		m.Sampled = rollout.SampledByPolicy
		t.Unseen[len(t.Rollout.Messages)] = t.Lost != ""
	}
	t.Rollout.Messages = append(t.Rollout.Messages, m)
}

// Blocks adds a message whose content is a text or blocks of the Messages API.
func (t *Thread) Blocks(m rollout.Message, body format.Value) {
	if !t.In.Broken() {
		t.In.Wrong(t.In.Blocks(t.Rollout, m, body))
	}
}

// SayTexts adds a message of several texts, which stay separate parts: the template decides
// how to join them.
func (t *Thread) SayTexts(m rollout.Message, texts []string) {
	for i, s := range texts {
		if len(texts) == 1 {
			m.Content = s
		} else if format.AddText(&m, s); i == 0 {
			m.NoContent = false
		}
	}
	t.Say(m)
}

// Text adds a message of one text.
func (t *Thread) Text(role rollout.Role, text string) {
	t.Say(rollout.Message{Role: role, Content: text})
}

// Result adds the result of a call. A value that is not a string is shown to the model as
// JSON.
func (t *Thread) Result(id string, v format.Value) {
	if v.Kind() == jsonscan.Absent {
		t.fault(t.In.Want(v, t.At(), "/result", "the result of a call"))
	}
	t.Say(rollout.Message{Role: rollout.RoleTool, ToolCallID: id, Content: format.PlainText(v), NoContent: v.IsNull()})
}

// Need makes the message wrong if v is of another kind: nothing of it is said from here on.
func (t *Thread) Need(v format.Value, kind jsonscan.Kind, field, what string) {
	t.In.Need(v, kind, t.At(), field, what)
}

// Words returns the text of a part that must have one.
func (t *Thread) Words(p format.Value, key, field string) string {
	t.Need(p.Get(key), jsonscan.String, field+"/"+key, "a text")
	return p.Get(key).String()
}

// Speaker returns the role of a message's speaker.
func (t *Thread) Speaker(word string) rollout.Role {
	role, err := t.In.Speaker(word, len(t.Rollout.Messages), "/role")
	t.In.Wrong(err)
	return role
}

// Unknown makes the message wrong for a part of unknown kind.
func (t *Thread) Unknown(field, kind string) {
	t.In.Wrong(t.In.Fail(t.At(), field, "a part of kind %q is not understood", kind))
}

// Lose marks the contexts of all following turns as unknown.
func (t *Thread) Lose(why string) {
	if t.Lost == "" && !t.In.Broken() {
		t.Lost = why
		t.In.Note("context_lost", t.At(), "%s: what later turns saw is not known", why)
	}
}

// Unanswered reports whether the last reply has calls without results.
func (t *Thread) Unanswered() bool {
	at, results := len(t.Rollout.Messages)-1, 0
	for ; at >= 0 && t.Rollout.Messages[at].Role == rollout.RoleTool; at-- {
		results++
	}
	return at >= 0 && results < len(t.Rollout.Messages[at].ToolCalls)
}

// Prompt adds the system prompt: a text, a list of texts, or a content's parts.
func (t *Thread) Prompt(v format.Value) {
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
			if !ok {
				s, ok = x.Path("guardContent", "text", "text").Text()
			}
			if !ok && x.Get("cachePoint").Kind() != jsonscan.Object {
				t.In.Wrong(t.In.Want(x, t.At(), "/system", "a text"))
			}
			texts = append(texts, s)
		}
	default:
		t.In.Wrong(t.In.Want(v, t.At(), "/system", "a text or a list of texts"))
	}
	if s := strings.Join(texts, ""); s != "" {
		t.Text(rollout.RoleSystem, s)
	}
}

// Tools reads tool definitions in the forms of the APIs.
func (t *Thread) Tools(defs format.Value) {
	for _, x := range t.In.Inner(defs, "/tools").Items() {
		t.tool(x)
	}
}

// tool adds a definition, or all functions of a Gemini tool.
func (t *Thread) tool(x format.Value) {
	functions, inner := firstOf(x, "functionDeclarations", "function_declarations"), false
	for _, key := range []string{"name", "function", "type"} {
		inner = inner || x.Get(key).Kind() != jsonscan.Absent
	}
	switch {
	case x.Get("toolSpec").Kind() == jsonscan.Object: // Bedrock
		spec := x.Get("toolSpec")
		t.Define(spec.Get("name"), spec.Get("description"), spec.Path("inputSchema", "json"))
	case functions.Kind() == jsonscan.Array:
		for _, f := range functions.Items() {
			t.Define(f.Get("name"), f.Get("description"), firstOf(f, "parametersJsonSchema", "parameters_json_schema", "parameters"))
		}
	case inner || x.Kind() == jsonscan.String:
		t.Rollout.Tools = append(t.Rollout.Tools, format.FunctionTool(x))
	case x.Get("cachePoint").Kind() == jsonscan.Object:
	default:
		t.In.Wrong(t.In.Fail(0, "/tools", "a tool of kind %s is not understood", format.Shape(x)))
	}
}

// firstOf returns the first of the members that is not null.
func firstOf(v format.Value, keys ...string) (x format.Value) {
	for _, key := range keys {
		if x = v.Get(key); !x.IsNull() {
			break
		}
	}
	return x
}

func (t *Thread) Define(name, description, schema format.Value) {
	var f format.Object
	f.Text("name", name.String())
	if s, ok := description.Text(); ok {
		f.Text("description", s)
	}
	if !schema.IsNull() {
		f.Raw("parameters", schema.Clone())
	}
	t.Rollout.Tools = append(t.Rollout.Tools, format.Function(&f))
}

// Emit completes and emits the rollout.
func (t *Thread) Emit(session bool) error { return t.EmitWith(session, nil) }

// refuseEmpty returns an error for messages that must not be empty, and for results that
// name no call in threads whose calls have ids.
func (t *Thread) refuseEmpty() error {
	named := slices.ContainsFunc(t.Rollout.Messages, func(m rollout.Message) bool {
		return slices.ContainsFunc(m.ToolCalls, func(c rollout.ToolCall) bool { return c.ID != "" })
	})
	for i, m := range t.Rollout.Messages {
		switch {
		case m.Role == rollout.RoleTool && m.ToolCallID == "" && named:
			t.fault(t.In.Fail(rollout.At(i), "", "the result names no call"))
		case (m.Role == rollout.RoleUser || m.Role == rollout.RoleSystem) && m.NoContent && len(m.Parts) == 0:
			t.fault(t.In.Fail(rollout.At(i), "/content", "the message has no content"))
		}
	}
	return t.In.Checked(t.err)
}

// EmitWith is Emit with contexts by message index; the others are the plain history.
func (t *Thread) EmitWith(session bool, contexts map[int][]rollout.ContextPart) error {
	r := t.Rollout
	if err := t.refuseEmpty(); err != nil {
		return err
	}
	r.Turns = format.TurnsOf(r.Messages)
	for i := range r.Turns {
		turn := &r.Turns[i]
		if format.Silent(&r.Messages[turn.Message]) && t.Cut[turn.Message] == "" {
			t.Cut[turn.Message] = "no text and no call of the reply is recorded"
		}
		turn.Context.Unknown, turn.Context.Parts = t.Unseen[turn.Message], contexts[turn.Message]
		turn.FinishReason = t.Ends[turn.Message]
		if turn.Incomplete = t.Cut[turn.Message]; turn.Incomplete != "" {
			t.In.Note("incomplete", rollout.At(turn.Message), "%s: it is context and never trained", turn.Incomplete)
		}
	}
	if session {
		t.In.NoteHidden(r)
	}
	t.In.NoteParts(r)
	t.In.UnlinkResults(r)
	return t.In.Emit(r)
}

// Call returns a tool call, whose name and arguments are required.
func (t *Thread) Call(id, name string, arguments format.Value) rollout.ToolCall {
	if arguments.Kind() == jsonscan.Absent {
		t.fault(t.In.Want(arguments, t.At(), "/arguments", "the arguments of the call"))
	}
	return t.BareCall(id, name, arguments)
}

// BareCall returns a tool call that may lack arguments.
func (t *Thread) BareCall(id, name string, arguments format.Value) rollout.ToolCall {
	c := rollout.ToolCall{ID: id, Name: name}
	if name == "" {
		t.fault(t.In.Fail(t.At(), "/name", "the call has no name"))
	}
	if arguments.IsNull() {
		c.Arguments = "{}"
		return c
	}
	format.SetArguments(&c, arguments)
	return c
}

// fault stores the first fault, which refuses the rollout.
func (t *Thread) fault(err error) {
	if t.err == nil && !t.In.Broken() {
		t.err = err
	}
}

// Items returns the elements of a list that is required.
func (t *Thread) Items(v format.Value, key, field string) []format.Value {
	if v.Get(key).Kind() != jsonscan.Array {
		t.fault(t.In.Want(v.Get(key), t.At(), field+"/"+key, "a list"))
	}
	return format.Elements(v.Get(key))
}

// End sets the finish reason of the reply added next.
func (t *Thread) End(why string) {
	if why == "" {
		return
	}
	t.Ends[len(t.Rollout.Messages)] = why
}
