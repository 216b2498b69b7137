// Command beam is an Apache Beam job that turns trajectory dumps into shards of
// training rows.
//
//	beam -dumps 'runs/*.jsonl' -model Qwen3-8B -out batches -shards 16
//
// It runs in this process unless -runner names another runner; the dumps, the
// model folder and the output folder are paths that every worker can see.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"
)

func main() {
	dumps := flag.String("dumps", "", "`glob` of the dumps")
	model := flag.String("model", "", "Hugging Face model `folder`")
	out := flag.String("out", "batches", "`folder` for the shards")
	shards := flag.Int("shards", 16, "number of shards; the rollouts of one must fit in memory")
	flag.Parse()
	beam.Init()
	if err := run(context.Background(), *dumps, *model, *out, *shards); err != nil {
		fmt.Fprintln(os.Stderr, "beam:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dumps, model, out string, shards int) error {
	p, err := job(dumps, model, out, shards)
	if err != nil {
		return err
	}
	return beamx.Run(ctx, p)
}
