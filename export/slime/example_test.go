package slime_test

import (
	"archive/zip"
	"bytes"
	"fmt"

	"github.com/turnpack/turnpack/export/slime"
	"github.com/turnpack/turnpack/rollout"
)

func Example() {
	advantage := 0.5
	row := rollout.Sample{Reward: 1, Advantage: &advantage, Temperature: 1, PromptLen: 2, IsLast: true, Status: rollout.StatusCompleted}
	row.ID, row.Rollout, row.Group = "task/0#0", "task/0", "task"
	row.IDs, row.Weight, row.RolloutMaskSum = []rollout.TokenID{5, 6, 7, 8}, []float32{0, 0, 1, 1}, 2

	var file bytes.Buffer
	w, err := slime.NewWriter(&file, slime.Options{Step: 3})
	if err != nil {
		panic(err)
	}
	if err := w.Write(row); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	parts, err := zip.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		panic(err)
	}
	for _, part := range parts.File {
		fmt.Println(part.Name)
	}
	// Output:
	// archive/version
	// archive/byteorder
	// archive/data.pkl
}
