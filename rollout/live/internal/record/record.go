// Package record encodes and decodes the records of a journal.
package record

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/live/internal/secrets"
	"github.com/turnpack/turnpack/rollout/live/internal/segment"
)

// The kinds of records, part of the file format.
const (
	Start     = "start"     // a session begins
	Intent    = "intent"    // a call begins, before it is sent
	Reply     = "reply"     // a call ends, in whatever state
	Mark      = "mark"      // a new state of a call that ended
	End       = "end"       // a session ends
	Group     = "group"     // a group is complete
	Delivered = "delivered" // a trainer has received a batch
	Moved     = "moved"     // a copy of all records of a rollout, or of the groups, which replaces the earlier ones
)

// Entry is one record: a head, the parts that the native format expresses as a rollout (messages, a turn, an
// ending), and the opaque blob of a call.
type Entry struct {
	Kind     string          `json:"kind"`
	Session  string          `json:"session,omitempty"`
	Run      string          `json:"run,omitempty"` // the rollout, for a session with a parent
	Parent   string          `json:"parent,omitempty"`
	Agent    string          `json:"agent,omitempty"`
	Call     string          `json:"call,omitempty"`
	Replaces string          `json:"replaces,omitempty"`
	Dialect  string          `json:"dialect,omitempty"`
	Engine   string          `json:"engine,omitempty"`
	Settings json.RawMessage `json:"settings,omitempty"`
	State    string          `json:"state,omitempty"`
	Why      string          `json:"why,omitempty"`
	// OtherTools: the call has other tools or template variables than the rollout's first call.
	OtherTools bool     `json:"other_tools,omitempty"`
	At         int64    `json:"at"`              // nanoseconds since 1970
	First      int64    `json:"first,omitempty"` // nanoseconds from the intent to the first id
	Took       int64    `json:"took,omitempty"`  // nanoseconds from the intent to the end
	Base       int      `json:"base,omitempty"`  // turn whose first Keep ids begin the prompt
	Keep       int      `json:"keep,omitempty"`
	Usage      *Usage   `json:"usage,omitempty"`
	Group      string   `json:"group,omitempty"`
	Digest     string   `json:"digest,omitempty"`
	Sessions   []string `json:"sessions,omitempty"`

	Body *rollout.Rollout `json:"-"`
	Blob []byte           `json:"-"`
	From segment.Place    `json:"-"` // place in the journal
	Size int              `json:"-"` // approximate bytes in memory
	Disk int              `json:"-"` // bytes in the journal
}

// Usage holds the engine's token counts.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens,omitempty"`
	CompletionTokens int `json:"completion_tokens,omitempty"`
}

// Encode returns, after FrameHead bytes for the frame,
//
//	uvarint length of the head, head (JSON), uvarint length of the rollout, rollout
//	(native JSON), blob
func (e *Entry) Encode(limitBytes int) ([]byte, error) {
	if err := e.Scrub(); err != nil {
		return nil, err
	}
	head, err := jsonscan.Marshal(e)
	if err != nil {
		return nil, err
	}
	r := rooms.Get().(*room)
	defer r.free()
	body := r.body[:0]
	if e.Body != nil {
		if body, err = jsonl.Append(body, e.Body); err != nil {
			return nil, err
		}
		r.body = body
	}
	if n := len(head) + len(body); limitBytes > 0 && n > limitBytes {
		return nil, TooLong(e.Kind, n, limitBytes)
	}
	out := make([]byte, segment.FrameHead, segment.FrameHead+2*binary.MaxVarintLen64+len(head)+len(body)+len(e.Blob))
	out = binary.AppendUvarint(out, uint64(len(head)))
	out = append(out, head...)
	out = binary.AppendUvarint(out, uint64(len(body)))
	out = append(out, body...)
	return append(out, e.Blob...), nil
}

// room is a reusable buffer for encoding one record.
type room struct{ body []byte }

var rooms = sync.Pool{New: func() any { return new(room) }}

// most is the capacity up to which a buffer is reused.
const most = 64 << 10

func (r *room) free() {
	if cap(r.body) <= most {
		rooms.Put(r)
	}
}

