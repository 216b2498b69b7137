// Package record is the records of a journal: what each says, as bytes and back.
package record

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"sync"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/live/internal/secrets"
	"github.com/turnpack/turnpack/rollout/live/internal/segment"
)

// The kinds of records, part of the file format.
const (
	Start     = "start"     // of a session
	Intent    = "intent"    // a call, before it is sent
	Reply     = "reply"     // the end of a call, whatever its state
	Mark      = "mark"      // another state of a call that ended
	End       = "end"       // of a session
	Group     = "group"     // a group that is complete
	Delivered = "delivered" // a batch that a trainer has
	Moved     = "moved"     // all records of a rollout, or of the groups, again: those before are not needed
)

// Entry is one record: a head, what the native format can say as a rollout (messages,
// a turn, an ending), and the opaque blob of a call.
type Entry struct {
	Kind     string          `json:"kind"`
	Session  string          `json:"session,omitempty"`
	Run      string          `json:"run,omitempty"` // of a session with a parent: the rollout
	Parent   string          `json:"parent,omitempty"`
	Agent    string          `json:"agent,omitempty"`
	Call     string          `json:"call,omitempty"`
	Replaces string          `json:"replaces,omitempty"`
	Dialect  string          `json:"dialect,omitempty"`
	Engine   string          `json:"engine,omitempty"`
	Settings json.RawMessage `json:"settings,omitempty"`
	State    string          `json:"state,omitempty"`
	Why      string          `json:"why,omitempty"`
	// OtherTools: the call is given other tools or template variables than the first.
	OtherTools bool     `json:"other_tools,omitempty"`
	At         int64    `json:"at"`              // nanoseconds since 1970
	First      int64    `json:"first,omitempty"` // nanoseconds from the intent to the first id
	Took       int64    `json:"took,omitempty"`  // nanoseconds from the intent to here
	Base       int      `json:"base,omitempty"`  // turn whose ids the prompt keeps, with Keep
	Keep       int      `json:"keep,omitempty"`
	Usage      *Usage   `json:"usage,omitempty"`
	Group      string   `json:"group,omitempty"`
	Digest     string   `json:"digest,omitempty"`
	Sessions   []string `json:"sessions,omitempty"`

	Body *rollout.Rollout `json:"-"`
	Blob []byte           `json:"-"`
	From segment.Place    `json:"-"` // where it stands in the journal
	Size int              `json:"-"` // about what it takes in memory
	Disk int              `json:"-"` // what it takes in the journal
}

// Usage is what the engine counted.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens,omitempty"`
	CompletionTokens int `json:"completion_tokens,omitempty"`
}

// Encode writes, after the room for a frame,
//
//	uvarint length of the head, head (JSON), uvarint length of the rollout, rollout
//	(native JSON), blob
func (e *Entry) Encode(limitBytes int) ([]byte, error) {
	if err := e.Scrub(); err != nil {
		return nil, err
	}
	r := rooms.Get().(*room)
	defer r.free()
	head, body := &r.head, r.body[:0]
	enc := json.NewEncoder(head)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: e.Session}, "it cannot be recorded: %w", err)
	}
	if e.Body != nil {
		var err error
		if body, err = jsonl.Append(body, e.Body); err != nil {
			return nil, err
		}
		r.body = body
	}
	if n := head.Len() + len(body); limitBytes > 0 && n > limitBytes {
		return nil, TooLong(e.Kind, n, limitBytes)
	}
	out := make([]byte, segment.FrameHead, segment.FrameHead+2*binary.MaxVarintLen64+head.Len()+len(body)+len(e.Blob))
	out = binary.AppendUvarint(out, uint64(head.Len()))
	out = append(out, head.Bytes()...)
	out = binary.AppendUvarint(out, uint64(len(body)))
	out = append(out, body...)
	return append(out, e.Blob...), nil
}

// room is memory for one record at a time.
type room struct {
	head bytes.Buffer
	body []byte
	doc  jsonscan.Doc // of head
}

var rooms = sync.Pool{New: func() any { return new(room) }}

// most is how many bytes of a part are kept room for.
const most = 64 << 10

func (r *room) free() {
	if r.head.Cap() <= most && cap(r.body) <= most {
		r.head.Reset()
		rooms.Put(r)
	}
}

// TooLong is the error of a record beyond Options.MaxBytes.
func TooLong(kind string, size, most int) error {
	return rollout.Errorf(rollout.KindLimit, rollout.Where{Field: "MaxBytes"}, "the record of the %s takes %d bytes, at most %d are allowed", kind, size, most).
		WithFix("raise Options.MaxBytes, or ask for less")
}

// perRecord is about what a record takes in memory besides its bytes: with maps, lists and
// the index of prompts, a call of two short records was measured to take 3.6 kB.
const perRecord = 1200

