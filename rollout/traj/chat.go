package traj

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// fail builds a located KindInput error about a message of the rollout being
// read.
func (j *fileReader) fail(message rollout.Index, field, format string, args ...any) error {
	w := j.where
	w.Message, w.Field = message, field
	return rollout.Errorf(rollout.KindInput, w, format, args...).WithFix("mend the field, or take the record out")
}

// want is the error for a value of the wrong kind.
func (j *fileReader) want(v value, message rollout.Index, field, what string) error {
	w := j.where
	w.Message, w.Field = message, field
	return rollout.Errorf(rollout.KindFormat, w, "found %s, expected %s", v.Kind(), what).WithFix("mend the field, or name the format of the file if it is another")
}

// listOrNothing is the error for a value that is there and no list.
func (j *fileReader) listOrNothing(v value, message rollout.Index, field string) error {
	if v.IsNull() || v.Kind() == jsonscan.Array {
		return nil
	}
	return j.want(v, message, field, "a list")
}

// objectOrNothing is the error for a value that is there and no object.
func (j *fileReader) objectOrNothing(v value, message rollout.Index, field string) error {
	if v.IsNull() || v.Kind() == jsonscan.Object {
		return nil
	}
	return j.want(v, message, field, "an object")
}

// wantList is the error for a value without which a record is of another format.
func (j *fileReader) wantList(v value, field string) error {
	if v.Kind() == jsonscan.Array {
		return nil
	}
	return j.want(v, 0, field, "a list")
}

// text reads a string whose lone surrogates are noted.
func (j *fileReader) text(v value, message rollout.Index, field string) string {
	s := v.String()
	if v.LoneSurrogate() {
		j.note("lone_surrogate", message, "%s: an escape that is half of a surrogate pair was read as U+FFFD", field)
	}
	return s
}

// chatMessage reads a message of the chat completions API.
func (j *fileReader) chatMessage(v value, i int) (rollout.Message, error) {
	role := v.Get("role")
	if v.Kind() == jsonscan.Object && role.Kind() != jsonscan.String && role.Kind() != jsonscan.Absent {
		return rollout.Message{}, j.want(role, rollout.At(i), "/role", "a string")
	}
	word, body := role.Word(), v.Get("content")
	if j.ofCall() || word == "" {
		return j.message(v, i, rollout.Role(word), body)
	}
	r, err := j.speaker(word, i, "/role")
	if err != nil {
		return rollout.Message{}, err
	}
	if contains(callRoles, word) {
		return j.callMessage(v, i, r, body)
	}
	return j.message(v, i, r, body)
}

// message reads a message of which a format spells role and content its own way:
// keys with a meaning in chats have it, all else goes to Extra.
// Null values other than content are dropped: exports of tables write every key
// on every message.
func (j *fileReader) message(v value, i int, role rollout.Role, body value) (rollout.Message, error) {
	at := rollout.At(i)
	m := rollout.Message{Role: role}
	if v.Kind() != jsonscan.Object {
		return m, j.want(v, at, "", "a message object")
	}
	if m.Role == "" {
		return m, j.fail(at, "/role", "the message has no role")
	}
	if err := j.content(&m, body, i); err != nil {
		return m, err
	}
	var refusal, legacy, details value
	for key, x := range v.Members() {
		var err error
		switch key {
		case "role", "content":
		case "name":
			m.Name = x.String()
		case "tool_call_id":
			if m.ToolCallID = identifier(x); m.ToolCallID == "" && x.Len() > 0 {
				keep(&m.Extra, "tool_call_ids", x) // of several calls
			}
		case "tool_calls":
			m.ToolCalls = slices.Grow(m.ToolCalls, x.Len())
			for k, c := range x.Items() {
				call, cerr := j.toolCall(c, i, k)
				if cerr != nil {
					return m, cerr
				}
				m.ToolCalls = append(m.ToolCalls, call)
			}
			err = j.listOrNothing(x, at, "/tool_calls")
		case "function_call":
			legacy = x
		case "refusal":
			refusal = x
		case "reasoning", "reasoning_content", "thinking":
			if s, ok := thoughts(x); ok && m.Reasoning == "" {
				m.Reasoning = s
			} else if !x.IsNull() && (!ok || s != m.Reasoning) {
				if ok {
					keep(&m.Extra, key, x)
				} else {
					keep(&m.Extra, "unread_"+key, x) // the name itself is of a text
					j.note("reasoning_unreadable", at, "the key %q holds %s without a text; it is kept aside, not rendered", key, x.Kind())
				}
			}
		case "reasoning_details":
			details = x
		default:
			if !x.IsNull() {
				keep(&m.Extra, key, x)
			}
		}
		if err != nil {
			return m, err
		}
	}
	if m.Role == rollout.RoleAssistant {
		j.details(&m, details, at)
		if m.Reasoning == "" {
			m.Reasoning, _ = thoughts(v.Get("thinking_blocks"))
		}
	} else if !details.IsNull() {
		keep(&m.Extra, "reasoning_details", details)
	}
	if m.Role == "function" {
		m.Role = rollout.RoleTool
		keepText(&m.Extra, "legacy", "function")
	}
	if legacy.Kind() == jsonscan.Object && len(m.ToolCalls) == 0 {
		call, err := j.toolCall(legacy, i, 0)
		if err != nil {
			return m, err
		}
		m.ToolCalls = []rollout.ToolCall{call}
		keepText(&m.Extra, "legacy", "function_call")
	}
	if s, ok := refusal.Text(); ok && s != "" {
		keep(&m.Extra, "refusal", refusal)
		j.note("refusal", at, "the message is a refusal of %d bytes beside its content", len(s))
		return m, nil
	}
	return m, j.understood(&m, v, body, i)
}

