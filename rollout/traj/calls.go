package traj

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// JoinCalls makes one rollout of recorded model calls of one run, in order, each
// as read from a completion log or an exchange: its request as messages and one
// sampled reply. Every call becomes a turn whose context is exactly its request,
// as ranges of a message list in which each distinct message occurs once; a
// reply that later requests repeat stays the one sampled message it was. So
// condensed, edited and forked histories keep what the model saw.
//
// Identity, tools and template variables are those of the first call. Each turn
// keeps the settings it was sampled with; where temperatures differ the rollout has
// none, and a note says so. It returns a KindInput error when a rollout is not one
// call.
func JoinCalls(calls []*rollout.Rollout) (*rollout.Rollout, error) {
	if len(calls) == 0 {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{}, "no calls to join")
	}
	for _, c := range calls {
		if c == nil {
			return nil, c.Check()
		}
	}
	out := *calls[0]
	out.Messages, out.Turns, out.Notes = nil, []rollout.Turn{}, nil
	var index rollout.PromptIndex
	j := newCallJoin(&out)
	for i, c := range calls {
		if len(c.Turns) != 1 || c.Turns[0].Message != len(c.Messages)-1 {
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: c.Origin.File, Rollout: c.ID}, "the rollout has %d turns, expected one call whose reply comes last", len(c.Turns))
		}
		t := c.Turns[0]
		t.Step = i
		t.Sampling = ownSampling(c)
		t.Context.Unknown = t.Context.Unknown || j.foreign(t.ID, c)
		prompt, err := c.PromptTokens(nil, 0)
		if err != nil {
			return nil, err
		}
		t.Prompt = index.Add(prompt, t.Output)
		j.call(c.Messages, []rollout.Turn{t})
		for _, n := range c.Notes {
			n.Message = 0
			out.Notes = append(out.Notes, n)
		}
	}
	settleSampling(&out)
	last := calls[len(calls)-1]
	out.Outcome, out.Status, out.ExitStatus = last.Outcome, last.Status, last.ExitStatus
	return &out, nil
}

type callJoin struct {
	out *rollout.Rollout
	at  map[[16]byte][]int // digest of a message → where it occurs
	// shown are messages as requests repeat them with other reasoning than the
	// reply had, mostly none.
	shown map[reasoned]*rollout.Message
}

type reasoned struct {
	at        int
	reasoning string
}

func newCallJoin(out *rollout.Rollout) *callJoin {
	return &callJoin{out: out, at: map[[16]byte][]int{}, shown: map[reasoned]*rollout.Message{}}
}

// foreign reports whether a call was given other tools or template variables than
// the first, with which the run is rendered, and notes it.
func (j *callJoin) foreign(call string, c *rollout.Rollout) bool {
	n, is := foreign(call, c, j.out)
	if is {
		j.out.Notes = append(j.out.Notes, n)
	}
	return is
}

// foreign reports whether a call was given other tools or template variables than
// run has, and how to note it.
func foreign(call string, c, run *rollout.Rollout) (n rollout.Note, is bool) {
	same := func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }
	switch {
	case !slices.EqualFunc(c.Tools, run.Tools, same):
		n.Code, n.Text = "tools_differ", fmt.Sprintf("call %q was given %d tools that are not those of the first call", call, len(c.Tools))
	case !maps.EqualFunc(c.TemplateKwargs, run.TemplateKwargs, same):
		n.Code, n.Text = "template_kwargs_differ", fmt.Sprintf("call %q was made with other chat-template variables than the first call", call)
	default:
		return n, false
	}
	n.Text += ": what it saw cannot be rendered"
	return n, true
}

// call adds the messages before the first turn, the request, where they are not
// in the list, and all from there on.
func (j *callJoin) call(messages []rollout.Message, turns []rollout.Turn) {
	var parts []rollout.ContextPart
	used := map[int]bool{}
	next := 0 // the message expected if the history simply goes on
	request := turns[0].Message
	for i := range messages {
		k := len(j.out.Messages)
		if i < request {
			k = j.find(&messages[i], next, used)
		} else {
			j.add(&messages[i])
		}
		if len(turns) > 0 && turns[0].Message == i {
			j.turn(turns[0], k, parts)
			turns = turns[1:]
		}
		used[k] = true
		next = k + 1
		if messages[i].Reasoning == j.out.Messages[k].Reasoning {
			parts = extend(parts, k)
		} else {
			parts = append(parts, rollout.ContextPart{From: k, To: k + 1, Message: j.show(&messages[i], k)})
		}
	}
}

