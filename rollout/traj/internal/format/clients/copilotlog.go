package clients

import (
	"bytes"
	"encoding/json"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// copilotLog reads chatSessions/*.jsonl of VS Code: a session, then changes to it.
func copilotLog() format.Importer {
	return format.Importer{Name: "copilot-chat", Match: func(v format.Value, _ *format.File) bool {
		switch kind, ok := v.Get("kind").Int(); {
		case !ok:
			return false
		case kind == logInitial:
			return v.Path("v", "requests").Kind() == jsonscan.Array
		default:
			return kind > 0 && kind <= logDelete && v.Get("k").Kind() == jsonscan.Array
		}
	}, Fold: func(in *format.File) format.Folder { return &copilotChanges{in: in} }}
}

// The kinds of lines.
const (
	logInitial = iota // the whole session; the first line
	logSet            // sets a member or an element
	logPush           // appends to a list, which is first cut to i elements
	logDelete         // deletes a member
)

type copilotChanges struct {
	in    *format.File
	state any
	err   error // the first fault; the session is unknown after it
}

func (s *copilotChanges) Add(v format.Value) error {
	var line struct {
		Kind int   `json:"kind"`
		K    []any `json:"k"`
		V    any   `json:"v"`
		I    *int  `json:"i"`
	}
	d := json.NewDecoder(bytes.NewReader(v.Clone()))
	d.UseNumber()
	err := d.Decode(&line)
	switch {
	case err != nil:
		err = s.in.Fail(0, "", "the change cannot be read: %s", err)
	case line.Kind == logInitial:
		s.state = line.V
	case s.state == nil:
		err = s.in.Fail(0, "/kind", "a change before the session that it changes")
	default:
		changed, ok := change(s.state, line.K, func(x any) (any, bool) {
			if line.Kind == logSet || line.Kind == logDelete {
				return line.V, true
			}
			list, ok := x.([]any)
			if n := line.I; n != nil && ok {
				if ok = *n >= 0 && *n <= len(list); ok {
					list = list[:*n]
				}
			}
			more, isList := line.V.([]any)
			return append(list, more...), (ok || x == nil) && (isList || line.V == nil)
		})
		if s.state = changed; !ok {
			err = s.in.Fail(0, "/k", "the session has no such place: %s", v.Get("k").Raw())
		}
	}
	if s.err == nil {
		s.err = err
	}
	return err
}

// change replaces the value at path by the result of with.
func change(x any, path []any, with func(any) (any, bool)) (any, bool) {
	if len(path) == 0 {
		return with(x)
	}
	ok := false
	switch key := path[0].(type) {
	case string:
		o, is := x.(map[string]any)
		if !is {
			return x, false
		}
		o[key], ok = change(o[key], path[1:], with)
	case json.Number:
		list, is := x.([]any)
		i, err := key.Int64()
		if !is || err != nil || i < 0 || i > int64(len(list)) {
			return x, false
		}
		if i == int64(len(list)) {
			list = append(list, nil)
		}
		list[i], ok = change(list[i], path[1:], with)
		x = list
	}
	return x, ok
}

func (s *copilotChanges) Finish() error {
	if s.err != nil {
		return s.in.Fail(0, "", "a change of the session was not understood, so that what it holds is not known")
	}
	text, _ := json.Marshal(s.state) // decoded JSON cannot fail
	v, err := s.in.Parse(text)
	if err != nil {
		return s.in.Fail(0, "", "the session cannot be read again: %s", err)
	}
	return readCopilotChat(s.in, v)
}
