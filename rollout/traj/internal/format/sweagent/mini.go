package sweagent

import (
	"cmp"
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

// isMiniList knows a v0 file, which is one list of messages.
func isMiniList(v format.Value, in *format.File) bool {
	return in.InList && v.Get("role").Kind() == jsonscan.String && v.Get("content").Kind() != jsonscan.Absent
}

type miniList struct {
	in       *format.File
	messages []rollout.Message
	items    *format.Items // of the Responses API, once one was found
	lost     int           // the first message after one that was left out, 0 = none
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
	if f.items == nil && format.IsItem(v) { // a list as OpenAI's Agents SDK keeps it
		format.MarkReplies(f.messages, rollout.SampledByPolicy)
		r := &rollout.Rollout{Messages: f.messages, Turns: format.TurnsOf(f.messages), Index: format.NoIndex}
		f.items = &format.Items{File: f.in, Rollout: r, Sampled: rollout.SampledByPolicy}
	}
	if f.items != nil {
		return f.items.Add(v)
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

func readMini(in *format.File, v format.Value) error {
	info := v.Get("info")
	r := &rollout.Rollout{
		Instance:    format.Identifier(v.Get("instance_id")),
		Index:       format.NoIndex,
		ExitStatus:  info.Get("exit_status").String(),
		Temperature: format.Temperature(info.Path("config", "model", "model_kwargs", "temperature")),
		Outcome:     rollout.Outcome{Submission: format.Text(info.Get("submission"))},
		Turns:       []rollout.Turn{},
	}
	r.Status = format.StatusOf(r.ExitStatus)
	if err := in.TemplateKwargs(r, info.Path("config", "model", "model_kwargs")); err != nil {
		return err
	}
	if v.Get("messages").Kind() != jsonscan.Array {
		return in.Want(v.Get("messages"), 0, "/messages", "a list of messages")
	}
	for i, x := range v.Get("messages").Items() {
		if err := miniMessage(in, r, x, i); err != nil {
			return err
		}
	}
	if n := len(r.Messages) - 1; n > 0 && r.ExitStatus == "Submitted" && r.Messages[n].Role == rollout.RoleUser {
		in.Note("submission_echo", rollout.At(n), "the last message is the submission echoed back, not an observation: no model saw it")
	}
	if calls, ok := info.Path("model_stats", "api_calls").Int(); ok && calls > len(r.Turns) {
		in.Note("calls_without_message", 0, "%d model calls are counted, %d have a message: retries and malformed replies are not recorded", calls, len(r.Turns))
	}
	stats := info.Get("model_stats")
	format.KeepAny(&r.Metadata, "model", info.Path("config", "model", "model_name"))
	format.KeepAny(&r.Metadata, "mini_version", info.Get("mini_version"))
	format.KeepAny(&r.Metadata, "instance_cost", stats.Get("instance_cost"))
	format.KeepAny(&r.Metadata, "api_calls", stats.Get("api_calls"))
	in.NoteParts(r)
	return in.Emit(r)
}

func miniMessage(in *format.File, r *rollout.Rollout, v format.Value, i int) error {
	var m rollout.Message
	var err error
	turn := rollout.Turn{Message: i, Step: len(r.Turns)}
	response := v.Path("extra", "response")
	switch {
	case v.Get("object").Is("response"):
		response = v
		m, err = in.ResponseMessage(v.Get("output"), i)
	case v.Get("type").Is("function_call_output"):
		m = rollout.Message{Role: rollout.RoleTool, ToolCallID: v.Get("call_id").String()}
		err = in.Content(&m, v.Get("output"), i)
	default:
		m, err = in.ChatMessage(v, i)
		format.Drop(&m.Extra, "extra", "type")
		if m.Reasoning == "" && m.Role == rollout.RoleAssistant {
			m.Reasoning = format.ReasoningOf(format.FirstChoice(response).Get("message"))
		}
	}
	if err != nil {
		return err
	}
	if m.Role == rollout.RoleAssistant {
		m.Sampled = rollout.SampledByPolicy
		turn.ID = response.Get("id").String()
		turn.FinishReason = cmp.Or(format.FirstChoice(response).Get("finish_reason").String(), format.ResponseEnd(response))
		turn.StopString = format.StopString(format.FirstChoice(response))
		in.Capture(&turn, response, i)
		r.Turns = append(r.Turns, turn)
	}
	r.Messages = append(r.Messages, m)
	return nil
}
