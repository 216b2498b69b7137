package record

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

// texts are the members of a head that are strings.
var texts = []struct {
	key string
	of  func(e *Entry) *string
}{
	{"kind", func(e *Entry) *string { return &e.Kind }},
	{"session", func(e *Entry) *string { return &e.Session }},
	{"run", func(e *Entry) *string { return &e.Run }},
	{"parent", func(e *Entry) *string { return &e.Parent }},
	{"agent", func(e *Entry) *string { return &e.Agent }},
	{"call", func(e *Entry) *string { return &e.Call }},
	{"replaces", func(e *Entry) *string { return &e.Replaces }},
	{"dialect", func(e *Entry) *string { return &e.Dialect }},
	{"engine", func(e *Entry) *string { return &e.Engine }},
	{"state", func(e *Entry) *string { return &e.State }},
	{"why", func(e *Entry) *string { return &e.Why }},
	{"group", func(e *Entry) *string { return &e.Group }},
	{"digest", func(e *Entry) *string { return &e.Digest }},
}

// appendHead appends what json.Marshal writes of an entry that was scrubbed, in less time.
func (e *Entry) appendHead(b []byte) []byte {
	b = append(b, '{')
	key := func(k string) {
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), k...), `":`...)
	}
	text := func(s string) { b = append(jsonscan.AppendEscaped(append(b, '"'), s), '"') }
	for _, f := range texts {
		if s := *f.of(e); s != "" || f.key == "kind" {
			key(f.key)
			text(s)
		}
	}
	if len(e.Settings) > 0 {
		key("settings")
		b = append(b, e.Settings...)
	}
	if e.OtherTools {
		key("other_tools")
		b = append(b, "true"...)
	}
	number := func(k string, n int64) {
		if n != 0 || k == "at" {
			key(k)
			b = strconv.AppendInt(b, n, 10)
		}
	}
	number("at", e.At)
	number("first", e.First)
	number("took", e.Took)
	number("base", int64(e.Base))
	number("keep", int64(e.Keep))
	if u := e.Usage; u != nil {
		key("usage")
		b = append(b, '{')
		number("prompt_tokens", int64(u.PromptTokens))
		number("completion_tokens", int64(u.CompletionTokens))
		b = append(b, '}')
	}
	if len(e.Sessions) > 0 {
		key("sessions")
		b = append(b, '[')
		for i, s := range e.Sessions {
			if i > 0 {
				b = append(b, ',')
			}
			text(s)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// readHead reads a head as json.Unmarshal does, in less time where it is as Encode wrote it.
func (e *Entry) readHead(head []byte) error {
	if len(head) > most {
		return json.Unmarshal(head, e)
	}
	r := rooms.Get().(*room)
	defer r.free()
	r.head = append(r.head[:0], head...)
	v, err := r.doc.Parse(r.head, jsonscan.Options{})
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
