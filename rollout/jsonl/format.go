package jsonl

import (
	"encoding/json"
	"strconv"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// version is the format version that is written, and the newest version that is read.
const version = 1

type raws = map[string]json.RawMessage

// anyObject is an object without known keys: every key goes to the map.
var anyObject = newObject(func(m *raws) *raws { return m })

var rolloutObject = newObject(rolloutExtra,
	field[rollout.Rollout]{key: "turnpack_version", own: true,
		read: func(d *decoder, _ *rollout.Rollout, v jsonscan.Value, at string) bool {
			if n := d.integer(v, at); n != version {
				d.fail(rollout.KindFormat, v, at, "version is %d, this build reads %d", n, version)
			}
			return true
		},
		write: func(e *encoder, _ *rollout.Rollout, _ string) bool {
			e.key("turnpack_version")
			e.int(version)
			return true
		}},
	value("id", func(r *rollout.Rollout) *string { return &r.ID }, codec[string]{
		func(d *decoder, _ jsonscan.Value, _ string) string { return d.where.Rollout }, (*encoder).text}),
	value("group", func(r *rollout.Rollout) *string { return &r.Group }, names),
	value("index", func(r *rollout.Rollout) *int { return &r.Index }, integers),
	value("instance", func(r *rollout.Rollout) *string { return &r.Instance }, names),
	messagesField(),
	present("tools", func(r *rollout.Rollout) *[]rollout.Tool { return &r.Tools }, func(l []rollout.Tool) bool { return l == nil }, codec[[]rollout.Tool]{
		func(d *decoder, v jsonscan.Value, at string) []rollout.Tool {
			out := []rollout.Tool{}
			d.list(v, at, d.lim.Messages, func(_ int, m jsonscan.Value) { out = append(out, m.Clone()) })
			return out
		},
		func(e *encoder, l []rollout.Tool, at string) {
			e.list(len(l), func(i int) { e.raw(l[i], at+"/"+strconv.Itoa(i)) })
		}}),
	turnsField(),
	inner("outcome", false, func(r *rollout.Rollout) *rollout.Outcome { return &r.Outcome }, func(r *rollout.Rollout) *rollout.Outcome {
		if _, more := r.Extra["outcome"]; r.Outcome == (rollout.Outcome{}) && !more {
			return nil
		}
		return &r.Outcome
	}, outcomeObject, rolloutExtra),
	value("status", func(r *rollout.Rollout) *rollout.Status { return &r.Status }, enumCodec[rollout.Status]()),
	filled("exit_status", func(r *rollout.Rollout) *string { return &r.ExitStatus }),
	inner("failure", true, func(r *rollout.Rollout) *rollout.Failure {
		r.Failure = &rollout.Failure{}
		return r.Failure
	}, func(r *rollout.Rollout) *rollout.Failure { return r.Failure }, newObject(nil,
		value("reason", func(f *rollout.Failure) *string { return &f.Reason }, texts),
		value("detail", func(f *rollout.Failure) *string { return &f.Detail }, texts),
	), rolloutExtra),
	list("steps", func(r *rollout.Rollout) *[]rollout.StepScore { return &r.Steps }, func(l *Limits) int { return l.Turns }, stepObject),
	pointer("temperature", func(r *rollout.Rollout) **float32 { return &r.Temperature }, float32s),
	mapField("template_kwargs", func(r *rollout.Rollout) *raws { return &r.TemplateKwargs }),
	mapField("metadata", func(r *rollout.Rollout) *raws { return &r.Metadata }),
	list("notes", func(r *rollout.Rollout) *[]rollout.Note { return &r.Notes }, func(*Limits) int { return 0 }, noteObject),
	inner("origin", false, func(r *rollout.Rollout) *rollout.Origin { return &r.Origin }, func(r *rollout.Rollout) *rollout.Origin {
		if r.Origin == (rollout.Origin{}) {
			return nil
		}
		return &r.Origin
	}, newObject(nil,
		value("file", func(o *rollout.Origin) *string { return &o.File }, texts),
		value("line", func(o *rollout.Origin) *int { return &o.Line }, integers),
		value("index", func(o *rollout.Origin) *int { return &o.Index }, integers),
		value("format", func(o *rollout.Origin) *string { return &o.Format }, texts),
	), rolloutExtra),
)

func rolloutExtra(r *rollout.Rollout) *raws { return &r.Extra }

var outcomeObject = newObject(nil,
	pointer("resolved", func(o *rollout.Outcome) **bool { return &o.Resolved }, booleans),
	pointer("reward", func(o *rollout.Outcome) **float64 { return &o.Reward }, floats),
	value("verdict", func(o *rollout.Outcome) *rollout.Verdict { return &o.Verdict }, enumCodec[rollout.Verdict]()),
	value("reason", func(o *rollout.Outcome) *string { return &o.Reason }, texts),
	pointer("submission", func(o *rollout.Outcome) **string { return &o.Submission }, texts),
)

var stepObject = newObject(func(s *rollout.StepScore) *raws { return &s.Extra },
	always("step", func(s *rollout.StepScore) *int { return &s.Step }, integers),
	optional("score", func(s *rollout.StepScore) **float64 { return &s.Score }, floats),
	list("votes", func(s *rollout.StepScore) *[]rollout.Vote { return &s.Votes }, func(*Limits) int { return 0 }, newObject(nil,
		value("text", func(v *rollout.Vote) *string { return &v.Text }, texts),
		optional("score", func(v *rollout.Vote) **float64 { return &v.Score }, floats),
		value("error", func(v *rollout.Vote) *string { return &v.Error }, texts),
		value("latency_ms", func(v *rollout.Vote) *int64 { return &v.Millis }, int64s),
		value("tokens", func(v *rollout.Vote) *int { return &v.Tokens }, integers),
	)),
	value("reason", func(s *rollout.StepScore) *string { return &s.Reason }, texts),
)

var noteObject = newObject(nil,
	value("code", func(n *rollout.Note) *string { return &n.Code }, texts),
	value("message", func(n *rollout.Note) *rollout.Index { return &n.Message }, indices),
	value("text", func(n *rollout.Note) *string { return &n.Text }, texts),
)

var indices = codec[rollout.Index]{
	func(d *decoder, v jsonscan.Value, at string) rollout.Index { return rollout.At(d.integer(v, at)) },
	func(e *encoder, x rollout.Index, _ string) { i, _ := x.Get(); e.int(int64(i)) },
}

// mapField is an object whose members are kept verbatim.
func mapField(key string, of func(*rollout.Rollout) *raws) field[rollout.Rollout] {
	return present(key, of, func(m raws) bool { return m == nil }, codec[raws]{(*decoder).values, (*encoder).object})
}

// messagesField is the list of messages, which is always written. Errors name the message
// by its index.
func messagesField() field[rollout.Rollout] {
	f := entries("messages", func(r *rollout.Rollout) *[]rollout.Message { return &r.Messages }, func(l *Limits) int { return l.Messages },
		func(w *rollout.Where) *rollout.Index { return &w.Message }, func(int, jsonscan.Value) (m rollout.Message) { return m }, func(*rollout.Message) *object[rollout.Message] { return messageObject })
	read, write := f.read, f.write
	f.read = func(d *decoder, r *rollout.Rollout, v jsonscan.Value, at string) bool {
		for _, m := range v.Items() {
			d.marked = append(d.marked, m.Get("sampled").Kind() != jsonscan.Absent)
		}
		return read(d, r, v, at)
	}
	f.write = func(e *encoder, r *rollout.Rollout, at string) bool {
		if r.Messages == nil {
			e.key("messages")
			e.list(0, nil)
		}
		return write(e, r, at)
	}
	return f
}

// turnsField is the list of turns. Errors name the turn by its index.
func turnsField() field[rollout.Rollout] {
	f := entries("turns", func(r *rollout.Rollout) *[]rollout.Turn { return &r.Turns }, func(l *Limits) int { return l.Turns },
		func(w *rollout.Where) *rollout.Index { return &w.Turn }, func(i int, _ jsonscan.Value) rollout.Turn { return rollout.Turn{Message: -1, Step: i} }, func(*rollout.Turn) *object[rollout.Turn] { return turnObject })
	read := f.read
	f.read = func(d *decoder, r *rollout.Rollout, v jsonscan.Value, at string) bool {
		r.Turns = []rollout.Turn{}
		return read(d, r, v, at)
	}
	return f
}
