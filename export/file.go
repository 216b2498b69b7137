package export

import (
	"errors"

	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
)

// Create starts the file path. The bytes go to a temporary file beside it;
// Close flushes them to the disk, moves the file to its name and flushes the
// folder, so that path is either absent (or the old file) or complete. Unless
// Options.Force is set, an output that exists is refused (ErrExists), now or when
// Close would replace it: of several writers of one path exactly one wins.
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

// writeError gives an error of the destination its place and kind.
func writeError(err error) error { return atomic.Locate(rollout.Where{}, err) }
