package format

import (
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// Value is a JSON value of a record. It is valid until the next record is read; rollouts
// must hold copies.
type Value = jsonscan.Value

// Importer reads one dump format.
type Importer struct {
	// Name is the Origin.Format of its rollouts. Several importers may share a name: a
	// format can have several kinds of records.
	Name string
	// Match reports whether a value has this format. It examines only a few keys, and must
	// be true for every value of the format, not just the first.
	Match func(v Value, in *File) bool
	// Read converts one value to rollouts and passes each to File.Emit.
	Read func(in *File, v Value) error
	// Fold is set instead of Read if all values of a file make one rollout.
	Fold func(in *File) Folder
	// Stateless says that reading a value does not depend on earlier values.
	Stateless bool
	// Call says that a record is one model call: messages of every role were sent to the
	// engine.
	Call bool
}

// Folder collects the values of a file that is one rollout.
type Folder interface {
	// Add takes the next value.
	Add(v Value) error
	// Finish passes the rollout to File.Emit after the last value.
	Finish() error
}

// Host takes the rollouts of importers. An error from it ends the reading; importers must
// return the error unchanged.
type Host interface {
	// Emit completes a rollout (origin, id, group and index, joined rewards) and passes it
	// to the consumer. An importer sets Index to NoIndex if the data has none.
	Emit(r *rollout.Rollout) error
	// Failed counts the failure of one of several rollouts in a record; nil is no failure.
	Failed(err error) error
	// Reads records that the file at path was read beside a dump.
	Reads(path string)
}

// NoIndex is the Index of a rollout whose dump does not number it.
const NoIndex = -1

// Settings are the reader options that importers use.
type Settings struct {
	Depth     int    // deepest nesting of JSON, 0 = the default
	Messages  int    // most messages of one rollout
	Alone     bool   // files beside the dump are not read
	JoinCalls bool   // calls of one run are joined
	System    string // system prompt for rollouts that record none, "" = none
}

// Memory is the state that importers keep between records, one value of each type.
type Memory map[any]any

// Remembered returns the T in m, which is zero at first.
func Remembered[T any](m Memory) *T {
	key := (*T)(nil)
	if m[key] == nil {
		m[key] = new(T)
	}
	return m[key].(*T)
}
