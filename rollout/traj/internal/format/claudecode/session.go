package claudecode

import (
	"cmp"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Session reads files of ~/.claude/projects.
func Session() format.Importer {
	return format.Importer{Name: "claude-code", Match: isSession, Fold: func(in *format.File) format.Folder { return newRun(in, false) }}
}

// isSession reports whether v is a record of a session; some kinds are recognized by their
// type alone.
func isSession(v format.Value, _ *format.File) bool {
	kind, ok := v.Get("type").Text()
	if !ok || v.Get("method").Kind() != jsonscan.Absent {
		return false
	}
	switch {
	case kind == "user" || kind == "assistant" || kind == "system":
		return v.Get("sessionId").Kind() == jsonscan.String && v.Get("uuid").Kind() == jsonscan.String
	case kind == "summary":
		return v.Get("leafUuid").Kind() == jsonscan.String
	case kind == "file-history-snapshot":
		return v.Get("snapshot").Kind() == jsonscan.Object
	}
	return slices.Contains(asides, kind) && v.Get("sessionId").Kind() == jsonscan.String
}

// Stream reads the output of --output-format stream-json.
func Stream() format.Importer {
	return format.Importer{Name: "claude-code", Match: isStream, Fold: func(in *format.File) format.Folder { return newRun(in, true) }}
}

func isStream(v format.Value, _ *format.File) bool {
	if v.Get("session_id").Kind() != jsonscan.String {
		return false
	}
	switch v.Get("type").Word() {
	case "system":
		return v.Get("subtype").Kind() == jsonscan.String
	case "user", "assistant":
		return v.Get("message").Kind() == jsonscan.Object
	case "result":
		return v.Get("num_turns").Kind() == jsonscan.Number || v.Get("is_error").Kind() == jsonscan.Bool
	case "stream_event", "rate_limit_event":
		return true
	}
	return false
}

// asides are types of records about a session that are not shown to the model.
var asides = []string{
	"summary", "file-history-snapshot", "queue-operation", "progress", "custom-title", "ai-title", "agent-name", "agent-setting", "agent-color", "last-prompt", "tag",
	"mode", "permission-mode", "pr-link", "worktree-state", "attribution-snapshot", "content-replacement", "speculation-accept", "task-summary",
	"result", "stream_event", "rate_limit_event", "tool_progress", "tool_use_summary", "auth_status", "keep_alive", "control_request", "control_response", "control_cancel_request", "prompt_suggestion", "streamlined_text", "streamlined_tool_use_summary",
}

// record is one line; some records hold messages.
type record struct {
	parent string
	root   bool // the record says that it has no parent
	seq    int
	from   int // its messages in the thread are [from, to)
	to     int
	before *record // previous record of the thread
	thread *thread
	kept   []string // of a compaction: uuids kept after the summary
	anchor string   // of a compaction: the summary before the kept records
	lost   bool     // the context from here on is not recorded
	head   string   // of a compaction: the first record kept
	reply  *reply   // the reply that it is part of
}

// run is a file: the main thread and the threads of sub-agents.
type run struct {
	in      *format.File
	stream  bool
	linked  bool // records have parents
	records map[string]*record
	threads []*thread
	byAgent map[string]*thread
	cuts    []*record       // compactions that kept records
	unknown map[string]bool // kinds of records that were not understood
	status  rollout.Status
	exit    string
	about   map[string]string // values for the metadata
}

// thread holds the messages of one agent.
type thread struct {
	r           *rollout.Rollout
	agent       string
	replies     map[string]*reply // by message id
	order       []*reply
	answers     map[string]int // call id → index of the message with its result
	last        *record
	attachments int
}

// reply is a model response; each of its blocks has a record of its own.
type reply struct {
	at        int // index of the message
	id        string
	first     *record
	blocks    [][]byte
	why       rollout.Sampled
	finish    string
	interrupt bool
	broken    bool // a part of it could not be read
	seen      bool // its context has been determined, perhaps as lost
	known     bool
	saw       view
}

func newRun(in *format.File, stream bool) *run {
	return &run{in: in, stream: stream, records: map[string]*record{}, byAgent: map[string]*thread{}, unknown: map[string]bool{}, about: map[string]string{}}
}

func (x *run) thread(agent string) *thread {
	t := x.byAgent[agent]
	if t == nil {
		t = &thread{r: &rollout.Rollout{Index: format.NoIndex}, agent: agent, replies: map[string]*reply{}, answers: map[string]int{}}
		x.byAgent[agent] = t
		x.threads = append(x.threads, t)
	}
	return t
}

// threadOf returns the thread of a record: that of its agent or, in sessions from before
// agents had ids, of the side chain that it continues.
func (x *run) threadOf(v format.Value, uuid, parent string) *thread {
	if v.Get("isSidechain").True() {
		if id := v.Get("agentId").String(); id != "" {
			return x.thread(id)
		}
		if p := x.records[parent]; p != nil && p.thread.agent != "" {
			return p.thread
		}
		return x.thread(uuid)
	}
	return x.thread(v.Get("parent_tool_use_id").String())
}

func (x *run) Add(v format.Value) error {
	if v.Kind() != jsonscan.Object {
		return x.in.Want(v, 0, "", "a record of a session")
	}
	kind := v.Get("type").Word()
	for to, key := range map[string]string{"session": "sessionId", "session_id": "session_id", "version": "version", "cwd": "cwd", "git_branch": "gitBranch"} {
		if s := v.Get(key).String(); s != "" && x.about[to] == "" {
			x.about[to] = s
		}
	}
	uuid, parent := v.Get("uuid").String(), v.Get("parentUuid").String()
	if uuid != "" && x.records[uuid] != nil {
		return nil // resumed sessions repeat records
	}
	t := x.threadOf(v, uuid, parent)
	rec := &record{parent: parent, root: v.Get("parentUuid").Kind() == jsonscan.Null, from: len(t.r.Messages), thread: t, before: t.last, seq: len(x.records)}
	rec.to = rec.from
	if parent != "" {
		x.linked = true
	}
	err := x.take(v, kind, t, rec)
	t.r.Notes = append(t.r.Notes, x.in.Notes...)
	x.in.Notes = nil
	if err != nil {
		if rec.lost = true; rec.reply == nil {
			t.r.Messages = t.r.Messages[:rec.from]
		} else {
			rec.reply.broken = true
		}
	}
	rec.to = max(rec.to, len(t.r.Messages))
	if kind == "user" && slices.ContainsFunc(t.r.Messages[rec.from:rec.to], clears) {
		rec.parent, rec.root = "", true
	}
	if uuid != "" {
		x.records[uuid] = rec
	}
	t.last = rec
	return err
}

// take reads the messages of a record.
func (x *run) take(v format.Value, kind string, t *thread, rec *record) error {
	yes := func(key string) bool { return v.Get(key).True() }
	switch {
	case kind == "user":
		if yes("isVisibleInTranscriptOnly") && !yes("isCompactSummary") {
			return nil
		}
		return x.user(v.Get("message"), t)
	case kind == "assistant":
		if yes("isApiErrorMessage") {
			return nil // shown to the user, not to the model
		}
		return x.assistant(v, t, rec)
	case kind == "system":
		x.system(v, t, rec)
	case kind == "attachment":
		t.attachments++
	case kind == "result":
		x.result(v)
	case slices.Contains(asides, kind):
	default:
		if !x.unknown[kind] {
			x.unknown[kind] = true
			x.in.Note("event_unknown", 0, "records of type %q are not understood and were left in the dump", kind)
		}
		rec.lost = v.Get("message").Kind() == jsonscan.Object
	}
	return nil
}

// clears reports whether a message is the command that empties the conversation.
func clears(m rollout.Message) bool {
	return strings.HasPrefix(m.Content, "<command-") && strings.Contains(m.Content, "<command-name>/clear</command-name>")
}

// interrupted starts the message that Claude Code writes after a user stopped a reply.
const interrupted = "[Request interrupted by user]"

func (x *run) user(m format.Value, t *thread) error {
	i := len(t.r.Messages)
	if m.Kind() != jsonscan.Object {
		return x.in.Want(m, rollout.At(i), "/message", "an object")
	}
	body := m.Get("content")
	if body.IsNull() {
		return x.in.Fail(rollout.At(i), "/message/content", "the message has no content: %s", format.Shape(m))
	}
	if role := m.Get("role"); !role.IsNull() && !role.Is("user") {
		return x.in.Fail(rollout.At(i), "/message/role", "a user's record holds a message of %q", role.String())
	}
	if err := x.in.Blocks(t.r, rollout.Message{Role: rollout.RoleUser}, body); err != nil {
		return err
	}
	for k := i; k < len(t.r.Messages); k++ {
		m := &t.r.Messages[k]
		if m.Role == rollout.RoleTool {
			if _, twice := t.answers[m.ToolCallID]; !twice {
				t.answers[m.ToolCallID] = k
			}
		} else if n := len(t.order); n > 0 && strings.HasPrefix(m.Content, interrupted) {
			t.order[n-1].interrupt = true
		}
	}
	return nil
}

// assistant reads the blocks of a response in one record.
func (x *run) assistant(v format.Value, t *thread, rec *record) error {
	m, i := v.Get("message"), len(t.r.Messages)
	if m.Kind() != jsonscan.Object {
		return x.in.Want(m, rollout.At(i), "/message", "an object")
	}
	body := m.Get("content")
	id := cmp.Or(m.Get("id").String(), v.Get("requestId").String(), v.Get("uuid").String())
	p := t.replies[id]
	switch body.Kind() {
	case jsonscan.String, jsonscan.Array:
	default:
		rec.reply = p
		return x.in.Fail(rollout.At(i), "/message/content", "the reply has no content: %s", format.Shape(m))
	}
	if p == nil || id == "" {
		p = &reply{at: i, id: id, first: rec, why: rollout.SampledByPolicy}
		if m.Get("model").Is("<synthetic>") {
			p.why = rollout.SampledScripted
		}
		t.replies[id] = p
		t.order = append(t.order, p)
		t.r.Messages = append(t.r.Messages, rollout.Message{Role: rollout.RoleAssistant, Sampled: p.why})
		if model := m.Get("model").String(); p.why == rollout.SampledByPolicy && model != "" && t.r.Metadata["model"] == nil {
			format.KeepText(&t.r.Metadata, "model", model)
		}
	}
	rec.from, rec.to, rec.reply = p.at, p.at+1, p
	if why := m.Get("stop_reason").String(); why != "" {
		p.finish = why
	}
	if s, ok := body.Text(); ok {
		var o format.Object
		o.Text("type", "text")
		o.Text("text", s)
		p.add(o.End())
		return nil
	}
	for _, b := range body.Items() {
		if b.Kind() != jsonscan.Object {
			return x.in.Want(b, rollout.At(p.at), "/message/content", "a block object")
		}
		p.add(b.Clone())
	}
	return nil
}

// add adds a block unless an earlier record of the response had it.
func (p *reply) add(raw []byte) {
	for _, b := range p.blocks {
		if string(b) == string(raw) {
			return
		}
	}
	p.blocks = append(p.blocks, raw)
}

func (x *run) system(v format.Value, t *thread, rec *record) {
	switch sub := v.Get("subtype").Word(); sub {
	case "init":
		if m := v.Get("model").String(); m != "" && t.r.Metadata["model"] == nil {
			format.KeepText(&t.r.Metadata, "model", m)
		}
	case "local_command":
		if s, ok := v.Get("content").Text(); ok {
			t.r.Messages = append(t.r.Messages, rollout.Message{Role: rollout.RoleUser, Content: s})
		}
	case "compact_boundary":
		rec.lost = x.stream             // the summary is not printed
		rec.parent, rec.root = "", true // earlier records are not shown any more, whatever the parent says
		meta := v.Get("compactMetadata")
		kept := meta.Get("preservedMessages")
		rec.anchor = kept.Get("anchorUuid").String()
		for _, u := range kept.Get("uuids").Items() {
			rec.kept = append(rec.kept, u.String())
		}
		if seg := meta.Get("preservedSegment"); rec.kept == nil && seg.Kind() == jsonscan.Object {
			rec.anchor = seg.Get("anchorUuid").String()
			rec.kept = x.segment(seg.Get("headUuid").String(), seg.Get("tailUuid").String())
			rec.lost = rec.lost || rec.kept == nil
		}
		if rec.kept != nil {
			rec.head = rec.kept[0]
			x.cuts = append(x.cuts, rec)
		}
	case "microcompact_boundary":
		rec.lost = true
	}
}

// segment lists the records from head to tail, nil if they are not a chain.
func (x *run) segment(head, tail string) []string {
	out := []string{tail}
	for tail != head {
		r := x.records[tail]
		if r == nil || r.parent == "" || len(out) > len(x.records) {
			return nil
		}
		tail = r.parent
		out = append(out, tail)
	}
	slices.Reverse(out)
	return out
}

func (x *run) result(v format.Value) {
	x.exit = v.Get("subtype").String()
	bad := v.Get("is_error").True()
	switch {
	case x.exit == "error_max_turns" || x.exit == "error_max_budget_usd":
		x.status = rollout.StatusTruncated
	case bad || strings.HasPrefix(x.exit, "error"):
		x.status = rollout.StatusFailed
	case x.exit == "success":
		x.status = rollout.StatusCompleted
	}
}
