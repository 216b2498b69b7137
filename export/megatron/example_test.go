package megatron_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/turnpack/turnpack/export/megatron"
	"github.com/turnpack/turnpack/rollout"
)

// Both rows fit into one pack. A row of n tokens takes n - 1 positions, here rounded up to a
// multiple of 4.
func ExampleWrite() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	rows := []rollout.Sample{
		{Sequence: rollout.Sequence{IDs: []rollout.TokenID{10, 11, 12, 13, 14, 2}, Weight: []float32{0, 0, 0, 1, 0, 1}}},
		{Sequence: rollout.Sequence{IDs: []rollout.TokenID{10, 11, 2}, Weight: []float32{0, 1, 1}}},
	}
	about := filepath.Join(dir, "metadata.json")
	if err := megatron.Write(filepath.Join(dir, "train"+megatron.Suffix), about, rows, megatron.Options{PackSize: 16, PadMultiple: 4, EOS: 2}); err != nil {
		panic(err)
	}
	text, err := os.ReadFile(about)
	fmt.Println(string(text), err)
	// Output:
	// [{"max_samples_per_bin":2,"dataset_max_seqlen":8,"min_packed_seqlen":12}]
	//  <nil>
}
