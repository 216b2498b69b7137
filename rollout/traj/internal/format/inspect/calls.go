package inspect

import (
	"cmp"
	"hash/maphash"
	"iter"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// sampleRun adds to the turns of a sample what its model events recorded: the exact input
// of the call, tools, settings and finish reason. Events and messages are joined by message
// id; early logs have no ids, and their turns keep the plain history.
type sampleRun struct {
	in    *format.File
	r     *rollout.Rollout
	refs  attachments
	ids   []string       // ids of the messages
	index map[string]int // id → message
	pool  []format.Value // messages that events refer to by index
	// shown holds the messages of inputs by a hash of their text, so that each is read
	// once.
	shown map[uint64]*rollout.Message
	seed  maphash.Seed
}

func (x *sampleRun) events(sample format.Value) error {
	x.seed, x.shown, x.index = maphash.MakeSeed(), map[uint64]*rollout.Message{}, map[string]int{}
	for i, id := range x.ids {
		if id != "" {
			x.index[id] = i
		}
	}
	for _, pool := range []format.Value{sample.Get("message_pool"), sample.Path("events_data", "messages")} {
		x.in.ListOrNull(pool, 0, "/events_data/messages")
		x.pool = append(x.pool, format.Elements(pool)...)
	}
	for _, key := range [][]string{{"events"}, {"transcript", "events"}} {
		x.in.ListOrNull(sample.Path(key...), 0, "/events")
	}
	for e := range modelEvents(sample) {
		if err := x.restore(e); err != nil {
			return err
		}
	}
	return x.turns(sample)
}

// modelEvents yields the model calls of a sample.
func modelEvents(sample format.Value) iter.Seq[format.Value] {
	return func(yield func(format.Value) bool) {
		for _, events := range []format.Value{sample.Get("events"), sample.Path("transcript", "events")} {
			for _, e := range events.Items() {
				if e.Get("event").Is("model") && !yield(e) {
					return
				}
			}
		}
	}
}

// turns adds the recorded events to the turns.
func (x *sampleRun) turns(sample format.Value) error {
	first, known := true, false // no event yet; an event of a turn was read
	for e := range modelEvents(sample) {
		call := rollout.Rollout{Tools: format.FunctionTools(x.refs.resolve(e.Get("tools"))), Temperature: format.Temperature(e.Path("config", "temperature"))}
		x.in.TemplateKwargs(&call, e.Get("config"))
		t, choice := x.turnOf(e)
		// Events without a turn are calls of graders or other agents, or from a log that
		// does not say whose they are.
		if first || t != nil && !known {
			x.r.Tools, x.r.Temperature, x.r.TemplateKwargs = call.Tools, call.Temperature, call.TemplateKwargs
		}
		first, known = false, known || t != nil
		if t == nil {
			continue
		}
		if err := x.call(e, t, choice, &call); err != nil {
			return err
		}
	}
	return nil
}

// turnOf returns the turn of a model event, nil if none, and its choice.
func (x *sampleRun) turnOf(e format.Value) (*rollout.Turn, format.Value) {
	choice := format.FirstChoice(e.Get("output"))
	id := choice.Path("message", "id").String()
	message, known := x.index[id]
	if !known || id == "" {
		return nil, choice
	}
	for i := range x.r.Turns {
		if x.r.Turns[i].Message == message {
			return &x.r.Turns[i], choice
		}
	}
	return nil, choice
}

// call adds an event to turn t; made holds what the call was given besides messages.
func (x *sampleRun) call(e format.Value, t *rollout.Turn, choice format.Value, made *rollout.Rollout) error {
	t.FinishReason = choice.Get("stop_reason").String()
	t.Sampling = format.SamplingOf(e.Get("config"))
	response := e.Path("call", "response")
	if response.Kind() != jsonscan.Object {
		response = e.Get("output") // it has no token ids
	}
	t.ID = cmp.Or(response.Get("id").String(), e.Path("output", "response_id").String())
	x.in.Capture(t, response, t.Message)
	input, whole := x.input(e)
	if !whole {
		t.Context = rollout.Context{Unknown: true}
		x.in.Note("input_missing", rollout.At(t.Message), "the call refers to messages that the log does not hold: what the model saw is not known")
		return nil
	}
	if err := x.context(t, input); err != nil {
		return err
	}
	if n, is := format.OtherSettings(cmp.Or(t.ID, x.ids[t.Message]), made, x.r); is {
		t.Context = rollout.Context{Unknown: true}
		x.in.Note(n.Code, rollout.At(t.Message), "%s", n.Text)
	}
	return nil
}

// input returns the messages of a call, given inline or as ranges of the pool. whole is
// false if the pool lacks some.
func (x *sampleRun) input(e format.Value) (out []format.Value, whole bool) {
	for _, key := range []string{"input", "input_refs"} {
		if v := e.Get(key); !v.IsNull() && v.Kind() != jsonscan.Array {
			return nil, false
		}
	}
	out = format.Elements(e.Get("input"))
	for _, ref := range e.Get("input_refs").Items() {
		var ends []int
		for _, n := range ref.Items() {
			if k, ok := n.Int(); ok {
				ends = append(ends, k)
			}
		}
		if len(ends) != 2 || ends[0] < 0 || ends[1] < ends[0] || ends[1] > len(x.pool) {
			return nil, false
		}
		out = append(out, x.pool[ends[0]:ends[1]]...)
	}
	return out, true
}

// context sets the context of the call: ranges of the messages, and messages shown in place
// where they differ.
func (x *sampleRun) context(t *rollout.Turn, input []format.Value) error {
	if len(input) == 0 {
		return nil
	}
	var parts []rollout.ContextPart
	for _, v := range input {
		m, err := x.message(v, t.Message)
		if err != nil {
			return err
		}
		k, known := x.index[v.Get("id").String()]
		switch {
		case known && k < t.Message && m.Reasoning == x.r.Messages[k].Reasoning && format.RenderedDigest(m) == format.RenderedDigest(&x.r.Messages[k]):
			parts = format.AppendRange(parts, k)
		case known && k < t.Message:
			parts = append(parts, rollout.ContextPart{From: k, To: k + 1, Message: m})
		default:
			at := 0
			if n := len(parts); n > 0 {
				at = parts[n-1].To
			}
			parts = append(parts, rollout.ContextPart{From: at, To: at, Message: m})
		}
	}
	if len(parts) != 1 || parts[0].From != 0 || parts[0].To != t.Message || parts[0].Message != nil {
		t.Context = rollout.Context{Parts: parts}
	}
	return nil
}

func (x *sampleRun) message(v format.Value, i int) (*rollout.Message, error) {
	var h maphash.Hash
	h.SetSeed(x.seed)
	h.Write(v.Raw())
	if m, ok := x.shown[h.Sum64()]; ok {
		return m, nil
	}
	m, err := readMessage(x.in, x.refs.resolve(v), i)
	if err != nil {
		return nil, err
	}
	x.shown[h.Sum64()] = &m
	return &m, nil
}

// failed reports whether a result has an error, which a model is shown instead of the
// content.
func failed(m *rollout.Message) bool {
	return m.Role == rollout.RoleTool && strings.HasPrefix(string(m.Extra["error"]), "{")
}

// loseErrors leaves the contexts unknown that hold a failed result.
func (x *sampleRun) loseErrors() {
	before := make([]int, len(x.r.Messages)+1) // failed results before a message
	for i := range x.r.Messages {
		before[i+1] = before[i]
		if failed(&x.r.Messages[i]) {
			before[i+1]++
		}
	}
	for i := range x.r.Turns {
		c := &x.r.Turns[i].Context
		lost := c.Parts == nil && before[x.r.Turns[i].Message] > 0
		for _, p := range c.Parts {
			lost = lost || p.Message != nil && failed(p.Message) || p.Message == nil && before[p.To] > before[p.From]
		}
		if lost {
			*c = rollout.Context{Unknown: true}
		}
	}
}

// messages reads the messages of a sample.
func (x *sampleRun) messages(list format.Value) error {
	if list.Kind() != jsonscan.Array {
		return x.in.Want(list, 0, "/messages", "a list of messages")
	}
	for i, v := range list.Items() {
		m, err := readMessage(x.in, x.refs.resolve(v), i)
		if err != nil {
			return err
		}
		x.r.Messages = append(x.r.Messages, m)
		x.ids = append(x.ids, v.Get("id").String())
	}
	x.r.Turns = format.TurnsOf(x.r.Messages)
	return nil
}