func keep(extra *map[string]json.RawMessage, key string, v value) {
	if *extra == nil {
		*extra = map[string]json.RawMessage{}
	}
	(*extra)[key] = v.Clone()
}

// drop removes keys that an importer has used.
func drop(extra *map[string]json.RawMessage, keys ...string) {
	for _, k := range keys {
		delete(*extra, k)
	}
	if len(*extra) == 0 {
		*extra = nil
	}
}

func keepText(extra *map[string]json.RawMessage, key, s string) {
	if *extra == nil {
		*extra = map[string]json.RawMessage{}
	}
	(*extra)[key] = quote(s)
}

// content reads a content: string, null, or a list of parts.
func (j *fileReader) content(m *rollout.Message, v value, i int) error {
	switch v.Kind() {
	case jsonscan.Null, jsonscan.Absent:
		m.NoContent = true
	case jsonscan.String:
		m.NoContent = false
		m.Content = j.text(v, rollout.At(i), "/content")
	case jsonscan.Array:
		m.NoContent = false
		m.Parts = []rollout.Part{}
		for _, x := range v.Items() {
			p := rollout.Part{Raw: x.Clone()}
			switch x.Kind() {
			case jsonscan.String:
				p.Type, p.Text = "text", j.text(x, rollout.At(i), "/content")
			case jsonscan.Object:
				p.Type = x.Get("type").Word()
				if err := j.partText(&p, x, i); err != nil {
					return err
				}
			default:
				return j.want(x, rollout.At(i), "/content", "a part: an object or a string")
			}
			m.Parts = append(m.Parts, p)
		}
		m.Content = rollout.JoinText(m.Parts)
	default:
		return j.want(v, rollout.At(i), "/content", "a string, null or a list of parts")
	}
	return nil
}

// partText reads the text of a text part, which some recorders call content.
func (j *fileReader) partText(p *rollout.Part, x value, i int) error {
	if !p.IsText() {
		return nil
	}
	t := x.Get("text")
	if other := x.Get("content"); t.Kind() == jsonscan.Absent && other.Kind() == jsonscan.String {
		t = other
		p.Raw = renamed(x, "content", "text")
	}
	if t.IsNull() {
		return nil
	}
	if t.Kind() != jsonscan.String {
		return j.want(t, rollout.At(i), "/content/text", "a string")
	}
	p.Text = j.text(t, rollout.At(i), "/content/text")
	return nil
}

// renamed is an object with one key under another name.
func renamed(v value, from, to string) []byte {
	var o object
	for key, x := range v.Members() {
		if key == from {
			key = to
		}
		o.raw(key, x.Clone())
	}
	return o.end()
}

