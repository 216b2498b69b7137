package calls

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// CompletionLog reads the log files of clients, one call per file.
func CompletionLog() format.Importer {
	return format.Importer{Name: "llm-completion-log", Match: isCompletionLog, Read: readCompletionLog, Call: true}
}

func isCompletionLog(v format.Value, _ *format.File) bool {
	return v.Get("messages").Kind() == jsonscan.Array && v.Path("response", "choices").Kind() == jsonscan.Array || isResponsesCall(v, v.Get("response"))
}

// OpenAI reads pairs of request and response of the chat and Responses APIs.
func OpenAI() format.Importer {
	return format.Importer{Name: "openai-wire", Match: isOpenAIWire, Read: readOpenAIWire, Call: true}
}

func isOpenAIWire(v format.Value, _ *format.File) bool {
	return v.Path("request", "messages").Kind() == jsonscan.Array && (v.Path("response", "choices").Kind() == jsonscan.Array || refused(v)) ||
		isResponsesCall(v.Get("request"), v.Get("response"))
}

// isResponsesCall reports whether a pair is a call of the Responses API.
func isResponsesCall(request, response format.Value) bool {
	return !request.Get("input").IsNull() && response.Get("output").Kind() == jsonscan.Array
}

// refused reports whether the response to a call is an error.
func refused(v format.Value) bool { return v.Path("response", "error").Kind() == jsonscan.Object }

// Anthropic reads pairs of request and response of the Messages API.
func Anthropic() format.Importer {
	return format.Importer{Name: "anthropic-messages", Match: isAnthropic, Read: readAnthropic, Call: true}
}

func isAnthropic(v format.Value, _ *format.File) bool {
	return v.Path("request", "messages").Kind() == jsonscan.Array && v.Path("response", "content").Kind() == jsonscan.Array
}

func readCompletionLog(in *format.File, v format.Value) error {
	for _, converted := range []string{"raw", "fncall"} { // the agent SDK, V0
		if v.Get(converted+"_messages").Kind() == jsonscan.Array {
			in.Note("emulated_tools", 0, "tool calling was emulated in text; messages and response are the emulated form the model saw, %[1]s_messages and %[1]s_response the converted one", converted)
		}
	}
	if isResponsesCall(v, v.Get("response")) {
		return readResponses(in, "", v, v.Get("kwargs"), v.Get("response"))
	}
	defs := v.Get("tools")
	if defs.IsNull() {
		defs = v.Path("kwargs", "tools") // V0
	}
	return readCompletion(in, "", v.Get("messages"), defs, v.Get("kwargs"), v.Get("response"))
}

func readOpenAIWire(in *format.File, v format.Value) error {
	q := v.Get("request")
	if refused(v) {
		why := v.Path("response", "error")
		return in.Fail(0, "/response/error", "the call was answered by an error, so there is no reply: %s", cmp.Or(why.Get("message").String(), why.Get("type").String()))
	}
	if isResponsesCall(q, v.Get("response")) {
		return readResponses(in, "", q, q, v.Get("response"))
	}
	return readCompletion(in, "", q.Get("messages"), q.Get("tools"), q, v.Get("response"))
}

// readCompletion makes a rollout of each choice of a chat completion; the choices form a
// group. When calls are joined, only one choice is read: a run continues from one reply,
// nearly always the first, and its outcome does not apply to the others. id is the record's
// id if it differs from the response's.
func readCompletion(in *format.File, id string, list, defs, params, response format.Value) error {
	messages := in.ChatMessages(list, "/messages")
	format.MarkReplies(messages, rollout.SampledPrefilled)
	n := response.Get("choices").Len()
	if n > 1 && in.Joins() {
		in.Note("other_choices", 0, "%d choices were sampled, the first was taken: the outcome of the run is not that of the others", n)
		n = 1
	}
	c := completion{id: cmp.Or(id, format.Identifier(response.Get("id"))), messages: slices.Clip(messages), defs: defs, params: params, response: response}
	if n < 2 {
		_, err := readChoice(in, &c, format.FirstChoice(response), 0)
		return err
	}
	notes := slices.Clip(in.Notes)
	for k, choice := range response.Get("choices").Items() {
		in.Notes = notes
		r, err := readChoice(in, &c, choice, k)
		if err != nil {
			if err = in.Failed(err); err != nil {
				return err
			}
		} else if c.group == "" {
			c.group = cmp.Or(r.Group, c.id)
		}
	}
	return nil
}

