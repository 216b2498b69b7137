package main

import (
	"bytes"
	"errors"
	"io"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/rollout"
)

// rowSink writes the rows of a group, with the optional columns that its first has,
// so that they can go to another worker.
type rowSink struct {
	opts    export.Options
	file    io.Writer
	columns *export.Columns
	w       *export.Writer
}

func (s *rowSink) Write(row rollout.Sample) (err error) {
	if s.w == nil {
		*s.columns = export.ColumnsOf(&row)
		if s.w, err = export.NewWriter(s.file, s.opts); err != nil {
			return err
		}
	}
	return s.w.Write(row)
}

func (s *rowSink) close() error {
	if s.w == nil {
		return nil
	}
	return s.w.Close()
}

// copyRows adds the rows of a group to a set that has these columns.
func copyRows(to *shard.Set, file []byte, columns export.Columns) error {
	in, err := export.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return err
	}
	defer in.Close()
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !columns.Logprobs {
			row.Logprob = nil
		}
		if !columns.Versions {
			row.Version = nil
		}
		if err := to.Write(row); err != nil {
			return err
		}
	}
}
