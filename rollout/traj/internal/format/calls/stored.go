package calls

import (
	"bytes"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Stored reads responses in the form in which the API stores them: alone, without the
// request, or beside its input_items.
func Stored() format.Importer {
	return format.Importer{Name: "stored-response", Match: isStored, Read: readStored, Call: true, Stateless: true}
}

func isStored(v format.Value, _ *format.File) bool {
	if v.Get("request").Kind() != jsonscan.Absent {
		return false
	}
	if v.Get("object").Is("response") {
		return v.Get("output").Kind() == jsonscan.Array
	}
	return v.Path("response", "object").Is("response") && v.Get("input_items").Kind() != jsonscan.Absent
}

func readStored(in *format.File, v format.Value) error {
	response, given := v, v.Get("input_items")
	if inner := v.Get("response"); inner.Kind() == jsonscan.Object {
		response = inner
	}
	more := given.Get("has_more").True()
	if list := given.Get("data"); list.Kind() == jsonscan.Array {
		given = list
	}
	if !given.IsNull() && given.Kind() != jsonscan.Array {
		return in.Want(given, 0, "/input_items", "a list of items")
	}
	items, known := inOrder(format.Elements(given))
	switch {
	case given.IsNull():
		known = false
		in.Note("request_not_read", 0, "a stored response does not hold what it answered: keep its input_items beside it")
	case more:
		known = false
		in.Note("request_not_read", 0, "the list of input_items has more pages: keep all of them")
	case !known:
		in.Note("request_not_read", 0, "the items do not tell whether they are listed from the oldest or from the newest: list them with order=asc, after instructions or with calls")
	}
	var input [][]byte
	var request format.Object
	switch said := response.Get("instructions"); said.Kind() {
	case jsonscan.String:
		request.Raw("instructions", said.Clone())
	case jsonscan.Array:
		for _, x := range said.Items() {
			input = append(input, x.Clone())
		}
	}
	for _, x := range items {
		input = append(input, x.Clone())
	}
	request.Raw("input", format.Array(input))
	for _, key := range []string{"tools", "previous_response_id"} {
		if x := response.Get(key); !x.IsNull() {
			request.Raw(key, x.Clone())
		}
	}
	if !known && response.Get("previous_response_id").IsNull() {
		request.Text("previous_response_id", "")
	}
	params, err := in.Parse(bytes.TrimSpace(request.End()))
	if err != nil {
		return in.Fail(0, "/input_items", "the items cannot be read again: %s", err)
	}
	if status := response.Get("status").Word(); status == "failed" || status == "in_progress" || status == "queued" {
		return in.Fail(rollout.At(len(input)), "/status", "the response is %s, so that there is no reply", status)
	}
	return readResponses(in, "", params, response, response)
}

// inOrder returns the items oldest first; known is false if the order is unclear. The API
// lists the newest first by default: calls and results, and the place of the instructions,
// show the order.
func inOrder(items []format.Value) (list []format.Value, known bool) {
	if len(items) < 2 {
		return items, true
	}
	calls, oldest, newest := map[string]int{}, false, false
	for i, x := range items {
		if x.Get("type").Is("function_call") || x.Get("type").Is("custom_tool_call") {
			calls[x.Get("call_id").String()] = i
		}
	}
	for i, x := range items {
		k, there := calls[x.Get("call_id").String()]
		switch {
		case there && (x.Get("type").Is("function_call_output") || x.Get("type").Is("custom_tool_call_output")):
			oldest, newest = oldest || k < i, newest || k > i
		case x.Get("role").Is("system") || x.Get("role").Is("developer"):
			oldest, newest = oldest || i == 0, newest || i == len(items)-1
		}
	}
	if oldest == newest {
		return items, false
	}
	if newest {
		back := make([]format.Value, 0, len(items))
		for i := len(items) - 1; i >= 0; i-- {
			back = append(back, items[i])
		}
		items = back
	}
	return items, true
}
