// Command beam is an Apache Beam job that turns trajectory dumps into a set of
// training files, on as many machines as its runner has.
//
//	beam -in runs -model Qwen3-8B -out batch -groups-per-step 64
//
// It runs in this process unless -runner names another runner. The model is a folder
// that every worker can see; dumps and output are such folders too, or URLs of
// object stores.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"
)

func main() {
	in := flag.String("in", "", "dumps: `paths` or URLs of folders in object stores (s3://, gs://, file://), with commas between")
	model := flag.String("model", "", "Hugging Face model `folder`")
	out := flag.String("out", "batch", "`folder`, or URL of one in an object store")
	groups := flag.Int("groups-per-step", 64, "groups of a file; those of one file must fit in memory")
	force := flag.Bool("force", false, "write over a set that is there")
	flag.Parse()
	beam.Init()
	s := settings{Model: *model, Out: *out, Groups: *groups}
	if *in != "" {
		s.In = strings.Split(*in, ",")
	}
	if err := s.run(context.Background(), *force); err != nil {
		fmt.Fprintln(os.Stderr, "beam:", err)
		os.Exit(1)
	}
}

func (s *settings) check() error {
	var errs []error
	if len(s.In) == 0 {
		errs = append(errs, errors.New("-in names no dump"))
	}
	if s.Model == "" {
		errs = append(errs, errors.New("-model names no folder"))
	}
	if s.Out == "" {
		errs = append(errs, errors.New("-out names no folder"))
	}
	if s.Groups < 1 {
		errs = append(errs, fmt.Errorf("-groups-per-step is %d, expected 1 or more", s.Groups))
	}
	return errors.Join(errs...)
}

func (s *settings) run(ctx context.Context, force bool) error {
	if err := s.check(); err != nil {
		return err
	}
	if err := vacant(ctx, s.Out, force); err != nil {
		return err
	}
	if err := beamx.Run(ctx, graph(*s)); err != nil {
		return err
	}
	r, err := readReport(ctx, s.Out)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d rows of %d records\n", s.Out, r.Rows, r.Read)
	for _, e := range r.Errors {
		fmt.Fprintln(os.Stderr, "left out:", e)
	}
	switch {
	case r.Rows == 0:
		return fmt.Errorf("no rollout gave a row: %v", r.Without)
	case r.LeftOut > 0:
		return fmt.Errorf("%d records were left out, listed in %s", r.LeftOut, reportName)
	}
	return nil
}