// completion holds what the choices of a chat completion share.
type completion struct {
	id, group              string
	messages               []rollout.Message
	defs, params, response format.Value
}

// readChoice returns the rollout of choice k.
func readChoice(in *format.File, c *completion, choice format.Value, k int) (*rollout.Rollout, error) {
	i := len(c.messages)
	if choice.Get("message").IsNull() {
		return nil, in.Fail(rollout.At(i), "/response/choices", "choice %d has no message (finish reason %q): the reply is not in the record", k, choice.Get("finish_reason").String())
	}
	r := &rollout.Rollout{ID: c.id, Group: c.group, Index: format.NoIndex, Messages: c.messages, Tools: format.Tools(c.defs), Temperature: format.Temperature(c.params.Get("temperature"))}
	if k > 0 && c.id != "" {
		r.ID += "/" + strconv.Itoa(k)
	}
	if c.defs.IsNull() {
		r.Tools = format.FunctionTools(c.params.Get("functions")) // the older name of tools
	}
	requestKwargs(in, r, c.params)
	m, err := in.ChatMessage(choice.Get("message"), i)
	if err != nil {
		return nil, err
	}
	m.Sampled = rollout.SampledByPolicy
	r.Messages = append(r.Messages, m)
	r.ExitStatus = choice.Get("finish_reason").String()
	t := rollout.Turn{ID: c.id, Message: i, FinishReason: r.ExitStatus, StopString: format.StopString(choice), Sampling: format.SamplingOf(c.params)}
	in.CaptureChoice(&t, c.response, k, i)
	goesOn := c.params.Get("continue_final_message").True()
	in.ContinuesPrefill(&t, goesOn)
	r.Turns = []rollout.Turn{t}
	r.Status = format.StatusOf(r.ExitStatus)
	return r, emit(in, r, c.response)
}

// emit reads what a record says about a call besides request and response, and emits the
// rollout.
func emit(in *format.File, r *rollout.Rollout, response format.Value) error {
	format.KeepAny(&r.Metadata, "model", response.Get("model"))
	if v := in.Record; !v.Get("object").Is("response") { // else the record is the response itself
		r.Outcome = in.Outcome(v)
		if r.Instance == "" {
			r.Instance = format.FirstID(v, "instance_id", "task_id")
		}
		if v.Get("request").Kind() == jsonscan.Object { // headers may hold secrets
			in.Leftover(r, v, "request", "response", "reward", "resolved", "instance_id", "headers", "request_headers", "response_headers")
		}
	}
	in.NoteParts(r)
	return in.Emit(r)
}

// requestKwargs copies the template variables of a request as it was sent, with the
// reasoning effort, which engines pass on. Of agents' configurations, only the caller knows
// whether they are sent.
func requestKwargs(in *format.File, r *rollout.Rollout, request format.Value) {
	in.TemplateKwargs(r, request)
	const key = "reasoning_effort"
	for _, v := range []format.Value{request.Get(key), request.Path("extra_body", key), request.Path("reasoning", "effort")} {
		if _, there := r.TemplateKwargs[key]; !there && v.Kind() == jsonscan.String {
			format.Keep(&r.TemplateKwargs, key, v)
		}
	}
}

