package chats

import (
	"encoding/json"
	"io"

	"github.com/turnpack/turnpack/export/internal/pq"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

const shareGPT = "sharegpt"

// rowGroup is the number of bytes of text held in memory before a row group is written.
const rowGroup = 32 << 20

// Writer writes one file. It holds one row group in memory.
type Writer struct {
	file   *pq.Writer
	layout string
	at     map[string]int // index of a leaf by its path
	leaves []pq.Column
	values []pq.Values
	rows   int
	bytes  int
	closed bool
}

// tree returns the columns of a layout.
func tree(layout string) []pq.Node {
	text := func(name string) pq.Node { return pq.Node{Name: name, Kind: pq.Text, Nullable: true} }
	word := func(name string) pq.Node { return pq.Node{Name: name, Kind: pq.Text} }
	body := pq.Node{Name: "messages", List: true, Members: []pq.Node{word("role"), text("content"), text("reasoning_content"), text("name"), text("tool_call_id"),
		{Name: "tool_calls", List: true, Nullable: true, Members: []pq.Node{text("id"), word("type"),
			{Name: "function", Members: []pq.Node{word("name"), word("arguments")}}}}}}
	if layout == shareGPT {
		body = pq.Node{Name: "conversations", List: true, Members: []pq.Node{word("from"), word("value"), text("reasoning_content")}}
	}
	return []pq.Node{word("id"), text("instance_id"), body, text("tools"), text("chat_template_kwargs"),
		{Name: "resolved", Kind: pq.Bool, Nullable: true}, {Name: "reward", Kind: pq.Float32, Nullable: true}, text("patch"), text("exit_status")}
}

// NewWriter starts a file on w. layout says how the messages of a row are written: "openai", a
// column messages with role, content and tool_calls, or "sharegpt", a column conversations with
// from and value.
func NewWriter(w io.Writer, layout string) (*Writer, error) {
	if w == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "w"}, "expected a writer, found nil")
	}
	if layout != "openai" && layout != shareGPT {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "layout"}, "found %q, expected openai or sharegpt", layout)
	}
	file, leaves, err := pq.NewTreeWriter(w, tree(layout), 0)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInternal, rollout.Where{}, "the columns are wrong: %w", err)
	}
	out := &Writer{file: file, layout: layout, at: map[string]int{}, leaves: leaves, values: make([]pq.Values, len(leaves))}
	for i, c := range leaves {
		out.at[c.Name] = i
	}
	return out, nil
}

// Write adds a rollout. The notes list what the row cannot hold. A refused rollout leaves
// nothing in the file.
func (w *Writer) Write(r *rollout.Rollout) ([]rollout.Note, error) {
	if w.file == nil {
		return nil, zero.Value("chats.Writer", "NewWriter")
	}
	if w.closed {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{}, "the writer is closed")
	}
	line, notes, err := traj.AppendChat(nil, r)
	if err != nil {
		return notes, err
	}
	var row record
	if err := json.Unmarshal(line, &row); err != nil {
		return notes, rollout.Errorf(rollout.KindInternal, rollout.Where{Rollout: r.ID}, "the chat cannot be read again: %w", err)
	}
	more, err := row.check(w.layout)
	if notes = append(notes, more...); err != nil {
		return notes, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID}, "%w", err)
	}
	w.put("id", &r.ID, 0, 0)
	w.put("instance_id", row.Instance, 0, 0)
	if w.layout == shareGPT {
		w.conversation(row.Messages)
	} else {
		w.chat(row.Messages)
	}
	w.put("tools", textOf(row.Tools), 0, 0)
	w.put("chat_template_kwargs", textOf(row.Kwargs), 0, 0)
	w.put("patch", row.Patch, 0, 0)
	w.put("exit_status", row.ExitStatus, 0, 0)
	v := w.level("resolved", row.Resolved != nil, 0, 0)
	if row.Resolved != nil {
		resolved := int32(0)
		if *row.Resolved {
			resolved = 1
		}
		v.Ints = append(v.Ints, resolved)
	}
	v = w.level("reward", row.Reward != nil, 0, 0)
	if row.Reward != nil {
		v.Floats = append(v.Floats, float32(*row.Reward))
	}
	if w.rows++; w.bytes >= rowGroup {
		err = w.flush()
	}
	return notes, err
}

