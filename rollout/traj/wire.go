package traj

import (
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// Recorded exchanges of one model call: the request is context, only the
// response is sampled.

func isCompletionLog(v value, _ *fileReader) bool {
	return v.Get("messages").Kind() == jsonscan.Array && v.Path("response", "choices").Kind() == jsonscan.Array || isResponsesCall(v, v.Get("response"))
}

func isOpenAIWire(v value, _ *fileReader) bool {
	return v.Path("request", "messages").Kind() == jsonscan.Array && (v.Path("response", "choices").Kind() == jsonscan.Array || refused(v)) ||
		isResponsesCall(v.Get("request"), v.Get("response"))
}

// isResponsesCall knows a call of the Responses API.
func isResponsesCall(request, response value) bool {
	return !request.Get("input").IsNull() && response.Get("output").Kind() == jsonscan.Array
}

// refused reports whether a call was answered by an error instead of a reply.
func refused(v value) bool { return v.Path("response", "error").Kind() == jsonscan.Object }

func isAnthropic(v value, _ *fileReader) bool {
	return v.Path("request", "messages").Kind() == jsonscan.Array && v.Path("response", "content").Kind() == jsonscan.Array
}

func readCompletionLog(j *fileReader, v value) error {
	for _, converted := range []string{"raw", "fncall"} { // the agent SDK, V0
		if v.Get(converted+"_messages").Kind() == jsonscan.Array {
			j.note("emulated_tools", 0, "tool calling was emulated in text; messages and response are the emulated form the model saw, %[1]s_messages and %[1]s_response the converted one", converted)
		}
	}
	if isResponsesCall(v, v.Get("response")) {
		return j.responsesCall(v, v.Get("kwargs"), v.Get("response"))
	}
	defs := v.Get("tools")
	if defs.IsNull() {
		defs = v.Path("kwargs", "tools") // of V0
	}
	return j.completion(v.Get("messages"), defs, v.Get("kwargs"), v.Get("response"))
}

func readOpenAIWire(j *fileReader, v value) error {
	q := v.Get("request")
	if refused(v) {
		why := v.Path("response", "error")
		return j.fail(0, "/response/error", "the call was answered by an error, so there is no reply: %s", firstWord(why.Get("message").String(), why.Get("type").String()))
	}
	if isResponsesCall(q, v.Get("response")) {
		return j.responsesCall(q, q, v.Get("response"))
	}
	return j.completion(q.Get("messages"), q.Get("tools"), q, v.Get("response"))
}

// completion makes a rollout of each choice of one chat completion: replies to one
// prompt, which is a group. A run of joined calls went on from one of them, the first
// as nearly all clients have it, and its outcome says nothing of the others.
func (j *fileReader) completion(list, defs, params, response value) error {
	messages, err := j.chatMessages(list, "/messages")
	if err != nil {
		return err
	}
	sampleAll(messages, rollout.SampledPrefilled)
	n := response.Get("choices").Len()
	if n > 1 && j.joins() {
		j.note("other_choices", 0, "%d choices were sampled, the first was taken: the outcome of the run is not that of the others", n)
		n = 1
	}
	c := completion{id: identifier(response.Get("id")), messages: slices.Clip(messages), defs: defs, params: params, response: response}
	if n < 2 {
		_, err := j.choice(&c, firstChoice(response), 0)
		return err
	}
	notes := slices.Clip(j.notes)
	for k, choice := range response.Get("choices").Items() {
		j.notes = notes
		r, err := j.choice(&c, choice, k)
		if err != nil {
			if err = j.failed(err); err != nil {
				return err
			}
		} else if c.group == "" {
			c.group = firstWord(r.Group, c.id)
		}
	}
	return nil
}

// completion is what the choices of a chat completion share.
type completion struct {
	id, group              string
	messages               []rollout.Message
	defs, params, response value
}

// choice makes the rollout of choice k.
func (j *fileReader) choice(c *completion, choice value, k int) (*rollout.Rollout, error) {
	i := len(c.messages)
	if choice.Get("message").IsNull() {
		return nil, j.fail(rollout.At(i), "/response/choices", "choice %d has no message (finish reason %q): the reply is not in the record", k, choice.Get("finish_reason").String())
	}
	r := &rollout.Rollout{ID: c.id, Group: c.group, Index: noIndex, Messages: c.messages, Tools: tools(c.defs), Temperature: temperature(c.params.Get("temperature"))}
	if k > 0 && c.id != "" {
		r.ID += "/" + strconv.Itoa(k)
	}
	if c.defs.IsNull() {
		r.Tools = functionTools(c.params.Get("functions")) // as they were called before tools
	}
	if err := j.requestKwargs(r, c.params); err != nil {
		return nil, err
	}
	m, err := j.chatMessage(choice.Get("message"), i)
	if err != nil {
		return nil, err
	}
	m.Sampled = rollout.SampledByPolicy
	r.Messages = append(r.Messages, m)
	r.ExitStatus = choice.Get("finish_reason").String()
	t := rollout.Turn{ID: c.id, Message: i, FinishReason: r.ExitStatus, StopString: stopString(choice), Sampling: samplingOf(c.params)}
	j.captureChoice(&t, c.response, k, i)
	goesOn, _ := c.params.Get("continue_final_message").Bool()
	j.continued(&t, goesOn)
	r.Turns = []rollout.Turn{t}
	r.Status = statusOf(r.ExitStatus)
	if x := c.response.Get("model"); !x.IsNull() {
		keep(&r.Metadata, "model", x)
	}
	j.noteParts(r)
	return r, j.emit(r)
}

// templateKwargs takes over the chat-template variables that a call was made with.
// Engines read them from chat_template_kwargs of the request; clients pass that on
// in a body for what the API has no word for. The native format's word is read as well;
// where the two differ, the record is refused.
func (j *fileReader) templateKwargs(r *rollout.Rollout, params value) error {
	const key = "chat_template_kwargs"
	for _, from := range []value{params, params.Get("extra_body"), params.Get("litellm_extra_body")} {
		if err := j.variables(r, from, key); err != nil {
			return err
		}
	}
	return j.variables(r, params, "template_kwargs")
}

// variables adds the chat-template variables under key that r does not have.
func (j *fileReader) variables(r *rollout.Rollout, from value, key string) error {
	v := from.Get(key)
	if v.IsNull() {
		return nil
	}
	v, err := j.inner(v, "/"+key)
	if err != nil {
		return err
	}
	if v.Kind() != jsonscan.Object {
		return j.want(v, 0, "/"+key, "an object")
	}
	for name, x := range v.Members() {
		if _, there := r.TemplateKwargs[name]; !there {
			keep(&r.TemplateKwargs, name, x)
		}
	}
	return nil
}

// requestKwargs takes over the variables of a request as it was sent: engines give
// the template its effort, too. Of agents' configurations only the call knows
// whether they send theirs.
func (j *fileReader) requestKwargs(r *rollout.Rollout, request value) error {
	if err := j.templateKwargs(r, request); err != nil {
		return err
	}
	const key = "reasoning_effort"
	for _, v := range []value{request.Get(key), request.Path("extra_body", key), request.Path("reasoning", "effort")} {
		if _, there := r.TemplateKwargs[key]; !there && v.Kind() == jsonscan.String {
			keep(&r.TemplateKwargs, key, v)
		}
	}
	return nil
}

// lastEnded gives the turn of the last message, which says nothing of it, the reason
// why it ended.
func lastEnded(r *rollout.Rollout, why string) {
	n := len(r.Turns) - 1
	if n >= 0 && r.Turns[n].Message == len(r.Messages)-1 && r.Turns[n].FinishReason == "" {
		r.Turns[n].FinishReason = why
	}
}

// stopString is the text of the request that ended a choice, as vLLM and SGLang
// tell it; a number there is a token, and gateways put other APIs' finish reasons there.
func stopString(choice value) string {
	for _, v := range []value{choice.Get("stop_reason"), choice.Get("matched_stop"), choice.Path("provider_specific_fields", "stop_reason")} {
		if s, ok := v.Text(); ok && s != "" && !contains(replyEnds, s) {
			return s
		}
	}
	return ""
}

// continued marks a reply that goes on in the middle of the request's last
// message: as messages the two are apart, so what the model saw cannot be
// rendered from them.
func (j *fileReader) continued(t *rollout.Turn, yes bool) {
	if yes && !t.Prompt.Captured() {
		j.note("continues_prefill", rollout.At(t.Message), "the reply goes on from the text that the request put in the assistant's mouth")
		t.Context.Unknown = true
	}
}

// responsesCall makes a rollout of one call of the Responses API: all items of
// its output are one reply.
func (j *fileReader) responsesCall(params, settings, response value) error {
	r := &rollout.Rollout{ID: identifier(response.Get("id")), Index: noIndex, Tools: functionTools(params.Get("tools")), Temperature: temperature(settings.Get("temperature"))}
	x := itemRun{j: j, r: r, sampled: rollout.SampledPrefilled}
	if err := j.requestKwargs(r, settings); err != nil {
		return err
	}
	if err := x.request(params); err != nil {
		return err
	}
	i := len(r.Messages)
	if id := params.Get("previous_response_id").String(); id != "" {
		j.note("continues_response", rollout.At(i), "the call goes on from response %s, whose messages are not in this record", id)
	}
	m, err := j.responseMessage(response.Get("output"), i)
	if err != nil {
		return err
	}
	m.Sampled = rollout.SampledByPolicy
	r.Messages = append(r.Messages, m)
	r.ExitStatus = response.Get("status").String()
	t := rollout.Turn{ID: r.ID, Message: i, FinishReason: responseEnd(response), Sampling: samplingOf(settings)}
	t.Context.Unknown = !params.Get("previous_response_id").IsNull()
	j.capture(&t, response, i)
	r.Turns = []rollout.Turn{t}
	r.Status = responseStatus(r.ExitStatus)
	if x := response.Get("model"); !x.IsNull() {
		keep(&r.Metadata, "model", x)
	}
	j.noteParts(r)
	return j.emit(r)
}

func readAnthropic(j *fileReader, v value) error {
	q, a := v.Get("request"), v.Get("response")
	r := &rollout.Rollout{ID: identifier(a.Get("id")), Index: noIndex, Tools: functionTools(q.Get("tools")), Temperature: temperature(q.Get("temperature"))}
	r.Messages = make([]rollout.Message, 0, q.Get("messages").Len()+2)
	if s := q.Get("system"); !s.IsNull() {
		m := rollout.Message{Role: rollout.RoleSystem}
		if err := j.content(&m, s, 0); err != nil {
			return err
		}
		r.Messages = append(r.Messages, m)
	}
	for _, x := range q.Get("messages").Items() {
		if err := j.anthropicMessage(r, x); err != nil {
			return err
		}
	}
	sampleAll(r.Messages, rollout.SampledPrefilled)
	if err := j.anthropicMessage(r, a); err != nil {
		return err
	}
	i := len(r.Messages) - 1
	r.Messages[i].Sampled = rollout.SampledByPolicy
	r.ExitStatus = a.Get("stop_reason").String()
	r.Status = statusOf(r.ExitStatus)
	t := rollout.Turn{ID: r.ID, Message: i, FinishReason: r.ExitStatus, StopString: a.Get("stop_sequence").String(), Sampling: samplingOf(q)}
	j.capture(&t, a, i)
	if i > 0 {
		j.continued(&t, r.Messages[i-1].Role == rollout.RoleAssistant) // always so in this API
	}
	r.Turns = []rollout.Turn{t}
	if x := a.Get("model"); !x.IsNull() {
		keep(&r.Metadata, "model", x)
	}
	j.noteParts(r)
	return j.emit(r)
}

// anthropicMessage adds one Messages-API message: tool results first, one tool
// message each, then what else a user said; thinking becomes reasoning,
// tool_use a call whose arguments are an object.
func (j *fileReader) anthropicMessage(r *rollout.Rollout, v value) error {
	m := rollout.Message{Role: rollout.Role(v.Get("role").Word())}
	if m.Role == "" {
		return j.fail(rollout.At(len(r.Messages)), "/role", "the message has no role")
	}
	return j.blocks(r, m, v.Get("content"))
}

// blocks adds a message of which all but the content is known, and the tool
// results among its blocks.
func (j *fileReader) blocks(r *rollout.Rollout, m rollout.Message, body value) error {
	if body.Kind() != jsonscan.Array {
		if err := j.content(&m, body, len(r.Messages)); err != nil {
			return err
		}
		r.Messages = append(r.Messages, m)
		return nil
	}
	m.NoContent = false
	results, plain := 0, true
	var thinking []string
	for _, b := range body.Items() {
		i := len(r.Messages)
		if b.Kind() != jsonscan.Object {
			return j.want(b, rollout.At(i), "/content", "a block object")
		}
		switch kind := b.Get("type").Word(); kind {
		case "tool_result":
			results++
			t := rollout.Message{Role: rollout.RoleTool, ToolCallID: b.Get("tool_use_id").String()}
			if err := j.content(&t, b.Get("content"), i); err != nil {
				return err
			}
			if bad, _ := b.Get("is_error").Bool(); bad {
				keep(&t.Extra, "is_error", b.Get("is_error"))
			}
			r.Messages = append(r.Messages, t)
		case "tool_use":
			c := rollout.ToolCall{ID: b.Get("id").String(), Name: b.Get("name").Word()}
			if c.Name == "" {
				return j.fail(rollout.At(i), "/content", "the tool_use block has no name")
			}
			setArguments(&c, b.Get("input"))
			same := func(o rollout.ToolCall) bool { return o.ID != "" && o.ID == c.ID }
			if k := slices.IndexFunc(m.ToolCalls, same); k >= 0 {
				m.ToolCalls[k] = c // some recorders write calls both ways
			} else {
				m.ToolCalls = append(m.ToolCalls, c)
			}
		case "thinking":
			thinking = append(thinking, b.Get("thinking").String())
		case "redacted_thinking":
			j.redacted(i)
		default:
			p := rollout.Part{Type: kind, Raw: b.Clone()}
			if err := j.partText(&p, b, i); err != nil {
				return err
			}
			plain = plain && p.IsText()
			m.Parts = append(m.Parts, p)
		}
	}
	if thinking != nil {
		m.Reasoning = strings.Join(thinking, "\n")
	}
	m.Content = rollout.JoinText(m.Parts)
	if plain && m.Role == rollout.RoleAssistant {
		m.Parts = nil // templates want the text of a reply, not a list of blocks
	}
	if results == 0 || m.Parts != nil || m.Content != "" {
		r.Messages = append(r.Messages, m)
	}
	return nil
}
