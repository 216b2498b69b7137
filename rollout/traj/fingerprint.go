package traj

import "github.com/turnpack/turnpack/rollout/traj/internal/source"

// Print identifies what Open reads from a path: how many files and bytes, and
// the SHA-256 (hex) of their names and contents.
type Print struct {
	Files  int
	Bytes  int64
	SHA256 string
}

// neighbours are the files read beside a dump, by their place as seen from its
// folder.
var neighbours = []string{"patch.diff", "meta.json", "../results.jsonl", "../base_state.json", "../results.json", "../result.json", "../verifier/reward.json", "../verifier/reward.txt"}

// Fingerprint digests what Open would read from path, a file, a folder or a
// pattern, without decompressing it. The folder except, such as an output below
// the input, is left out; "" = none.
func Fingerprint(path, except string) (Print, error) {
	p, err := source.Fingerprint(path, except, neighbours)
	return Print(p), err
}
