// Command quickstart is the main job in ten lines: a folder of dumps in,
// trainer-ready Parquet out.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: quickstart MODEL_DIR DUMPS OUT.parquet")
	}
	if err := convert(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

func convert(modelDir, dumps, out string) error {
	model, err := tokenize.Load(modelDir, tokenize.LoadOptions{}) // tokenizer.json and chat template, pure Go
	if err != nil {
		return err
	}
	src, err := traj.NewSource([]string{dumps}, traj.Options{}) // any known format
	if err != nil {
		return err
	}
	dst, err := export.Create(out, export.Options{UnknownStatus: rollout.StatusCompleted})
	if err != nil {
		return err
	}
	report, err := turnpack.Pipeline{Model: model}.Run(context.Background(), src, dst)
	if err != nil {
		dst.Abort()
		return err
	}
	for _, s := range report.Skips {
		log.Printf("left out: %v", s.Error)
	}
	fmt.Printf("%d rollouts, %d rows, %d of %d tokens trained\n", report.Rollouts, report.Rows, report.Trained, report.Tokens)
	return dst.Close() // only now the file is there
}