// show is message k as a request repeats it.
func (j *callJoin) show(m *rollout.Message, k int) *rollout.Message {
	key := reasoned{k, m.Reasoning}
	if j.shown[key] == nil {
		c := *m // not a place in the request, which would be kept for it
		j.shown[key] = &c
	}
	return j.shown[key]
}

// turn adds the turn of message k, which saw parts of the list, unless its
// request is not all that it saw.
func (j *callJoin) turn(t rollout.Turn, k int, parts []rollout.ContextPart) {
	t.Message = k
	t.Context = rollout.Context{Unknown: t.Context.Unknown}
	if history := len(parts) == 1 && parts[0].From == 0 && parts[0].To == k && parts[0].Message == nil; !history && !t.Context.Unknown {
		t.Context.Parts = slices.Clone(parts)
	}
	j.out.Turns = append(j.out.Turns, t)
}

// find returns where a message of a request is in the list, adding it when it is
// new. Of equal ones the expected place is taken, else the first not used by
// this request.
func (j *callJoin) find(m *rollout.Message, next int, used map[int]bool) int {
	places := j.at[callDigest(m)]
	if slices.Contains(places, next) && !used[next] {
		return next
	}
	for _, k := range places {
		if !used[k] {
			return k
		}
	}
	return j.add(m)
}

func (j *callJoin) add(m *rollout.Message) int {
	d := callDigest(m)
	k := len(j.out.Messages)
	j.at[d] = append(j.at[d], k)
	j.out.Messages = append(j.out.Messages, *m)
	return k
}

// callDigest tells messages apart by what a template would render, so that a
// reply and its repetition in a later request are equal although one is a string
// and the other a list of one text.
func callDigest(m *rollout.Message) [16]byte {
	c := *m
	c.Content = c.Content + "\x00" + c.ToolCallID
	for _, p := range c.Parts {
		if !p.IsText() {
			c.Content += "\x00" + string(p.Raw)
		}
	}
	return digest([]rollout.Message{c})
}

// callFormats are the importers whose records are single calls.
var callFormats = []string{"llm-completion-log", "openai-wire", "anthropic-messages"}

// callRun is the run that calls are collected for.
type callRun struct {
	folder, task string
	calls        []*rollout.Rollout
	reader       *fileReader
}

// joins reports whether the calls of the record's format are joined.
func (j *fileReader) joins() bool {
	return j.r.opt.JoinCalls && slices.Contains(callFormats, j.imp.name)
}

// collect takes a call when Options.JoinCalls asks for it and reports whether it
// did. Calls belong together while their files lie in one folder and the first
// message of a user is the same.
func (j *fileReader) collect(r *rollout.Rollout) (bool, error) {
	rd := j.r
	if !j.joins() {
		return false, nil
	}
	folder, task := filepath.Dir(j.file.Name), ""
	for i := range r.Messages {
		if r.Messages[i].Role == rollout.RoleUser {
			task = r.Messages[i].Content
			break
		}
	}
	if run := rd.calls; run != nil && (run.folder != folder || run.task != task) {
		if err := rd.flushCalls(); err != nil {
			return true, err
		}
	}
	if rd.calls == nil {
		rd.calls = &callRun{folder: folder, task: task, reader: &fileReader{r: rd, file: j.file, where: j.where, imp: j.imp, joined: true}}
	}
	r.Notes = append(r.Notes, j.notes...)
	j.notes = nil
	r.Origin = rollout.Origin{File: j.file.Name, Line: j.where.Line, Format: j.imp.name}
	rd.calls.calls = append(rd.calls.calls, r)
	return true, nil
}

// flushCalls emits the run collected so far.
func (rd *Reader) flushCalls() error {
	run := rd.calls
	if run == nil {
		return nil
	}
	rd.calls = nil
	r, err := JoinCalls(run.calls)
	if err != nil {
		return rd.failed(err)
	}
	run.reader.note("calls_joined", 0, "%d recorded calls were joined to one run", len(run.calls))
	if err := run.reader.emit(r); err != nil {
		return rd.failed(run.reader.locate(err))
	}
	return nil
}
