package traj

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Importer reads a format of the user's own, one JSON object per record. It works wherever
// built-in formats do: lines, lists, folders, archives and compressed files, with joined
// rewards, groups, notes and ids.
type Importer struct {
	// Name is the Origin.Format of the rollouts and the name that Options.Format selects.
	Name string
	// Match reports whether a record has this format. It must be true for every record of
	// the format and false for all others.
	Match func(record json.RawMessage) bool
	// Read returns the rollouts of a record, if any. Their Origin is filled in, an Index of
	// 0 counts as not recorded, and an empty or repeated id is replaced. An error skips the
	// record and is listed with its location. The bytes are valid only during the call.
	Read func(record json.RawMessage) ([]*rollout.Rollout, error)
}

// emit reads a record with x.Read and emits its rollouts.
func (x *Importer) emit(in *format.File, v format.Value) error {
	made, err := x.Read(v.Raw())
	if _, located := errors.AsType[*rollout.Error](err); err != nil && !located {
		err = rollout.Errorf(rollout.KindInput, in.Where, "%w", err)
	}
	if err != nil {
		return err
	}
	for _, r := range made {
		if r == nil {
			return in.Fail(0, "", "the importer %s gave a rollout that is nil", x.Name)
		}
		if r.Index == 0 {
			r.Index = format.NoIndex
		}
		if err := in.Failed(in.Emit(r)); err != nil {
			return err
		}
	}
	return nil
}

// ReadAll reads a stream to its end, like NewReader and All, and leaves nothing to close.
// With OnErrorSkip failures are in the Report; with OnErrorStop the first is returned with
// the rollouts before it.
func ReadAll(in io.Reader, name string, opt Options) ([]*rollout.Rollout, *Report, error) {
	r, err := NewReader(in, name, opt)
	if err != nil {
		return nil, nil, err
	}
	var out []*rollout.Rollout
	for x, err := range r.All() {
		if err != nil {
			return out, r.Report(), err
		}
		out = append(out, x)
	}
	return out, r.Report(), nil
}