// TooLong returns the error for a record larger than Options.MaxBytes.
func TooLong(kind string, size, most int) error {
	return rollout.Errorf(rollout.KindLimit, rollout.Where{Field: "MaxBytes"}, "the record of the %s takes %d bytes, at most %d are allowed", kind, size, most).
		WithFix("raise Options.MaxBytes, or ask for less")
}

// perRecord is roughly the memory of a record besides its bytes: with maps, lists and the index of prompts, a
// call of two short records was measured to take 3.6 kB.
const perRecord = 1200

// Kept returns what Decode would read from the frame that Encode made of e, in less time: the head is copied,
// not parsed.
func (e *Entry) Kept(frame []byte) (*Entry, error) {
	b := frame[segment.FrameHead:]
	_, rest, _ := cutPart(b)
	body, _, _ := cutPart(rest)
	kept := *e
	kept.Size, kept.Disk, kept.Body, kept.Settings = len(b)+perRecord, len(frame), nil, nil
	if len(e.Settings) > 0 {
		var settings bytes.Buffer
		if err := json.Compact(&settings, e.Settings); err != nil {
			return nil, err
		}
		kept.Settings = settings.Bytes()
	}
	if e.Usage != nil {
		u := *e.Usage
		kept.Usage = &u
	}
	if len(e.Sessions) == 0 {
		kept.Sessions = nil
	}
	if len(body) == 0 {
		return &kept, nil
	}
	if len(body) <= most { // far below every limit of the format
		if kept.Body = plain(e.Body); kept.Body != nil {
			return &kept, nil
		}
	}
	var err error
	kept.Body, err = jsonl.Parse(body, jsonl.Options{})
	return &kept, err
}

// Decode reads what Encode wrote, without the frame. The blob is a slice of b.
func Decode(b []byte) (*Entry, error) {
	e := &Entry{Size: len(b) + perRecord, Disk: segment.FrameHead + len(b)}
	head, b, ok := cutPart(b)
	if !ok {
		return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{}, "the record is shorter than it says")
	}
	if err := json.Unmarshal(head, e); err != nil {
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

// Join returns the blob of a Moved record that holds the given bodies.
func Join(bodies [][]byte) []byte {
	var out []byte
	for _, b := range bodies {
		out = append(binary.AppendUvarint(out, uint64(len(b))), b...)
	}
	return out
}

// Parts returns the bodies in the blob of a Moved record.
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

// Scrub removes secrets of requests: members of the settings and metadata named like credential headers, and
// what follows such a name in error texts. Messages are recorded as sent. Invalid UTF-8 in names is replaced.
func (e *Entry) Scrub() (err error) {
	for _, s := range []*string{&e.Kind, &e.State, &e.Session, &e.Run, &e.Parent, &e.Agent, &e.Call, &e.Replaces, &e.Dialect, &e.Engine, &e.Why, &e.Group, &e.Digest} {
		*s = strings.ToValidUTF8(*s, "\uFFFD")
	}
	for i, s := range e.Sessions {
		if !utf8.ValidString(s) {
			e.Sessions = slices.Clone(e.Sessions)
			e.Sessions[i] = strings.ToValidUTF8(s, "\uFFFD")
		}
	}
	if e.Settings, err = secrets.Without("Settings", e.Settings); err != nil {
		return err
	}
	if e.Why != "" {
		e.Why = secrets.Redact(e.Why)
	}
	e.Engine = secrets.WithoutUser(e.Engine)
	if e.Body == nil {
		return nil
	}
	if err := scrub("Metadata", e.Body.Metadata); err != nil {
		return err
	}
	if err := scrub("TemplateKwargs", e.Body.TemplateKwargs); err != nil {
		return err
	}
	if f := e.Body.Failure; f != nil {
		e.Body.Failure = &rollout.Failure{Reason: secrets.Redact(f.Reason), Detail: secrets.Redact(f.Detail)}
	}
	return nil
}

func scrub(field string, m map[string]json.RawMessage) (err error) {
	for key, v := range m {
		if m[key], err = secrets.Without(field+"/"+key, v); err != nil {
			return err
		}
		if secrets.Named(key) {
			m[key] = json.RawMessage(`"` + secrets.Removed + `"`)
		}
	}
	return nil
}
