// Package recorded represents the journals of package rollout/live in the table of formats.
// A journal is a folder of binary segments, recognized by their file names and read by
// live.Read; no JSON value is one.
package recorded

import "github.com/turnpack/turnpack/rollout/traj/internal/format"

// Journal matches no value: journals are recognized by the names of their segments.
func Journal() format.Importer {
	return format.Importer{Name: "turnpack-journal",
		Match: func(format.Value, *format.File) bool { return false },
		Read: func(in *format.File, v format.Value) error {
			return in.Want(v, 0, "", "a folder of segments (*.tpj)")
		}}
}
