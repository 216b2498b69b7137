package format

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// File is the file that an importer reads: the current place and record, the notes so far,
// and the Host that takes the rollouts.
type File struct {
	Host
	Settings Settings
	Name     string         // as in errors and Origin.File
	Path     string         // on disk; "" for a stream; differs from Name for an archive member
	Importer *Importer      // importer of the record, nil before the first is known
	Where    rollout.Where  // place of the value being read
	Record   Value          // the record being read, if it is a rollout by itself
	InList   bool           // the value is an element of a list
	Notes    []rollout.Note // notes for the next rollout emitted
	// Task is the digest of the next rollout's task (see TaskOf) if a data set only numbers
	// its tasks; else zero.
	Task     [16]byte
	OfFile   Memory // state of importers for this file
	OfReader Memory // state of importers for all files read
	wrong    error
}

// Note adds a note to the next rollout emitted, but nothing more on a record with a fault.
func (in *File) Note(code string, message rollout.Index, format string, args ...any) {
	if !in.Broken() {
		in.Notes = append(in.Notes, rollout.Note{Code: code, Message: message, Text: fmt.Sprintf(format, args...)})
	}
}

// Joins reports whether the record is a call that is joined with others to one run.
func (in *File) Joins() bool { return in.Settings.JoinCalls && in.OfCall() }

// Fail returns a KindInput error located at a message of the rollout being read.
func (in *File) Fail(message rollout.Index, field, format string, args ...any) error {
	w := in.Where
	w.Message, w.Field = message, field
	return rollout.Errorf(rollout.KindInput, w, format, args...).WithFix("mend the field, or take the record out")
}

// Want returns the error for a value of the wrong kind.
func (in *File) Want(v Value, message rollout.Index, field, what string) error {
	w := in.Where
	w.Message, w.Field = message, field
	return rollout.Errorf(rollout.KindFormat, w, "found %s, expected %s", v.Kind(), what).WithFix("mend the field, or name the format of the file if it is another")
}

// Wrong keeps the first fault of the record or event that is being read: no rollout is
// emitted before it was given by Checked.
func (in *File) Wrong(err error) {
	if in.wrong == nil {
		in.wrong = err
	}
}

// Broken reports whether a fault is kept.
func (in *File) Broken() bool { return in.wrong != nil }

// Checked returns the fault that is kept, or else err, and forgets it.
func (in *File) Checked(err error) error {
	in.Wrong(err)
	err, in.wrong = in.wrong, nil
	return err
}

// Need makes the record wrong if v is of another kind.
func (in *File) Need(v Value, kind jsonscan.Kind, message rollout.Index, field, what string) {
	if v.Kind() != kind {
		in.Wrong(in.Want(v, message, field, what))
	}
}

// ListOrNull makes the record wrong if v is neither null, absent nor a list.
func (in *File) ListOrNull(v Value, message rollout.Index, field string) {
	if !v.IsNull() {
		in.Need(v, jsonscan.Array, message, field, "a list")
	}
}

// ObjectOrNull makes the record wrong if v is neither null, absent nor an object.
func (in *File) ObjectOrNull(v Value, message rollout.Index, field string) {
	if !v.IsNull() {
		in.Need(v, jsonscan.Object, message, field, "an object")
	}
}

// WantList makes the record wrong if v, the list that defines a format, is not a list.
func (in *File) WantList(v Value, field string) { in.Need(v, jsonscan.Array, 0, field, "a list") }

// Text returns a string and adds a note if it has lone surrogates.
func (in *File) Text(v Value, message rollout.Index, field string) string {
	s := v.String()
	if v.LoneSurrogate() {
		in.Note("lone_surrogate", message, "%s: an escape that is half of a surrogate pair was read as U+FFFD", field)
	}
	return s
}

// NeighbourJSON reads a JSON file beside the dump; absent if there is none or it is broken,
// which is noted.
func (in *File) NeighbourJSON(name string) (Value, error) {
	text, err := in.Neighbour(name)
	if err != nil || text == nil {
		return Value{}, err
	}
	var d jsonscan.Doc
	v, err := d.Parse(text, jsonscan.Options{NonFinite: true})
	if err != nil {
		in.Note("meta_unreadable", 0, "%s is not JSON: %s", filepath.Base(name), err)
		return Value{}, nil
	}
	return v, nil
}

// Parse parses JSON contained in a text of a record.
func (in *File) Parse(text []byte) (Value, error) {
	return new(jsonscan.Doc).Parse(text, jsonscan.Options{Depth: in.Settings.Depth, NonFinite: true})
}

// ParseInner parses a string value that holds JSON; other values are returned unchanged.
func (in *File) ParseInner(v Value, field string) (Value, error) {
	s, ok := v.Text()
	if !ok {
		return v, nil
	}
	out, err := in.Parse([]byte(s))
	if err != nil {
		w := in.Where
		w.Field = field
		return v, rollout.Errorf(rollout.KindFormat, w, "the string is not the JSON it should hold: %s", err)
	}
	return out, nil
}

// neighbourBytes bounds a file read beside a trajectory.
const neighbourBytes = 64 << 20

// Inner is ParseInner; a text that is no JSON makes the record wrong.
func (in *File) Inner(v Value, field string) Value {
	out, err := in.ParseInner(v, field)
	in.Wrong(err)
	return out
}

// Neighbour returns the content of a file in the folder of the dump, nil if there is none.
func (in *File) Neighbour(name string) ([]byte, error) {
	if in.Path == "" || in.Path != in.Name {
		return nil, nil // streams and archive members have no neighbours
	}
	path := filepath.Join(filepath.Dir(in.Path), name)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	if info.Size() > neighbourBytes {
		return nil, rollout.Errorf(rollout.KindLimit, rollout.Where{File: path}, "%d bytes, at most %d are read beside a trajectory", info.Size(), neighbourBytes)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "cannot be read: %w", err)
	}
	defer f.Close()
	in.Reads(path)
	b, err := io.ReadAll(io.LimitReader(f, neighbourBytes))
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "cannot be read: %w", err)
	}
	return b, nil
}

// OfCall reports whether the format records requests to an engine; messages of every role
// are then what the model saw.
func (in *File) OfCall() bool { return in.Importer != nil && in.Importer.Call }

// PolicyMark is replaced by the policy in Options.System.
const PolicyMark = "{policy}"