// toolCall reads one call: name and arguments in a "function" object or on the
// call itself, arguments as text or as any JSON value.
func (j *fileReader) toolCall(v value, i, k int) (rollout.ToolCall, error) {
	c := rollout.ToolCall{ID: identifier(v.Get("id"))}
	if v.Kind() != jsonscan.Object {
		return c, j.want(v, rollout.At(i), "/tool_calls/"+strconv.Itoa(k), "an object")
	}
	f := v.Get("function")
	if f.Kind() != jsonscan.Object {
		f, c.Flat = v, true
	}
	name := f.Get("name")
	if s, ok := v.Get("function").Text(); ok && name.IsNull() {
		c.Name = s
	} else {
		c.Name = name.Word()
	}
	if c.Name == "" {
		return c, j.fail(rollout.At(i), "/tool_calls/"+strconv.Itoa(k), "the tool call has no name")
	}
	setArguments(&c, f.Get("arguments"))
	for key, x := range v.Members() {
		if key != "id" && key != "function" && !x.IsNull() && (!c.Flat || key != "name" && key != "arguments") {
			keep(&c.Extra, key, x)
		}
	}
	return c, nil
}

func setArguments(c *rollout.ToolCall, v value) {
	if s, ok := v.Text(); ok {
		c.Arguments, c.ArgumentsText = s, true
		return
	}
	c.Arguments = string(v.Clone())
}

// chatMessages reads a list of messages.
func (j *fileReader) chatMessages(v value, field string) ([]rollout.Message, error) {
	if v.Kind() != jsonscan.Array {
		return nil, j.want(v, 0, field, "a list of messages")
	}
	out := make([]rollout.Message, 0, v.Len()+1) // a reply may follow
	for i, x := range v.Items() {
		m, err := j.chatMessage(x, i)
		if err != nil {
			return nil, err
		}
		out = said(out, m, x.Get("role").Word())
	}
	return out, nil
}

// tools keeps tool definitions verbatim; anything but a list is none.
func tools(v value) []rollout.Tool {
	var out []rollout.Tool
	for _, t := range v.Items() {
		out = append(out, definition(t))
	}
	return out
}

// definition is one tool definition. Tables whose columns cannot hold one write
// it as JSON text.
func definition(v value) rollout.Tool {
	if s, ok := v.Text(); ok && strings.HasPrefix(s, "{") && json.Valid([]byte(s)) {
		return rollout.Tool(s)
	}
	return v.Clone()
}

// redacted notes reasoning that was taken out of the record.
func (j *fileReader) redacted(message int) {
	j.note("redacted_thinking", rollout.At(message), "the model thought here and the text is not readable")
}

// IsImage reports whether a part is a picture of any spelling. Pictures are kept
// in Parts and do not count as text.
func IsImage(p rollout.Part) bool {
	return p.Type == "image" || p.Type == "image_url" || p.Type == "input_image"
}

// noteParts says which parts of messages are no text: they are kept, not
// rendered.
func (j *fileReader) noteParts(r *rollout.Rollout) {
	for i := range r.Messages {
		images := 0
		var others []string
		for _, p := range r.Messages[i].Parts {
			switch {
			case IsImage(p):
				images++
			case !p.IsText():
				others = append(others, strconv.Quote(p.Type))
			}
		}
		if images > 0 {
			j.note("images", rollout.At(i), "%d images, kept but not text", images)
		}
		if others != nil {
			j.note("not_text", rollout.At(i), "parts of type %s, kept but not text", strings.Join(others, ", "))
		}
	}
}

