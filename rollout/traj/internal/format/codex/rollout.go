package codex

import (
	"cmp"
	"slices"
	"time"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Importer reads rollout files.
func Importer() format.Importer {
	return format.Importer{Name: "codex", Match: match, Fold: func(in *format.File) format.Folder { return newRun(in) }}
}

// lineKinds are the types of lines.
var lineKinds = []string{"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state", "inter_agent_communication", "inter_agent_communication_metadata", "token_usage_record"}

func match(v format.Value, _ *format.File) bool {
	if v.Get("payload").Kind() == jsonscan.Object && slices.Contains(lineKinds, v.Get("type").Word()) {
		return true
	}
	return bareMeta(v) || v.Get("record_type").Is("state")
}

// bareMeta reports whether v is the first line of a file from before September 2025.
func bareMeta(v format.Value) bool {
	return v.Get("type").Kind() == jsonscan.Absent && v.Get("id").Kind() == jsonscan.String && v.Get("timestamp").Kind() == jsonscan.String &&
		v.Get("instructions").Kind() != jsonscan.Absent && v.Len() <= 4
}

// run is a file while it is read.
type run struct {
	in      *format.File
	r       *rollout.Rollout
	history []int // messages that the next reply sees
	lost    bool  // the history is not completely known
	lostAt  int   // the first reply with an unknown history, -1 = none

	open    bool // the last reply may get more items
	rank    int  // rank of the last item of the reply
	counted bool // token counts follow the replies
	raw     string

	users   []int // indices in history where user turns begin
	awaited bool  // the next user message begins a turn

	began   time.Time
	forked  bool
	copying bool // the items are from another session
	meta    bool
	effort  string
	unknown map[string]bool
	hidden  int // replies whose reasoning is encrypted
}

func newRun(in *format.File) *run {
	return &run{in: in, r: &rollout.Rollout{Index: format.NoIndex}, lostAt: -1, unknown: map[string]bool{}}
}

func (x *run) Add(v format.Value) error {
	if v.Kind() != jsonscan.Object {
		return x.in.Want(v, 0, "", "a line of a rollout")
	}
	kind, p := v.Get("type").Word(), v.Get("payload")
	if p.Kind() != jsonscan.Object {
		switch {
		case v.Get("record_type").Kind() == jsonscan.String:
			return nil
		case bareMeta(v):
			kind, p = "session_meta", v
		default:
			kind, p = "response_item", v
		}
	}
	x.copied(v)
	err := x.line(kind, p)
	if err != nil {
		x.lost, x.open = true, false
	}
	return err
}

// copied detects items that a fork copied from its parent: they have about the same time as
// its first line, too soon for a new reply.
func (x *run) copied(v format.Value) {
	at, err := time.Parse(time.RFC3339, v.Get("timestamp").String())
	if err != nil {
		return
	}
	if x.began.IsZero() {
		x.began = at
	}
	x.copying = x.forked && at.Sub(x.began) < time.Second
}

func (x *run) line(kind string, p format.Value) error {
	switch kind {
	case "session_meta":
		x.session(p)
	case "response_item":
		return x.item(p)
	case "turn_context":
		x.settings(p)
	case "compacted":
		return x.compacted(p)
	case "event_msg":
		x.event(p)
	case "world_state", "inter_agent_communication_metadata", "token_usage_record":
	default:
		x.notUnderstood("lines", kind)
		x.lost = true
	}
	return nil
}

func (x *run) notUnderstood(what, kind string) {
	if !x.unknown[kind] {
		x.unknown[kind] = true
		x.in.Note("event_unknown", 0, "%s of type %q are not understood and were left in the dump", what, kind)
	}
}

func (x *run) session(p format.Value) {
	if x.meta {
		x.forked = x.forked || p.Get("id").String() != x.r.ID // a fork repeats the meta line of its parent
		return
	}
	x.meta = true
	x.r.ID = p.Get("id").String()
	x.forked = p.Get("forked_from_id").Kind() == jsonscan.String
	for _, key := range []string{"forked_from_id", "parent_thread_id", "source", "originator", "cli_version", "cwd", "model_provider", "git"} {
		if y := p.Get(key); !y.IsNull() && y.Size() <= format.MetadataBytes {
			format.Keep(&x.r.Metadata, key, y)
		}
	}
	base := p.Get("base_instructions")
	if s := cmp.Or(base.Get("text").String(), base.String()); s != "" {
		x.push(rollout.Message{Role: rollout.RoleSystem, Content: s})
	}
}

func (x *run) settings(p format.Value) {
	if m := p.Get("model"); m.Kind() == jsonscan.String && x.r.Metadata["model"] == nil {
		format.Keep(&x.r.Metadata, "model", m)
	}
	if e := p.Get("effort").String(); e != "" {
		x.effort = e
		if x.r.TemplateKwargs == nil {
			format.KeepText(&x.r.TemplateKwargs, "reasoning_effort", e)
		}
	}
}

// event reads the events about replies and turns; all other events are for display.
func (x *run) event(p format.Value) {
	switch p.Get("type").Word() {
	case "token_count":
		if p.Get("info").Kind() == jsonscan.Object {
			x.open, x.counted = false, true
		}
	case "user_message":
		if n := len(x.history); n > 0 && x.r.Messages[x.history[n-1]].Role == rollout.RoleUser && x.r.Messages[x.history[n-1]].Content == p.Get("message").String() {
			x.users = append(x.users, n-1)
		} else {
			x.awaited = true
		}
	case "agent_reasoning_raw_content":
		x.raw += p.Get("text").String()
		if n := len(x.r.Messages) - 1; x.open && x.r.Messages[n].Reasoning == "" {
			x.r.Messages[n].Reasoning, x.raw = x.raw, ""
		}
	case "thread_rolled_back":
		x.rollBack(p)
	case "turn_aborted":
		if n := len(x.r.Turns) - 1; x.open && n >= 0 {
			x.r.Turns[n].Incomplete = "the turn was aborted before the end of the reply"
			x.in.Note("incomplete", rollout.At(x.r.Turns[n].Message), "the turn was aborted before the end of the reply: it is context and never trained")
		}
		x.open, x.r.Status = false, rollout.StatusAborted
	case "task_started", "turn_started":
		x.r.Status = rollout.StatusUnknown
	case "task_complete", "turn_complete":
		x.open, x.r.Status = false, rollout.StatusCompleted
	}
}

// rollBack takes back the last turns of the user. Context messages before a turn's first
// message may be removed with it.
func (x *run) rollBack(p format.Value) {
	n, ok := p.Get("num_turns").Int()
	x.open = false
	if !ok || n <= 0 {
		x.lost = x.lost || !ok
		return
	}
	if n > len(x.users) {
		x.lost = true
		return
	}
	at := x.users[len(x.users)-n]
	x.users = x.users[:len(x.users)-n]
	x.history = x.history[:at]
	if at > 0 && x.r.Messages[x.history[at-1]].Role == rollout.RoleDeveloper {
		x.lost = true
	}
}

// push adds a message that the model sees.
func (x *run) push(m rollout.Message) {
	x.history = append(x.history, len(x.r.Messages))
	x.r.Messages = append(x.r.Messages, m)
	x.open = false
	if m.Role == rollout.RoleUser && x.awaited {
		x.awaited = false
		x.users = append(x.users, len(x.history)-1)
	}
}

// compacted replaces the history.
func (x *run) compacted(p format.Value) error {
	x.open, x.history, x.users = false, nil, nil
	if n := len(x.r.Messages); n > 0 && x.r.Messages[0].Role == rollout.RoleSystem && x.meta {
		x.history = []int{0} // the base instructions stay
	}
	list := p.Get("replacement_history")
	if list.Kind() != jsonscan.Array {
		x.lost = true // some user messages and the summary, in a wording that is not recorded
		if s := p.Get("message").String(); s != "" {
			x.push(rollout.Message{Role: rollout.RoleUser, Content: s})
		}
		return nil
	}
	x.lost = false
	before := x.copying
	x.copying = true
	defer func() { x.copying, x.open = before, false }()
	for _, item := range list.Items() {
		if err := x.item(item); err != nil {
			return err
		}
	}
	return nil
}
