package traj

import (
	"bytes"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// NeMo-Gym writes one JSON object per rollout: responses_create_params (the
// task), response.output (Responses-API items of all model calls and of the
// environment) and a reward.

func isNeMoGym(v value, _ *fileReader) bool {
	if v.Get("responses_create_params").Kind() != jsonscan.Object {
		return false // an input of the same name without a response is a task, not a rollout
	}
	return v.Get("response").Kind() == jsonscan.Object || v.Get("response").Kind() == jsonscan.Null && v.Get("reward").Kind() == jsonscan.Number
}

// itemRun turns a flat list of Responses items into messages. A model turn is a
// run of model items: a new one begins when the kind falls back (reasoning,
// message, function_call), when a message follows a message, or when a second
// item carries token fields, since only one item of a turn does.
type itemRun struct {
	j       *fileReader
	r       *rollout.Rollout
	sampled rollout.Sampled
	open    bool // the last message is a model turn that may grow
	rank    int
	tokens  bool // the open turn has its token fields
}

func (x *itemRun) add(item value) error {
	i := len(x.r.Messages)
	if item.Kind() != jsonscan.Object {
		return x.j.want(item, rollout.At(i), "/output", "an item object")
	}
	kind := item.Get("type").String()
	role := item.Get("role").String()
	rank := 0
	switch {
	case kind == "function_call_output" || kind == "custom_tool_call_output":
		x.open = false
		m := rollout.Message{Role: rollout.RoleTool, ToolCallID: item.Get("call_id").String()}
		if err := x.j.content(&m, item.Get("output"), i); err != nil {
			return err
		}
		x.r.Messages = append(x.r.Messages, m)
		return nil
	case kind == "reasoning":
	case isCall(kind):
		rank = 2
	case role == "assistant":
		rank = 1
	case role != "" && (kind == "message" || kind == ""):
		x.open = false
		m := rollout.Message{Role: rollout.Role(role)}
		if err := x.j.content(&m, item.Get("content"), i); err != nil {
			return err
		}
		x.r.Messages = append(x.r.Messages, m)
		return nil
	default:
		x.open = x.open && !strings.HasSuffix(kind, "_output") // results end a turn
		x.j.note("item_unknown", rollout.At(i), "an item of type %q was left in the dump", kind)
		return nil
	}
	tok := tokensOf(item, 0)
	if !x.open || rank < x.rank || rank == 1 && x.rank == 1 || tok.Present && x.tokens {
		x.begin()
	}
	x.rank = rank
	last := len(x.r.Messages) - 1
	if _, err := x.j.addItem(&x.r.Messages[last], item, last); err != nil {
		return err
	}
	if tok.Present && x.sampled == rollout.SampledByPolicy {
		x.tokens = true
		x.j.take(&x.r.Turns[len(x.r.Turns)-1], tok, last)
	}
	return nil
}

func (x *itemRun) begin() {
	x.open, x.rank, x.tokens = true, 0, false
	x.r.Messages = append(x.r.Messages, rollout.Message{Role: rollout.RoleAssistant, Sampled: x.sampled})
	if x.sampled == rollout.SampledByPolicy {
		x.r.Turns = append(x.r.Turns, rollout.Turn{Message: len(x.r.Messages) - 1, Step: len(x.r.Turns)})
	}
}

// request adds what a model was given: instructions, and input as a text or as
// items.
func (x *itemRun) request(params value) error {
	if s, ok := params.Get("instructions").Text(); ok && s != "" {
		x.r.Messages = append(x.r.Messages, rollout.Message{Role: rollout.RoleSystem, Content: s})
	}
	switch input := params.Get("input"); input.Kind() {
	case jsonscan.String:
		x.r.Messages = append(x.r.Messages, rollout.Message{Role: rollout.RoleUser, Content: x.j.text(input, rollout.At(len(x.r.Messages)), "/input")})
	case jsonscan.Array:
		for _, item := range input.Items() {
			if err := x.add(item); err != nil {
				return err
			}
		}
	case jsonscan.Null, jsonscan.Absent:
	default:
		return x.j.want(input, 0, "/input", "a string or a list of items")
	}
	return nil
}

func readNeMoGym(j *fileReader, v value) error {
	response := v.Get("response")
	if params := v.Get("responses_create_params"); params.Kind() == jsonscan.Absent && response.Get("output").Kind() != jsonscan.Array {
		return j.want(params, 0, "/responses_create_params", "an object")
	}
	r, err := j.nemoCall(v.Get("responses_create_params"), response)
	if err != nil {
		return err
	}
	j.nemoIdentity(r, v)
	j.nemoOutcome(r, v, response)
	j.leftover(r, v, "responses_create_params", "response", "reward", "resolved", "model_patch", "_ng_task_index", "_ng_rollout_index", "instance_id")
	j.noteParts(r)
	j.orphans(r)
	return j.emit(r)
}

// nemoCall reads a request and what came of it: the items of all model calls and
// of the environment between them.
func (j *fileReader) nemoCall(params, response value) (*rollout.Rollout, error) {
	r := &rollout.Rollout{Index: noIndex, Turns: []rollout.Turn{}}
	x := &itemRun{j: j, r: r, sampled: rollout.SampledPrefilled}
	if err := x.request(params); err != nil {
		return nil, err
	}
	switch output := response.Get("output"); output.Kind() {
	case jsonscan.Array:
	case jsonscan.Null, jsonscan.Absent:
		j.note("no_output", 0, "the response has no output")
	default:
		return nil, j.want(output, 0, "/response/output", "a list of items")
	}
	output, err := j.lastTransition(response.Get("output"))
	if err != nil {
		return nil, err
	}
	given := len(r.Messages)
	x.open, x.sampled = false, rollout.SampledByPolicy
	for _, item := range output.Items() {
		if err := x.add(item); err != nil {
			return nil, err
		}
	}
	j.repeatedPrompt(r, given)
	// The response of a run ends as its last call did.
	lastEnded(r, response.Path("incomplete_details", "reason").String())
	r.Tools = functionTools(params.Get("tools"))
	r.Temperature = temperature(params.Get("temperature"))
	for i := range r.Turns {
		r.Turns[i].Sampling = samplingOf(params)
	}
	if len(r.Turns) == 1 { // of several calls usage is a sum, if it is one
		x.j.counted(&r.Turns[0], response)
	}
	return r, j.templateKwargs(r, params)
}

// lastTransition returns the list that holds the whole conversation when an
// output is a list of transitions, each of which repeats the conversation so far
// and adds a step to it. Other outputs pass.
func (j *fileReader) lastTransition(output value) (value, error) {
	last := output
	for i, next := range output.Items() {
		if next.Kind() != jsonscan.Array {
			return output, nil // what is wrong with later ones is said as of any item
		}
		if i > 0 && !begins(next, last) {
			return output, j.fail(0, "/response/output", "transition %d does not go on where the one before it ends, so what the model saw is not known", i)
		}
		last = next
	}
	return last, nil
}

// begins reports whether a list begins with all items of another.
func begins(list, start value) bool {
	if list.Len() < start.Len() {
		return false
	}
	var want []value
	for _, item := range start.Items() {
		want = append(want, item)
	}
	for i, item := range list.Items() {
		if i < len(want) && !bytes.Equal(item.Raw(), want[i].Raw()) {
			return false
		}
	}
	return true
}

// repeatedPrompt handles environments that write the messages given to them once
// more at the start of their output: the model saw them once.
func (j *fileReader) repeatedPrompt(r *rollout.Rollout, given int) {
	if given == 0 || len(r.Messages) < 2*given {
		return
	}
	for i := range given {
		if a, b := &r.Messages[i], &r.Messages[given+i]; a.Role == rollout.RoleAssistant || callDigest(a) != callDigest(b) {
			return
		}
	}
	j.note("prompt_repeated", rollout.At(given), "the output begins with the %d messages of the input; they count once", given)
	for i := range r.Turns {
		t := &r.Turns[i]
		t.Context.Parts = []rollout.ContextPart{{From: given, To: t.Message}}
	}
}

func (j *fileReader) nemoIdentity(r *rollout.Rollout, v value) {
	agent := firstWord(v.Path("agent_ref", "name").String(), v.Get("_ng_environment_server").String())
	r.Instance = firstID(v, "instance_id", "task_id", "problem_id", "id", "uuid")
	for _, m := range []value{v.Get("metadata"), v.Path("responses_create_params", "metadata")} {
		if r.Instance == "" {
			r.Instance = identifier(m.Get("instance_id"))
		}
	}
	if r.Instance == "" {
		r.Instance = identifier(v.Path("_ng_task_id", "task_id"))
	}
	task, n := v.Get("_ng_task_index"), v.Get("_ng_rollout_index")
	if task.IsNull() {
		return
	}
	r.Group = strings.TrimPrefix(agent+"/task-"+identifier(task), "/")
	given := v.Get("responses_create_params")
	j.task = taskOf(r.Instance, v.Get("_ng_task_id"), given.Get("instructions"), given.Get("input"))
	if i, ok := n.Int(); ok && i >= 0 {
		r.Index = i
		r.ID = r.Group + "/rollout-" + identifier(n)
	}
}

func (j *fileReader) nemoOutcome(r *rollout.Rollout, v, response value) {
	r.Outcome.Reward = j.reward(v.Get("reward"))
	r.Outcome.Resolved = j.resolved(v.Get("resolved"))
	r.Outcome.Submission = text(v.Get("model_patch"))
	if r.Outcome.Submission == nil {
		r.Outcome.Submission = text(v.Path("metadata", "model_patch"))
	}
	r.ExitStatus = response.Get("status").String()
	yes := func(key string) bool { b, _ := v.Get(key).Bool(); return b }
	r.Status = responseStatus(r.ExitStatus)
	switch {
	case yes("truncated") || yes("agent_timed_out") || yes("container_timed_out"):
		r.Status = rollout.StatusTruncated
	case r.Status == rollout.StatusUnknown && yes("terminated"):
		r.Status = rollout.StatusCompleted
	}
	if yes("mask_sample") {
		detail := firstWord(v.Get("error_kind").String(), v.Get("failure_kind").String(), v.Get("failure_class").String())
		r.Failure = &rollout.Failure{Reason: "masked_by_framework", Detail: detail}
		if r.Status == rollout.StatusCompleted {
			r.Status = rollout.StatusFailed
		}
		j.note("masked_by_framework", 0, "the framework dropped this sample (mask_sample)")
	}
}

// functionTools brings tool definitions of the Responses and Messages APIs into
// the shape chat templates expect; others are kept verbatim.
func functionTools(v value) []rollout.Tool {
	var out []rollout.Tool
	for _, t := range v.Items() {
		if t.Get("function").Kind() == jsonscan.Object || t.Get("name").Kind() != jsonscan.String {
			out = append(out, definition(t))
			continue
		}
		b := []byte(`{"type":"function","function":{`)
		comma := ""
		for key, x := range t.Members() {
			switch key {
			case "type", "cache_control":
				continue
			case "input_schema":
				key = "parameters"
			}
			if x.IsNull() {
				continue
			}
			b = append(append(append(append(b, comma...), quote(key)...), ':'), x.Clone()...)
			comma = ","
		}
		out = append(out, append(b, "}}"...))
	}
	return out
}
