package primerl_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/turnpack/turnpack/export/primerl"
)

func ExampleWriteStep() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // an example
	if err := primerl.WriteStep(dir, 1, rows(1, 6), primerl.Options{SeqLen: 128, Ranks: 2}); err != nil {
		panic(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "rollouts", "step_1", "*"))
	for _, name := range files {
		fmt.Println(filepath.Base(name))
	}
	fmt.Println(err)
	// Output:
	// rank_0.bin
	// rank_1.bin
	// <nil>
}