// Decode reads what Encode wrote, after the room for the frame. The blob is a view.
func Decode(b []byte) (*Entry, error) {
	e := &Entry{Size: len(b) + perRecord, Disk: segment.FrameHead + len(b)}
	head, b, ok := cutPart(b)
	if !ok {
		return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{}, "the record is shorter than it says")
	}
	if err := e.readHead(head); err != nil {
		return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{}, "the head of the record is not what it should be: %w", err)
	}
	body, blob, ok := cutPart(b)
	if !ok {
		return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{}, "the record is shorter than it says")
	}
	if e.Blob = blob; len(body) > 0 {
		var err error
		if e.Body, err = jsonl.Parse(body, jsonl.Options{}); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// readHead reads a head as json.Unmarshal does, in less time where it is as Encode wrote it.
func (e *Entry) readHead(head []byte) error {
	if len(head) > most {
		return json.Unmarshal(head, e)
	}
	r := rooms.Get().(*room)
	defer r.free()
	r.head.Write(head)
	v, err := r.doc.Parse(r.head.Bytes(), jsonscan.Options{})
	if err != nil || v.Kind() != jsonscan.Object {
		return json.Unmarshal(head, e)
	}
	for k, x := range v.Fields() {
		if !e.member(string(k.Key()), x) {
			return json.Unmarshal(head, e)
		}
	}
	return nil
}

// member takes a member of a head, and reports whether it is one that Encode writes.
func (e *Entry) member(key string, v jsonscan.Value) (ok bool) {
	texts := func(s *string) (ok bool) { *s, ok = v.Text(); return ok }
	number := func(n *int64) bool { i, ok := v.Int(); *n = int64(i); return ok }
	count := func(n *int) (ok bool) { *n, ok = v.Int(); return ok }
	switch key {
	case "kind":
		return texts(&e.Kind)
	case "session":
		return texts(&e.Session)
	case "run":
		return texts(&e.Run)
	case "parent":
		return texts(&e.Parent)
	case "agent":
		return texts(&e.Agent)
	case "call":
		return texts(&e.Call)
	case "replaces":
		return texts(&e.Replaces)
	case "dialect":
		return texts(&e.Dialect)
	case "engine":
		return texts(&e.Engine)
	case "settings":
		e.Settings = bytes.Clone(v.Raw())
		return true
	case "state":
		return texts(&e.State)
	case "why":
		return texts(&e.Why)
	case "other_tools":
		e.OtherTools, ok = v.Bool()
		return ok
	case "at":
		return number(&e.At)
	case "first":
		return number(&e.First)
	case "took":
		return number(&e.Took)
	case "base":
		return count(&e.Base)
	case "keep":
		return count(&e.Keep)
	case "usage":
		e.Usage = &Usage{}
		for k, x := range v.Fields() {
			n, whole := x.Int()
			switch string(k.Key()) {
			case "prompt_tokens":
				e.Usage.PromptTokens = n
			case "completion_tokens":
				e.Usage.CompletionTokens = n
			default:
				return false
			}
			if !whole {
				return false
			}
		}
		return v.Kind() == jsonscan.Object
	case "group":
		return texts(&e.Group)
	case "digest":
		return texts(&e.Digest)
	}
	return false // rare ones
}

// Join makes the blob of a Moved record of the bodies of others.
func Join(bodies [][]byte) []byte {
	var out []byte
	for _, b := range bodies {
		out = append(binary.AppendUvarint(out, uint64(len(b))), b...)
	}
	return out
}

// Parts are the bodies in the blob of a Moved record.
func Parts(blob []byte) (bodies [][]byte, err error) {
	for len(blob) > 0 {
		part, rest, ok := cutPart(blob)
		if !ok {
			return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{}, "the record is shorter than it says")
		}
		bodies, blob = append(bodies, part), rest
	}
	return bodies, nil
}

func cutPart(b []byte) (part, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}

// Scrub takes secrets of requests out: members of the settings and metadata that are
// named as headers with keys, and what follows such a name in the words of an error.
// Messages stay as they were sent.
func (e *Entry) Scrub() (err error) {
	if e.Settings, err = secrets.Without("Settings", e.Settings); err != nil {
		return err
	}
	e.Why = secrets.Redact(e.Why)
	e.Engine = secrets.WithoutUser(e.Engine)
	if e.Body == nil {
		return nil
	}
	for field, m := range map[string]map[string]json.RawMessage{"Metadata": e.Body.Metadata, "TemplateKwargs": e.Body.TemplateKwargs} {
		for key, v := range m {
			if m[key], err = secrets.Without(field+"/"+key, v); err != nil {
				return err
			}
			if secrets.Named(key) {
				m[key] = json.RawMessage(`"` + secrets.Removed + `"`)
			}
		}
	}
	if f := e.Body.Failure; f != nil {
		e.Body.Failure = &rollout.Failure{Reason: secrets.Redact(f.Reason), Detail: secrets.Redact(f.Detail)}
	}
	return nil
}
