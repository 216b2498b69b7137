package sweagent

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Mini reads files of mini-swe-agent from v1 on.
func Mini() format.Importer {
	return format.Importer{Name: "mini-swe-agent", Match: isMini, Read: readMini, Stateless: true}
}

func isMini(v format.Value, _ *format.File) bool {
	if v.Get("messages").Kind() != jsonscan.Array {
		return false
	}
	if strings.HasPrefix(v.Get("trajectory_format").String(), "mini-swe-agent") {
		return true
	}
	info := v.Get("info")
	return info.Get("mini_version").Kind() == jsonscan.String ||
		info.Get("model_stats").Kind() == jsonscan.Object && info.Get("exit_status").Kind() != jsonscan.Absent ||
		strings.HasPrefix(info.Path("config", "agent_type").String(), "minisweagent.")
}

// MiniList reads files of mini-swe-agent v0.
func MiniList() format.Importer {
	return format.Importer{Name: "mini-swe-agent", Match: isMiniList, Fold: foldMiniList}
}

// isMiniList reports whether v is a message in a v0 file, one list of messages.
func isMiniList(v format.Value, in *format.File) bool {
	return in.InList && v.Get("role").Kind() == jsonscan.String && v.Get("content").Kind() != jsonscan.Absent
}

type miniList struct {
	in       *format.File
	messages []rollout.Message
	items    *format.Items // for a file of Responses API items, set at the first one
	lost     int           // index of the first message after one that was left out, 0 = none
}

func foldMiniList(in *format.File) format.Folder { return &miniList{in: in} }

func (f *miniList) Add(v format.Value) error {
	err := f.add(v)
	if err != nil && f.lost == 0 {
		f.lost = max(1, f.count())
	}
	return err
}

func (f *miniList) count() int {
	if f.items != nil {
		return len(f.items.Rollout.Messages)
	}
	return len(f.messages)
}

func (f *miniList) add(v format.Value) error {
	if f.items == nil && format.IsItem(v) { // a list written by OpenAI's Agents SDK
		format.MarkReplies(f.messages, rollout.SampledByPolicy)
		r := &rollout.Rollout{Messages: f.messages, Turns: format.TurnsOf(f.messages), Index: format.NoIndex}
		f.items = &format.Items{File: f.in, Rollout: r, Sampled: rollout.SampledByPolicy}
	}
	if f.items != nil {
		f.items.Add(v)
		return f.in.Checked(nil)
	}
	m, err := f.in.ChatMessage(v, len(f.messages))
	if err != nil {
		return err
	}
	f.messages = format.AppendMessage(f.messages, m, v.Get("role").Word())
	return nil
}

func (f *miniList) Finish() error {
	format.MarkReplies(f.messages, rollout.SampledByPolicy)
	r := &rollout.Rollout{Messages: f.messages, Turns: format.TurnsOf(f.messages), Index: format.NoIndex}
	if f.items != nil {
		if r = f.items.Rollout; f.items.Left > 0 {
			return f.in.Fail(0, "/type", "%d items of kinds that are not understood (the last is %q)", f.items.Left, f.items.Kind)
		}
		r.Origin.Format = "openai-agents"
		f.in.NoteHidden(r)
		f.in.NoteParts(r)
		f.in.UnlinkResults(r)
	}
	for i := range r.Turns {
		t := &r.Turns[i]
		t.Context.Unknown = f.lost > 0 && t.Message >= f.lost
		if m := &r.Messages[t.Message]; f.items != nil && m.Content == "" && m.Reasoning == "" && len(m.ToolCalls) == 0 {
			t.Incomplete = "no text and no call of the reply is recorded"
			f.in.Note("incomplete", rollout.At(t.Message), "%s: it is context and never trained", t.Incomplete)
		}
	}
	return f.in.Emit(r)
}
