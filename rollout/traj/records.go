package traj

import (
	"errors"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/source"
)

// errIgnored ends the reading of a file that is not a dump and was not named by the user.
var errIgnored = errors.New("not a dump")

// maxUnrecognized is the number of values of unknown format at the beginning of a file in a
// folder after which the file is not taken for a dump.
const maxUnrecognized = 1000

// value parses one text and reads its record. Objects that follow each other without a line
// break are separate records.
func (fr *fileReader) value(v source.Value) error {
	for {
		doc, err := fr.parse(v.Text, v)
		if err == nil {
			return fr.record(doc)
		}
		e, ok := errors.AsType[*jsonscan.SyntaxError](err)
		if !ok || e.Class != jsonscan.Trailing || v.Text[e.Offset] != '{' || len(v.Given) > 0 {
			return fr.syntax(err, v)
		}
		if doc, err = fr.parse(v.Text[:e.Offset], v); err != nil {
			return fr.syntax(err, v)
		}
		if err := fr.Failed(fr.record(doc)); err != nil {
			return err
		}
		v.Text, v.Offset = v.Text[e.Offset:], v.Offset+int64(e.Offset)
	}
}

// parse parses text, which is v.Text or a prefix of it.
func (fr *fileReader) parse(text []byte, v source.Value) (format.Value, error) {
	return fr.doc.Parse(text, jsonscan.Options{Depth: fr.r.opt.Limits.Depth, NonFinite: true, Given: v.Given})
}

// record passes a value to its importer.
func (fr *fileReader) record(doc format.Value) error { return fr.Checked(fr.pass(doc)) }

func (fr *fileReader) pass(doc format.Value) error {
	if fr.fold != nil {
		return fr.fold.Add(doc)
	}
	if doc.Kind() == jsonscan.Array && doc.Len() > 0 {
		return fr.list(doc)
	}
	if fr.imp == nil {
		if taken, err := fr.collectEvent(doc); taken || err != nil {
			return err
		}
		if fr.fold != nil {
			return fr.fold.Add(doc)
		}
	}
	if fr.imp == nil || !fr.imp.Match(doc, &fr.File) {
		imp := fr.r.find(doc, fr)
		switch {
		case imp != nil:
			fr.use(imp)
			if err := fr.unrecognizedRecords(); err != nil {
				return err
			}
		case !fr.rows && fr.keyed(doc):
			return fr.keyedRecords(doc)
		case fr.imp == nil || doc.Kind() != jsonscan.Object:
			return fr.unknown(doc)
		}
		// Otherwise the record is too broken to detect its format: the previous importer
		// reports what is wrong.
	}
	if fr.imp.Fold != nil {
		fr.fold = fr.imp.Fold(&fr.File)
		return fr.fold.Add(doc)
	}
	fr.Record = doc
	defer func() { fr.Record = format.Value{} }()
	return fr.imp.Read(&fr.File, doc)
}

// list reads a list in the place of a record (a line or an element) like a file of its own:
// it holds messages, events or records.
func (fr *fileReader) list(doc format.Value) error {
	outer := fr.InList
	defer func() { fr.InList = outer }()
	fr.InList = true
	for _, x := range doc.Items() {
		if err := fr.Failed(fr.record(x)); err != nil {
			return err
		}
	}
	return fr.finish()
}

// keyed reports whether an object is a table of records: every member, apart from paging
// keys, is a record or a list of messages or events, all of one format.
func (fr *fileReader) keyed(doc format.Value) bool {
	if doc.Kind() != jsonscan.Object || doc.Len() == 0 || fr.r.opt.Format != "" && fr.r.opt.Format != "auto" {
		return false
	}
	name := ""
	for key, x := range format.Unpaged(doc) {
		imp := fr.findMember(x)
		if imp == nil || name != "" && imp.Name != name {
			return false
		}
		if imp.Fold != nil && !slices.Contains(eventContainers, key) && !strings.ContainsAny(key, "0123456789") {
			return false // the key names a column of messages or events, not a run
		}
		name = imp.Name
	}
	return name != ""
}

func (fr *fileReader) findMember(x format.Value) *importer {
	if x.Kind() != jsonscan.Array {
		return fr.r.find(x, fr)
	}
	outer := fr.InList
	defer func() { fr.InList = outer }()
	fr.InList = true
	for _, first := range x.Items() {
		return fr.r.find(first, fr)
	}
	return nil
}

// containers are keys that describe what a member holds and do not identify a run.
var containers = []string{"trajectory", "trajectories", "attempts", "rollouts", "samples", "simulations", "events", "history", "messages", "data", "items", "results", "runs"}

// eventContainers are the containers that may hold the messages or events of one run.
var eventContainers = []string{"trajectory", "events", "history", "items"}

// keyedRecords reads the members of a table; the key is the instance of records that name
// none.
func (fr *fileReader) keyedRecords(doc format.Value) error {
	defer func() { fr.key = "" }()
	for key, x := range format.Unpaged(doc) {
		if fr.key = key; slices.Contains(containers, key) {
			fr.key = ""
		}
		if err := fr.Failed(fr.record(x)); err != nil {
			return err
		}
	}
	return nil
}

func (fr *fileReader) syntax(err error, v source.Value) error {
	e, ok := errors.AsType[*jsonscan.SyntaxError](err)
	if !ok {
		return rollout.Errorf(rollout.KindInternal, fr.Where, "%w", err)
	}
	w := fr.Where
	w.Byte = rollout.At(e.Offset)
	if !fr.lined {
		w.Line = 0
		w.Byte = rollout.At(int(v.Offset) + e.Offset)
	}
	switch {
	case e.Class == jsonscan.TooDeep || e.Class == jsonscan.TooBig:
		return rollout.Errorf(rollout.KindLimit, w, "%s", e.Msg)
	case e.Class == jsonscan.Truncated && !v.Ended:
		return rollout.Errorf(rollout.KindFormat, w, "the file is cut off: %s", e.Msg).WithFix("fetch it again")
	}
	return rollout.Errorf(rollout.KindFormat, w, "not JSON: %s", e.Msg).WithFix("write it again, or take it out")
}

func (fr *fileReader) unknown(v format.Value) error {
	err := rollout.Errorf(rollout.KindFormat, fr.Where, "no known format: %s", format.Shape(v)).
		WithFix("known are %s; choose one to get its own message", strings.Join(Formats(), ", "))
	if fr.source.Named || fr.imp != nil {
		return err
	}
	if fr.unrecognized = append(fr.unrecognized, err); len(fr.unrecognized) == maxUnrecognized {
		return errIgnored
	}
	return nil
}

// unrecognizedRecords reports the values before the first record as failures: the file is a
// dump, so they are unreadable records.
func (fr *fileReader) unrecognizedRecords() error {
	before := fr.unrecognized
	fr.unrecognized = nil
	for _, err := range before {
		if err := fr.r.failed(err); err != nil {
			return err
		}
	}
	return nil
}
