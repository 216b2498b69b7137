package slime_test

import (
	"archive/zip"
	"fmt"
	"os"
	"path/filepath"

	"github.com/turnpack/turnpack/export/slime"
	"github.com/turnpack/turnpack/rollout"
)

func Example() {
	advantage := 0.5
	row := rollout.Sample{Reward: 1, Advantage: &advantage, Temperature: 1, PromptLen: 2, IsLast: true, Status: rollout.StatusCompleted}
	row.ID, row.Rollout, row.Group = "task/0#0", "task/0", "task"
	row.IDs, row.Weight, row.RolloutMaskSum = []rollout.TokenID{5, 6, 7, 8}, []float32{0, 0, 1, 1}, 2

	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "3.pt")
	if err := slime.Write(path, []rollout.Sample{row}, slime.Options{Step: 3}); err != nil {
		panic(err)
	}
	parts, err := zip.OpenReader(path)
	if err != nil {
		panic(err)
	}
	defer func() { _ = parts.Close() }()
	for _, part := range parts.File {
		fmt.Println(part.Name)
	}
	// Output:
	// archive/version
	// archive/byteorder
	// archive/data.pkl
}
