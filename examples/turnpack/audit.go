package main

import (
	"context"
	"io"

	"github.com/turnpack/turnpack/examples/turnpack/audit"
	"github.com/turnpack/turnpack/examples/turnpack/internal/tokens"
	"github.com/turnpack/turnpack/examples/turnpack/view"
	rules "github.com/turnpack/turnpack/export/audit"
)

// auditMain runs "turnpack audit" with the facts of a model folder.
func auditMain(ctx context.Context, args []string, _ io.Reader, out, errOut io.Writer) int {
	return audit.Main(ctx, args, func(dir, template string) (*rules.Model, error) { return modelFacts(ctx, dir, template) }, out, errOut)
}

// viewMain runs "turnpack view" with the dumps that the batch was made of.
func viewMain(ctx context.Context, args []string, _ io.Reader, out, errOut io.Writer) int {
	return view.Main(ctx, args, tracersOf, out, errOut)
}

func diffMain(ctx context.Context, args []string, _ io.Reader, out, errOut io.Writer) int {
	return audit.Diff(ctx, args, out, errOut)
}

// modelFacts is what the audit rules want to know of a model.
func modelFacts(ctx context.Context, dir, template string) (*rules.Model, error) {
	m, err := loadModel(dir, template, "bpe")
	if err != nil {
		return nil, err
	}
	return tokens.Facts(ctx, m)
}
