package chats

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/turnpack/turnpack/export/internal/pq"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// Layout is how the messages of a row are written.
type Layout uint8

// The layouts.
const (
	OpenAI   Layout = iota // column messages: role, content, tool_calls
	ShareGPT               // column conversations: from, value
)

// rowGroup is how much text is in memory before it is written.
const rowGroup = 32 << 20

// Writer writes one file. It holds a row group at a time.
type Writer struct {
	file   *pq.Writer
	layout Layout
	values []pq.Values
	rows   int
	bytes  int
	closed bool
}

// NewWriter begins a file on w.
func NewWriter(w io.Writer, layout Layout) (*Writer, error) {
	if layout > ShareGPT {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "layout"}, "found %d, expected OpenAI or ShareGPT", layout)
	}
	body := "messages"
	if layout == ShareGPT {
		body = "conversations"
	}
	columns := []pq.Column{{Name: "id", Kind: pq.Text}, {Name: "instance_id", Kind: pq.Text, Nullable: true}, {Name: body, Kind: pq.Text}, {Name: "tools", Kind: pq.Text, Nullable: true},
		{Name: "chat_template_kwargs", Kind: pq.Text, Nullable: true}, {Name: "resolved", Kind: pq.Bool, Nullable: true}, {Name: "reward", Kind: pq.Float32, Nullable: true}}
	file, err := pq.NewWriter(w, columns, pq.Config{})
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInternal, rollout.Where{}, "the columns are wrong: %w", err)
	}
	return &Writer{file: file, layout: layout, values: make([]pq.Values, len(columns))}, nil
}

// Write adds a rollout. The notes name what the row cannot hold.
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
	var row struct {
		Messages, Tools json.RawMessage
		Kwargs          json.RawMessage `json:"chat_template_kwargs"`
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return notes, rollout.Errorf(rollout.KindInternal, rollout.Where{Rollout: r.ID}, "the chat cannot be read again: %w", err)
	}
	if w.layout == ShareGPT {
		if row.Messages, err = shareGPT(row.Messages); err != nil {
			return notes, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID}, "%w", err)
		}
	}
	text := func(k int, s string, null bool) {
		v := &w.values[k]
		v.Texts = append(v.Texts, s)
		w.bytes += len(s)
		if k != 0 && k != 2 {
			v.Nulls = append(v.Nulls, null)
		}
	}
	text(0, r.ID, false)
	text(1, r.Instance, r.Instance == "")
	text(2, string(row.Messages), false)
	text(3, string(row.Tools), row.Tools == nil)
	text(4, string(row.Kwargs), row.Kwargs == nil)
	resolved, reward := r.Outcome.Resolved, r.Outcome.Reward
	w.values[5].Bools, w.values[5].Nulls = append(w.values[5].Bools, resolved != nil && *resolved), append(w.values[5].Nulls, resolved == nil)
	f := float32(0)
	if reward != nil {
		f = float32(*reward)
	}
	w.values[6].Floats, w.values[6].Nulls = append(w.values[6].Floats, f), append(w.values[6].Nulls, reward == nil)
	if w.rows++; w.bytes >= rowGroup {
		err = w.flush()
	}
	return notes, err
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

// Close writes what is left and the footer. It does not close the destination.
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

// turn is a message of ShareGPT, whose calls are a turn of their own.
type turn struct {
	From      string `json:"from"`
	Value     string `json:"value"`
	Reasoning string `json:"reasoning_content,omitempty"`
}

// speakers are the names of roles in conversations.
var speakers = map[string]string{"user": "human", "assistant": "gpt", "system": "system", "developer": "developer", "tool": "tool"}

func shareGPT(messages []byte) ([]byte, error) {
	var list []struct {
		Role             string
		Content          any
		ReasoningContent string `json:"reasoning_content"`
		ToolCalls        []struct {
			Function json.RawMessage
		} `json:"tool_calls"`
	}
	if err := json.Unmarshal(messages, &list); err != nil {
		return nil, fmt.Errorf("the messages cannot be read again: %w", err)
	}
	out := []turn{}
	for i, m := range list {
		from, known := speakers[m.Role]
		said, isText := m.Content.(string)
		switch {
		case !known:
			return nil, fmt.Errorf("message %d: conversations have no speaker for the role %q", i, m.Role)
		case !isText && m.Content != nil:
			return nil, fmt.Errorf("message %d: conversations hold texts alone, and the content is a list of parts", i)
		}
		out = append(out, turn{from, said, m.ReasoningContent})
		if len(m.ToolCalls) == 0 {
			continue
		}
		calls := make([]json.RawMessage, len(m.ToolCalls))
		for k, c := range m.ToolCalls {
			calls[k] = c.Function
		}
		b, err := json.Marshal(calls)
		if err != nil {
			return nil, fmt.Errorf("message %d: the calls cannot be written: %w", i, err)
		}
		out = append(out, turn{"function_call", string(b), ""})
	}
	return json.Marshal(out)
}
