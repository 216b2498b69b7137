package sweagent

import (
	"cmp"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// miniRun is one file of mini-swe-agent, v1 or later.
type miniRun struct {
	in     *format.File
	r      *rollout.Rollout
	model  string // class of the model, in lower case
	unseen []int  // replies that no later call saw
	called bool   // a reply has native tool calls
}

func readMini(in *format.File, v format.Value) error {
	info := v.Get("info")
	x := &miniRun{in: in, model: strings.ToLower(info.Path("config", "model_type").String()), r: &rollout.Rollout{
		Instance:    format.Identifier(v.Get("instance_id")),
		Index:       format.NoIndex,
		ExitStatus:  info.Get("exit_status").String(),
		Temperature: format.Temperature(info.Path("config", "model", "model_kwargs", "temperature")),
		Outcome:     rollout.Outcome{Submission: format.Text(info.Get("submission"))},
		Turns:       []rollout.Turn{},
	}}
	r := x.r
	in.TemplateKwargs(r, info.Path("config", "model", "model_kwargs"))
	if v.Get("messages").Kind() != jsonscan.Array {
		return in.Want(v.Get("messages"), 0, "/messages", "a list of messages")
	}
	var last format.Value
	for _, m := range v.Get("messages").Items() {
		if err := x.message(m); err != nil {
			return err
		}
		last = m
	}
	x.ending(info, last.Get("extra"))
	x.tools(info)
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

func (x *miniRun) message(v format.Value) error {
	var m rollout.Message
	var err error
	i, response := len(x.r.Messages), v.Path("extra", "response")
	switch {
	case v.Get("object").Is("response"):
		response = v
		m, err = x.in.ResponseMessage(v.Get("output"), i)
	case v.Get("type").Is("function_call_output"):
		m = rollout.Message{Role: rollout.RoleTool, ToolCallID: v.Get("call_id").String()}
		err = x.in.Content(&m, v.Get("output"), i)
	default:
		if v.Path("extra", "interrupt_type").Is("FormatError") && response.Kind() == jsonscan.Object && !x.scripted() {
			if err := x.malformed(response); err != nil {
				return err
			}
			i = len(x.r.Messages)
		}
		m, err = x.in.ChatMessage(v, i)
		format.Drop(&m.Extra, "extra", "type")
		if m.Reasoning == "" && m.Role == rollout.RoleAssistant {
			m.Reasoning = format.ReasoningOf(format.FirstChoice(response).Get("message"))
		}
	}
	if err != nil {
		return err
	}
	if m.Role == rollout.RoleAssistant {
		x.reply(m, response)
		return nil
	}
	x.r.Messages = append(x.r.Messages, m)
	return nil
}

// reply adds a sampled reply and its turn.
func (x *miniRun) reply(m rollout.Message, response format.Value) {
	i := len(x.r.Messages)
	choice := format.FirstChoice(response)
	turn := rollout.Turn{
		ID: response.Get("id").String(), Message: i, Step: len(x.r.Turns),
		FinishReason: cmp.Or(choice.Get("finish_reason").String(), format.ResponseEnd(response)),
		StopString:   format.StopString(choice),
	}
	for k := range x.unseen {
		from := 0
		if k > 0 {
			from = x.unseen[k-1] + 1
		}
		if from < x.unseen[k] {
			turn.Context.Parts = append(turn.Context.Parts, rollout.ContextPart{From: from, To: x.unseen[k]})
		}
	}
	if n := len(x.unseen); n > 0 {
		turn.Context.Parts = append(turn.Context.Parts, rollout.ContextPart{From: x.unseen[n-1] + 1, To: i})
	}
	m.Sampled = rollout.SampledByPolicy
	x.in.Capture(&turn, response, i)
	x.called = x.called || len(m.ToolCalls) > 0
	x.r.Turns = append(x.r.Turns, turn)
	x.r.Messages = append(x.r.Messages, m)
}

// scripted reports whether the model is one of mini-swe-agent's test models, which call no
// engine.
func (x *miniRun) scripted() bool {
	return strings.HasPrefix(x.model, "minisweagent.models.test_models.")
}

// malformed adds a reply whose call could not be parsed. From 2.3.1 on it is stored in the
// error message, which the model is shown instead.
func (x *miniRun) malformed(response format.Value) error {
	i := len(x.r.Messages)
	var m rollout.Message
	var err error
	switch body := format.FirstChoice(response).Get("message"); {
	case response.Get("output").Kind() == jsonscan.Array:
		m, err = x.in.ResponseMessage(response.Get("output"), i)
	case body.Kind() == jsonscan.Object:
		m, err = x.in.ChatMessage(body, i)
	default:
		return nil
	}
	if err != nil || m.Role != rollout.RoleAssistant {
		return err
	}
	x.reply(m, response)
	x.unseen = append(x.unseen, i)
	return nil
}

// ending sets how the run ended. If an exception ended it, the exit status is its class: a
// failure of the harness, not of the policy, unless the context was full. v1 writes the
// text of the exception as the submission.
func (x *miniRun) ending(info, last format.Value) {
	r := x.r
	r.Status = format.StatusOf(r.ExitStatus)
	if e := info.Get("exit_status"); r.ExitStatus == "" && e.Kind() != jsonscan.Absent && len(r.Turns) > 0 {
		r.Status = rollout.StatusAborted
		x.in.Note("unfinished", 0, "the run was cut off: its exit status is empty")
		return
	}
	detail := cmp.Or(info.Get("exception_str").String(), last.Get("exception_str").String())
	traceback := cmp.Or(info.Get("traceback").String(), last.Get("traceback").String())
	raised := traceback != "" || detail != ""
	for _, ending := range []string{"Error", "Exception", "Timeout", "TimeoutExpired"} {
		raised = raised || r.Status == rollout.StatusUnknown && strings.HasSuffix(r.ExitStatus, ending)
	}
	if !raised || r.Status == rollout.StatusCompleted {
		return
	}
	if r.Outcome.Submission != nil && detail == "" {
		detail = *r.Outcome.Submission
	}
	if r.Status == rollout.StatusUnknown {
		r.Status = rollout.StatusFailed
		r.Failure = &rollout.Failure{Reason: cmp.Or(r.ExitStatus, "exception"), Detail: detail}
	}
}

// bashTool is the only tool of mini-swe-agent 2; run files do not contain it.
const bashTool = `{"type":"function","function":{"name":"bash","description":"Execute a bash command","parameters":` +
	`{"type":"object","properties":{"command":{"type":"string","description":"The bash command to execute"}},"required":["command"]}}}`

// tools sets the tool that the model was given. From 2.0.0 on all models of mini-swe-agent
// send it, except those that parse commands from text and the test models, which call no
// engine.
func (x *miniRun) tools(info format.Value) {
	version, _, _ := strings.Cut(info.Get("mini_version").String(), ".")
	if len(version) == 1 && version >= "2" && strings.HasPrefix(x.model, "minisweagent.models.") && !x.scripted() && !strings.Contains(x.model, "textbased") {
		if x.called || !strings.HasPrefix(x.model, "minisweagent.models.extra.") {
			x.r.Tools = []rollout.Tool{rollout.Tool(bashTool)}
			x.in.Note("tools_of_harness", 0, "no file holds the definitions of tools: the bash tool of mini-swe-agent 2 was taken")
			return
		}
	}
	if x.called {
		x.in.Note("tools_not_recorded", 0, "no file holds the definitions of tools, and the model that was given them is not one of mini-swe-agent")
	}
}