// level adds the levels of one value of a leaf. If the value is missing, depth is its
// definition level.
func (w *Writer) level(leaf string, there bool, rep, depth uint8) *pq.Values {
	v := &w.values[w.at[leaf]]
	if there {
		depth = uint8(w.leaves[w.at[leaf]].Depth())
	}
	v.Rep, v.Def = append(v.Rep, rep), append(v.Def, depth)
	return v
}

func (w *Writer) put(leaf string, s *string, rep, depth uint8) {
	if v := w.level(leaf, s != nil, rep, depth); s != nil {
		v.Texts = append(v.Texts, *s)
		w.bytes += len(*s)
	}
}

// Definition levels within messages: 0 is an empty list, 1 a message without the member. Within
// tool_calls, 2 is an empty list and 3 a call.
const (
	inMessage = 1
	inCall    = 3
)

func (w *Writer) chat(messages []message) {
	const at, calls = "messages.list.element.", "messages.list.element.tool_calls.list.element."
	leaves := []string{"role", "content", "reasoning_content", "name", "tool_call_id"}
	ofCall := []string{"id", "type", "function.name", "function.arguments"}
	none := func(rep, depth uint8) {
		for _, leaf := range ofCall {
			w.put(calls+leaf, nil, rep, depth)
		}
	}
	if len(messages) == 0 {
		for _, leaf := range leaves {
			w.put(at+leaf, nil, 0, 0)
		}
		none(0, 0)
	}
	for i, m := range messages {
		rep := uint8(min(i, 1))
		for k, s := range []*string{&m.Role, m.text, m.Reasoning, m.Name, m.CallID} {
			w.put(at+leaves[k], s, rep, inMessage)
		}
		if len(m.Calls) == 0 {
			none(rep, inMessage)
		}
		for k, c := range m.Calls {
			if k > 0 {
				rep = 2
			}
			for j, s := range []*string{c.ID, &c.Type, &c.Function.Name, textOf(c.Function.Arguments)} {
				w.put(calls+ofCall[j], s, rep, inCall)
			}
		}
	}
}

func (w *Writer) conversation(messages []message) {
	rep := uint8(0)
	say := func(from, value, reasoning *string, depth uint8) {
		w.put("conversations.list.element.from", from, rep, depth)
		w.put("conversations.list.element.value", value, rep, depth)
		w.put("conversations.list.element.reasoning_content", reasoning, rep, depth)
		rep = 1
	}
	for i, m := range messages {
		from, value := speakers[m.Role], ""
		if m.text != nil {
			value = *m.text
		}
		again := i > 0 && messages[i-1].Role == m.Role // as one turn, the calls would belong to the previous reply
		if value != "" || m.Reasoning != nil || len(m.Calls) == 0 || again {
			say(&from, &value, m.Reasoning, inMessage)
		}
		if len(m.Calls) > 0 {
			from, calls := "function_call", callsText(m.Calls)
			say(&from, &calls, nil, inMessage)
		}
	}
	if rep == 0 {
		say(nil, nil, nil, 0)
	}
}

func (w *Writer) flush() error {
	err := w.file.WriteRowGroup(w.rows, w.values)
	for i := range w.values {
		w.values[i].Reset()
	}
	w.rows, w.bytes = 0, 0
	if err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{}, "the file cannot be written: %w", err)
	}
	return nil
}

// Close writes the remaining rows and the footer. It does not close the destination.
func (w *Writer) Close() error {
	if w.file == nil {
		return zero.Value("chats.Writer", "NewWriter")
	}
	w.closed = true
	if w.rows > 0 {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if err := w.file.Close(nil); err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{}, "the file cannot be written: %w", err)
	}
	return nil
}