// readResponses makes a rollout of one call of the Responses API: all items of its output
// form one reply.
func readResponses(in *format.File, id string, params, settings, response format.Value) error {
	r := &rollout.Rollout{ID: cmp.Or(id, format.Identifier(response.Get("id"))), Index: format.NoIndex, Tools: format.FunctionTools(params.Get("tools")), Temperature: format.Temperature(settings.Get("temperature"))}
	x := format.Items{File: in, Rollout: r, Sampled: rollout.SampledPrefilled}
	requestKwargs(in, r, settings)
	x.AddRequest(params)
	i := len(r.Messages)
	if id := params.Get("previous_response_id").String(); id != "" {
		in.Note("continues_response", rollout.At(i), "the call goes on from response %s, whose messages are not in this record", id)
	}
	m, err := in.ResponseMessage(response.Get("output"), i)
	if err != nil {
		return err
	}
	if format.Silent(&m) {
		return in.Fail(rollout.At(i), "/response/output", "the output says nothing: %s", format.Shape(response.Get("output")))
	}
	m.Sampled = rollout.SampledByPolicy
	r.Messages = append(r.Messages, m)
	r.ExitStatus = response.Get("status").String()
	t := rollout.Turn{ID: r.ID, Message: i, FinishReason: format.ResponseEnd(response), Sampling: format.SamplingOf(settings)}
	t.Context.Unknown = !params.Get("previous_response_id").IsNull() || x.Left > 0
	in.Capture(&t, response, i)
	r.Turns = []rollout.Turn{t}
	r.Status = format.ResponseStatus(r.ExitStatus)
	return emit(in, r, response)
}

func readAnthropic(in *format.File, v format.Value) error {
	return readMessages(in, "", v.Get("request"), v.Get("response"))
}

// readMessages makes a rollout of one call of the Messages API.
func readMessages(in *format.File, id string, q, a format.Value) error {
	r := &rollout.Rollout{ID: cmp.Or(id, format.Identifier(a.Get("id"))), Index: format.NoIndex, Tools: format.FunctionTools(q.Get("tools")), Temperature: format.Temperature(q.Get("temperature"))}
	requestKwargs(in, r, q)
	r.Messages = make([]rollout.Message, 0, q.Get("messages").Len()+2)
	if s := q.Get("system"); !s.IsNull() {
		m := rollout.Message{Role: rollout.RoleSystem}
		in.Wrong(in.Content(&m, s, 0))
		r.Messages = append(r.Messages, m)
	}
	for _, x := range q.Get("messages").Items() {
		addMessage(in, r, x)
	}
	format.MarkReplies(r.Messages, rollout.SampledPrefilled)
	if addMessage(in, r, a); in.Broken() {
		return nil
	}
	i := len(r.Messages) - 1
	r.Messages[i].Sampled = rollout.SampledByPolicy
	r.ExitStatus = a.Get("stop_reason").String()
	r.Status = format.StatusOf(r.ExitStatus)
	t := rollout.Turn{ID: r.ID, Message: i, FinishReason: r.ExitStatus, StopString: a.Get("stop_sequence").String(), Sampling: format.SamplingOf(q)}
	in.Capture(&t, a, i)
	if i > 0 {
		in.ContinuesPrefill(&t, r.Messages[i-1].Role == rollout.RoleAssistant) // always the case in this API
	}
	r.Turns = []rollout.Turn{t}
	return emit(in, r, a)
}

// addMessage adds one message of the Messages API: tool results first, one tool message
// each, then the rest of the user's content; thinking becomes reasoning, tool_use a call
// whose arguments are an object.
func addMessage(in *format.File, r *rollout.Rollout, v format.Value) {
	m := rollout.Message{Role: rollout.Role(v.Get("role").Word())}
	if m.Role == "" {
		in.Wrong(in.Fail(rollout.At(len(r.Messages)), "/role", "the message has no role"))
	}
	in.Wrong(in.Blocks(r, m, v.Get("content")))
}
