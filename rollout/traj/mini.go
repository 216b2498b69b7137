package traj

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// mini-swe-agent writes three generations of *.traj.json: v0 is a bare list of
// messages, v1 an object whose messages are text, v2 has native tool calls or
// Responses objects and closes with a message of role exit.

func isMini(v value, _ *fileReader) bool {
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

// isMiniList knows a v0 file, which is one list of messages.
func isMiniList(v value, j *fileReader) bool {
	return j.inList && v.Get("role").Kind() == jsonscan.String && v.Get("content").Kind() != jsonscan.Absent
}

type miniList struct {
	j        *fileReader
	messages []rollout.Message
}

func foldMiniList(j *fileReader) folder { return &miniList{j: j} }

func (f *miniList) add(v value) error {
	m, err := f.j.chatMessage(v, len(f.messages))
	if err != nil {
		return err
	}
	f.messages = said(f.messages, m, v.Get("role").Word())
	return nil
}

func (f *miniList) finish() error {
	sampleAll(f.messages, rollout.SampledByPolicy)
	return f.j.emit(&rollout.Rollout{Messages: f.messages, Turns: turns(f.messages), Index: noIndex})
}

func readMini(j *fileReader, v value) error {
	info := v.Get("info")
	r := &rollout.Rollout{
		Instance:    identifier(v.Get("instance_id")),
		Index:       noIndex,
		ExitStatus:  info.Get("exit_status").String(),
		Temperature: temperature(info.Path("config", "model", "model_kwargs", "temperature")),
		Outcome:     rollout.Outcome{Submission: text(info.Get("submission"))},
		Turns:       []rollout.Turn{},
	}
	r.Status = statusOf(r.ExitStatus)
	if err := j.templateKwargs(r, info.Path("config", "model", "model_kwargs")); err != nil {
		return err
	}
	if v.Get("messages").Kind() != jsonscan.Array {
		return j.want(v.Get("messages"), 0, "/messages", "a list of messages")
	}
	for i, x := range v.Get("messages").Items() {
		if err := j.miniMessage(r, x, i); err != nil {
			return err
		}
	}
	if n := len(r.Messages) - 1; n > 0 && r.ExitStatus == "Submitted" && r.Messages[n].Role == rollout.RoleUser {
		j.note("submission_echo", rollout.At(n), "the last message is the submission echoed back, not an observation: no model saw it")
	}
	if calls, ok := info.Path("model_stats", "api_calls").Int(); ok && calls > len(r.Turns) {
		j.note("calls_without_message", 0, "%d model calls are counted, %d have a message: retries and malformed replies are not recorded", calls, len(r.Turns))
	}
	for _, x := range []struct {
		key string
		v   value
	}{
		{"model", info.Path("config", "model", "model_name")}, {"mini_version", info.Get("mini_version")},
		{"instance_cost", info.Path("model_stats", "instance_cost")}, {"api_calls", info.Path("model_stats", "api_calls")},
	} {
		if !x.v.IsNull() {
			keep(&r.Metadata, x.key, x.v)
		}
	}
	j.noteParts(r)
	return j.emit(r)
}

func (j *fileReader) miniMessage(r *rollout.Rollout, v value, i int) error {
	var m rollout.Message
	var err error
	turn := rollout.Turn{Message: i, Step: len(r.Turns)}
	response := v.Path("extra", "response")
	switch {
	case v.Get("object").Is("response"):
		response = v
		m, err = j.responseMessage(v.Get("output"), i)
	case v.Get("type").Is("function_call_output"):
		m = rollout.Message{Role: rollout.RoleTool, ToolCallID: v.Get("call_id").String()}
		err = j.content(&m, v.Get("output"), i)
	default:
		m, err = j.chatMessage(v, i)
		drop(&m.Extra, "extra", "type")
		if m.Reasoning == "" && m.Role == rollout.RoleAssistant {
			m.Reasoning = reasoningOf(firstChoice(response).Get("message"))
		}
	}
	if err != nil {
		return err
	}
	if m.Role == rollout.RoleAssistant {
		m.Sampled = rollout.SampledByPolicy
		turn.ID = response.Get("id").String()
		turn.FinishReason = firstWord(firstChoice(response).Get("finish_reason").String(), responseEnd(response))
		turn.StopString = stopString(firstChoice(response))
		j.capture(&turn, response, i)
		r.Turns = append(r.Turns, turn)
	}
	r.Messages = append(r.Messages, m)
	return nil
}

// firstChoice is the first choice of a chat completion.
func firstChoice(response value) value {
	for _, c := range response.Get("choices").Items() {
		return c
	}
	return value{}
}

// reasoningOf is the readable thinking of a completion's message.
func reasoningOf(m value) string {
	for _, key := range []string{"reasoning_content", "reasoning", "thinking", "reasoning_details"} {
		if s, _ := thoughts(m.Get(key)); s != "" {
			return s
		}
	}
	return ""
}
