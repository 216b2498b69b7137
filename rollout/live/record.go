package live

import (
	"bytes"
	"encoding/binary"
	"encoding/json"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/live/internal/secrets"
	"github.com/turnpack/turnpack/rollout/live/internal/segment"
)

// The kinds of records, part of the file format.
const (
	kindStart     = "start"     // of a session
	kindIntent    = "intent"    // a call, before it is sent
	kindReply     = "reply"     // the end of a call, whatever its state
	kindMark      = "mark"      // another state of a call that ended
	kindEnd       = "end"       // of a session
	kindGroup     = "group"     // a group that is complete
	kindDelivered = "delivered" // a batch that a trainer has
)

// entry is one record: a head, what the native format can say as a rollout (messages,
// a turn, an ending), and the opaque blob of a call.
type entry struct {
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
	State    State           `json:"state,omitempty"`
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

	body *rollout.Rollout
	blob []byte
	from segment.Place // where it stands in the journal
	size int           // about what it takes in memory
}

// encode writes
//
//	uvarint length of the head, head (JSON), uvarint length of the rollout, rollout
//	(native JSON), blob
func (e *entry) encode(limitBytes int) ([]byte, error) {
	if err := e.scrub(); err != nil {
		return nil, err
	}
	var head bytes.Buffer
	enc := json.NewEncoder(&head)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: e.Session}, "it cannot be recorded: %w", err)
	}
	var body []byte
	if e.body != nil {
		var err error
		if body, err = jsonl.Append(nil, e.body); err != nil {
			return nil, err
		}
	}
	if n := head.Len() + len(body); limitBytes > 0 && n > limitBytes {
		return nil, limit("MaxBytes", "the record of the %s takes %d bytes, at most %d are allowed", e.Kind, n, limitBytes)
	}
	out := make([]byte, segment.FrameHead, segment.FrameHead+2*binary.MaxVarintLen64+head.Len()+len(body)+len(e.blob))
	out = binary.AppendUvarint(out, uint64(head.Len()))
	out = append(out, head.Bytes()...)
	out = binary.AppendUvarint(out, uint64(len(body)))
	out = append(out, body...)
	return append(out, e.blob...), nil
}

// decode reads what encode wrote, after the room for the frame. The blob is a view.
func decode(b []byte) (*entry, error) {
	e := &entry{size: len(b) + 400}
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
	if e.blob = blob; len(body) > 0 {
		var err error
		if e.body, err = jsonl.Parse(body, jsonl.Options{}); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func cutPart(b []byte) (part, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}

// scrub takes secrets of requests out: members of the settings and metadata that are
// named as headers with keys, and what follows such a name in the words of an error.
// Messages stay as they were sent.
func (e *entry) scrub() (err error) {
	if e.Settings, err = secrets.Without("Settings", e.Settings); err != nil {
		return err
	}
	e.Why = secrets.Redact(e.Why)
	e.Engine = secrets.WithoutUser(e.Engine)
	if e.body == nil {
		return nil
	}
	for field, m := range map[string]map[string]json.RawMessage{"Metadata": e.body.Metadata, "TemplateKwargs": e.body.TemplateKwargs} {
		for key, v := range m {
			if m[key], err = secrets.Without(field+"/"+key, v); err != nil {
				return err
			}
			if secrets.Named(key) {
				m[key] = json.RawMessage(`"` + secrets.Removed + `"`)
			}
		}
	}
	if f := e.body.Failure; f != nil {
		e.body.Failure = &rollout.Failure{Reason: secrets.Redact(f.Reason), Detail: secrets.Redact(f.Detail)}
	}
	return nil
}
