package calls

import (
	"cmp"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Batch reads the inputs and results of the batch APIs of OpenAI and Anthropic. A result
// refers to its request by custom_id alone, so the requests must be read first.
func Batch() format.Importer {
	return format.Importer{Name: "batch", Match: isBatch, Read: readBatch, Call: true}
}

func isBatch(v format.Value, _ *format.File) bool {
	if v.Get("custom_id").Kind() != jsonscan.String {
		first := v.Get("requests").First()
		return first.Get("custom_id").Kind() == jsonscan.String && first.Get("params").Kind() == jsonscan.Object
	}
	return isBatchRequest(v) || v.Path("response", "body").Kind() == jsonscan.Object || v.Get("error").Kind() == jsonscan.Object ||
		v.Path("result", "type").Kind() == jsonscan.String
}

func isBatchRequest(v format.Value) bool {
	return v.Get("body").Kind() == jsonscan.Object || v.Get("params").Kind() == jsonscan.Object
}

// batchRequests holds the requests read so far, by custom_id, until a result takes them.
type batchRequests struct{ byID map[string][]byte }

func readBatch(in *format.File, v format.Value) error {
	asked := format.Remembered[batchRequests](in.OfReader)
	if list := v.Get("requests"); list.Kind() == jsonscan.Array {
		for _, x := range list.Items() {
			if err := keepRequest(in, asked, x); err != nil {
				return err
			}
		}
		return nil
	}
	if isBatchRequest(v) {
		return keepRequest(in, asked, v)
	}
	id := v.Get("custom_id").String()
	for _, why := range []format.Value{v.Get("error"), v.Path("response", "body", "error"), v.Path("result", "error", "error"), v.Path("result", "error")} {
		if why.Kind() == jsonscan.Object {
			return in.Fail(0, "/error", "request %q was answered by an error, so there is no reply: %s", id, cmp.Or(why.Get("message").String(), why.Get("code").String(), why.Get("type").String()))
		}
	}
	body := v.Path("response", "body")
	message := v.Path("result", "message")
	if body.IsNull() && message.Kind() != jsonscan.Object {
		return in.Fail(0, "/result", "request %q has no reply: it was %s", id, cmp.Or(v.Path("result", "type").String(), "not answered"))
	}
	text, there := asked.byID[id]
	if !there {
		in.Note("request_not_read", 0, "the request %q was not read before its result: name the file of the requests first", id)
		text = []byte(`{"messages":[],"input":[]}`)
	}
	delete(asked.byID, id)
	request, err := in.Parse(text)
	if err != nil {
		return in.Fail(0, "/custom_id", "the request %q cannot be read again: %s", id, err)
	}
	switch {
	case message.Kind() == jsonscan.Object:
		return readMessages(in, id, request, message)
	case body.Get("output").Kind() == jsonscan.Array:
		return readResponses(in, id, request, request, body)
	case body.Get("choices").Kind() == jsonscan.Array && request.Get("messages").Kind() == jsonscan.Array:
		return readCompletion(in, id, request.Get("messages"), request.Get("tools"), request, body)
	}
	return in.Fail(0, "/response/body", "the result is none of chat completions, responses or messages")
}

func keepRequest(in *format.File, asked *batchRequests, v format.Value) error {
	id := v.Get("custom_id").String()
	params := v.Get("body")
	if params.IsNull() {
		params = v.Get("params")
	}
	if id == "" || params.Kind() != jsonscan.Object {
		return in.Fail(0, "/custom_id", "a request of a batch has a custom_id and a body or params")
	}
	if asked.byID == nil {
		asked.byID = map[string][]byte{}
	}
	asked.byID[id] = params.Clone()
	return nil
}
