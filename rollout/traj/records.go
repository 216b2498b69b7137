package traj

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/source"
)

// errIgnored ends the reading of a file that is no dump and was not named.
var errIgnored = errors.New("not a dump")

// maxUnrecognized is how many values of no known format a file of a folder may begin
// with before it is taken for something else than a dump.
const maxUnrecognized = 1000

// value parses one text and reads its record. Objects written one after the
// other without a line break between them are records each.
func (j *fileReader) value(v source.Value) error {
	for {
		doc, err := j.parse(v.Text, v)
		if err == nil {
			return cmp.Or(j.record(doc), j.reread())
		}
		e, ok := errors.AsType[*jsonscan.SyntaxError](err)
		if !ok || e.Class != jsonscan.Trailing || v.Text[e.Offset] != '{' || len(v.Away) > 0 {
			return j.syntax(err, v)
		}
		if doc, err = j.parse(v.Text[:e.Offset], v); err != nil {
			return j.syntax(err, v)
		}
		if err := j.record(doc); err != nil {
			if err = j.failed(err); err != nil {
				return err
			}
		}
		v.Text, v.Offset = v.Text[e.Offset:], v.Offset+int64(e.Offset)
	}
}

// parse parses text, which is v's or the beginning of it.
func (j *fileReader) parse(text []byte, v source.Value) (value, error) {
	return j.doc.Parse(text, jsonscan.Options{Depth: j.r.opt.Limits.Depth, NonFinite: true, Away: v.Away, Store: v.Store})
}

// reread reports that the strings of a long value could not be read again.
func (j *fileReader) reread() error {
	if err := j.doc.Err(); err != nil {
		return rollout.Errorf(rollout.KindInput, j.where, "a long value cannot be read again: %w", err).
			WithFix("do not change the file while it is read")
	}
	return nil
}

// record hands a value to its importer.
func (j *fileReader) record(doc value) error {
	if j.fold != nil {
		return j.fold.add(doc)
	}
	if doc.Kind() == jsonscan.Array && doc.Len() > 0 {
		return j.list(doc)
	}
	if j.imp == nil {
		if taken, err := j.collectEvent(doc); taken || err != nil {
			return err
		}
		if j.fold != nil {
			return j.fold.add(doc)
		}
	}
	if j.imp == nil || !j.imp.match(doc, j) {
		imp := j.r.find(doc, j)
		switch {
		case imp != nil:
			j.imp = imp
			if err := j.unrecognizedRecords(); err != nil {
				return err
			}
		case j.keyed(doc):
			return j.keyedRecords(doc)
		case j.imp == nil || doc.Kind() != jsonscan.Object:
			return j.unknown(doc)
		}
		// Else a record is too broken to be told: the importer of the ones before it
		// says what is wrong.
	}
	if j.imp.fold != nil {
		j.fold = j.imp.fold(j)
		return j.fold.add(doc)
	}
	j.current = doc
	defer func() { j.current = value{} }()
	return j.imp.read(j, doc)
}

// list reads a list where a record is expected, a line or an element, as if it
// were a file of its own: it holds messages, events or records.
func (j *fileReader) list(doc value) error {
	outer := j.inList
	defer func() { j.inList = outer }()
	j.inList = true
	for _, x := range doc.Items() {
		if err := j.record(x); err != nil {
			if err = j.failed(err); err != nil {
				return err
			}
		}
	}
	return j.finish()
}

// keyed reports whether an object is a table of records: every member is one, or
// a list of messages or events, all of one format.
func (j *fileReader) keyed(doc value) bool {
	if doc.Kind() != jsonscan.Object || doc.Len() == 0 || j.r.opt.Format != "" && j.r.opt.Format != "auto" {
		return false
	}
	name := ""
	for key, x := range doc.Members() {
		imp := j.findMember(x)
		if imp == nil || name != "" && imp.name != name {
			return false
		}
		if imp.fold != nil && !contains(eventContainers, key) && !strings.ContainsAny(key, "0123456789") {
			return false // a column of messages or events, not the name of a run
		}
		name = imp.name
	}
	return true
}

func (j *fileReader) findMember(x value) *importer {
	if x.Kind() != jsonscan.Array {
		return j.r.find(x, j)
	}
	outer := j.inList
	defer func() { j.inList = outer }()
	j.inList = true
	for _, first := range x.Items() {
		return j.r.find(first, j)
	}
	return nil
}

// containers are keys that say what a member holds, not what it is about.
var containers = []string{"trajectory", "trajectories", "attempts", "rollouts", "samples", "simulations", "events", "history", "messages", "data", "items", "results"}

// eventContainers are the containers that may hold the messages or events of one run.
var eventContainers = []string{"trajectory", "events", "history", "items"}

// keyedRecords reads the members of a table; the key stands for the instance
// where a record names none.
func (j *fileReader) keyedRecords(doc value) error {
	defer func() { j.key = "" }()
	for key, x := range doc.Members() {
		if j.key = key; contains(containers, key) {
			j.key = ""
		}
		if err := j.record(x); err != nil {
			if err = j.failed(err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *fileReader) syntax(err error, v source.Value) error {
	e, ok := errors.AsType[*jsonscan.SyntaxError](err)
	if !ok {
		return rollout.Errorf(rollout.KindInternal, j.where, "%w", err)
	}
	w := j.where
	w.Byte = rollout.At(e.Offset)
	if !j.lined {
		w.Line = 0
		w.Byte = rollout.At(int(v.At(e.Offset)))
	}
	switch {
	case e.Class == jsonscan.TooDeep || e.Class == jsonscan.TooBig:
		return rollout.Errorf(rollout.KindLimit, w, "%s", e.Msg)
	case e.Class == jsonscan.Truncated && !v.Ended:
		return rollout.Errorf(rollout.KindFormat, w, "the file is cut off: %s", e.Msg).WithFix("fetch it again")
	}
	return rollout.Errorf(rollout.KindFormat, w, "not JSON: %s", e.Msg).WithFix("write it again, or take it out")
}

func (j *fileReader) unknown(v value) error {
	err := rollout.Errorf(rollout.KindFormat, j.where, "no known format: %s", shape(v)).
		WithFix("known are %s; choose one to get its own message", strings.Join(Formats(), ", "))
	if j.file.Named || j.imp != nil {
		return err
	}
	if j.unrecognized = append(j.unrecognized, err); len(j.unrecognized) == maxUnrecognized {
		return errIgnored
	}
	return nil
}

// unrecognizedRecords counts the values before the first record: the file is a dump,
// so they are records that cannot be read.
func (j *fileReader) unrecognizedRecords() error {
	before := j.unrecognized
	j.unrecognized = nil
	for _, err := range before {
		if err := j.r.failed(err); err != nil {
			return err
		}
	}
	return nil
}

// shape describes a value for messages.
func shape(v value) string {
	if v.Kind() != jsonscan.Object {
		return v.Kind().String()
	}
	var keys []string
	for k := range v.Members() {
		if len(keys) == 8 {
			keys = append(keys, "…")
			break
		}
		keys = append(keys, strconv.Quote(k))
	}
	return "an object with keys " + strings.Join(keys, ", ")
}