// quote is s as JSON.
func quote(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return json.RawMessage(`""`) // a string always encodes
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// metadataBytes bounds one metadata value; longer ones stay in the dump.
const metadataBytes = 4 << 10

// leftover keeps the keys of a record that no field took, small ones only. v is the
// record of r from here on, where a file or a record holds several.
func (j *fileReader) leftover(r *rollout.Rollout, v value, taken ...string) {
	j.current = v
	for key, x := range v.Members() {
		if x.IsNull() || contains(taken, key) {
			continue
		}
		if n := x.Size(); n > metadataBytes {
			j.note("not_kept", 0, "key %q of %d bytes was left in the dump", key, n)
			continue
		}
		keep(&r.Metadata, key, x)
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// sampleAll marks every assistant message with one reason.
func sampleAll(messages []rollout.Message, why rollout.Sampled) {
	for i := range messages {
		if messages[i].Role == rollout.RoleAssistant {
			messages[i].Sampled = why
		}
	}
}

// applyTrainFlag takes the mark of fine-tuning sets that a reply is not to be trained.
// They do not say why, so whose it is stays unknown.
func (j *fileReader) applyTrainFlag(m *rollout.Message, v value, i int) {
	weight, weighed := v.Get("weight").Float()
	train, told := v.Get("train").Bool()
	if m.Role == rollout.RoleAssistant && (weighed && weight == 0 || told && !train) {
		m.Sampled = rollout.SampledUnknown
		j.note("not_to_train", rollout.At(i), "the set marks this reply as not to be trained and does not say why")
	}
}

// turns makes one turn and step of each sampled message.
func turns(messages []rollout.Message) []rollout.Turn {
	sampled := func(m *rollout.Message) bool {
		return m.Role == rollout.RoleAssistant && m.Sampled == rollout.SampledByPolicy
	}
	n := 0
	for i := range messages {
		if sampled(&messages[i]) {
			n++
		}
	}
	out := make([]rollout.Turn, 0, n) // a turn is large: growing would copy it often
	for i := range messages {
		if sampled(&messages[i]) {
			out = append(out, rollout.Turn{Message: i, Step: len(out)})
		}
	}
	return out
}

func number(v value) *float64 {
	if f, ok := v.Float(); ok {
		return &f
	}
	return nil
}

// reward is a recorded number. One that is written otherwise is noted: the
// rollout has none then.
func (j *fileReader) reward(v value) *float64 {
	f := number(v)
	if f == nil && !v.IsNull() {
		j.note("outcome_unreadable", 0, "the reward %.40s is not a number; none was taken", v.Raw())
	}
	return f
}

// resolved is a recorded truth value, or 0 or 1; what is neither is noted.
func (j *fileReader) resolved(v value) *bool {
	b := boolean(v)
	if f := number(v); f != nil && (*f == 0 || *f == 1) {
		yes := *f == 1
		b = &yes
	}
	if b == nil && !v.IsNull() {
		j.note("outcome_unreadable", 0, "%.40s does not say whether the task is resolved; nothing was taken", v.Raw())
	}
	return b
}

func boolean(v value) *bool {
	if b, ok := v.Bool(); ok {
		return &b
	}
	return nil
}

func text(v value) *string {
	if s, ok := v.Text(); ok {
		return &s
	}
	return nil
}

func temperature(v value) *float32 {
	if f, ok := v.Float(); ok {
		t := float32(f)
		return &t
	}
	return nil
}

// identifier is a string or number as text.
func identifier(v value) string {
	if v.Kind() == jsonscan.Number {
		return string(v.Raw())
	}
	return v.String()
}

// status maps the words harnesses end with. What is not listed stays unknown.
var statuses = map[string]rollout.Status{
	"submitted": rollout.StatusCompleted, "Submitted": rollout.StatusCompleted,
	"end_turn": rollout.StatusCompleted, "stop": rollout.StatusCompleted, "stop_sequence": rollout.StatusCompleted,
	"LimitsExceeded": rollout.StatusTruncated, "max_steps": rollout.StatusTruncated, "max_tokens": rollout.StatusTruncated,
	"length": rollout.StatusTruncated, "exit_cost": rollout.StatusTruncated, "exit_context": rollout.StatusTruncated,
	"exit_total_execution_time": rollout.StatusTruncated, "exit_command_timeout": rollout.StatusTruncated,
	"early_exit": rollout.StatusTruncated, "TimeExceeded": rollout.StatusTruncated, "ContextWindowExceededError": rollout.StatusTruncated, "model_context_window_exceeded": rollout.StatusTruncated,
	"exit_environment_error": rollout.StatusFailed, "exit_api": rollout.StatusFailed, "exit_error": rollout.StatusFailed,
	"UserInterruption": rollout.StatusAborted, "abort": rollout.StatusAborted,
}

// statusOf is the status that a word stands for. SWE-agent submits what there is
// when a run ends early: "submitted (exit_cost)" ended by its cost.
func statusOf(word string) rollout.Status {
	if early, ok := strings.CutPrefix(word, "submitted ("); ok {
		word = strings.TrimSuffix(early, ")")
	}
	return statuses[word]
}

// metadataInts makes metadata of alternating names and integers.
func metadataInts(pairs ...any) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i].(string)] = json.RawMessage(strconv.Itoa(pairs[i+1].(int)))
	}
	return out
}
