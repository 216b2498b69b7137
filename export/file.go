package export

import (
	"errors"

	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
)

// Create starts the file path. The bytes go to a temporary file beside it. Close flushes them
// to disk, moves the file into place and flushes the folder, so that path is always absent, the
// old file or the complete new one. Unless Options.Force is set, an existing output is refused
// with ErrExists, now or in Close: of several writers of one path exactly one wins.
func Create(path string, o Options) (*Writer, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	f, err := atomic.Create(path, o.Force)
	if err != nil {
		return nil, err
	}
	w, err := newWriter(f, o)
	if err != nil {
		return nil, errors.Join(err, f.Abort())
	}
	return w, nil
}

// writeError locates and classifies an error of the destination.
func writeError(err error) error { return atomic.Locate(rollout.Where{}, err) }
