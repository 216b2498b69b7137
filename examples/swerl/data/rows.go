package data

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnpack/turnpack/internal/pqread"
	"github.com/turnpack/turnpack/rollout"
)

// eachRow calls f for every row of the files: Parquet, JSON Lines or one JSON list. A
// folder stands for its .parquet, .jsonl and .json files, in the order of their names.
// Rows of Parquet files omit null members.
func eachRow(ctx context.Context, in []string, f func(where rollout.Where, row json.RawMessage) error) error {
	for _, path := range in {
		err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return rollout.Errorf(rollout.KindInput, rollout.Where{File: name}, "cannot be read: %w", err)
			}
			ext := strings.ToLower(filepath.Ext(name))
			if d.IsDir() || name != path && ext != ".parquet" && ext != ".jsonl" && ext != ".json" {
				return nil
			}
			return eachRowOf(ctx, name, f)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func eachRowOf(ctx context.Context, name string, f func(rollout.Where, json.RawMessage) error) error {
	where := rollout.Where{File: name}
	file, err := os.Open(name)
	if err != nil {
		return rollout.Errorf(rollout.KindInput, where, "cannot be read: %w", err)
	}
	defer file.Close()
	text := bufio.NewReader(file)
	next := func() (json.RawMessage, error) { return nil, io.EOF }
	switch head, _ := text.Peek(4); {
	case string(head) == "PAR1":
		info, err := file.Stat()
		if err != nil {
			return err
		}
		table, err := pqread.Open(file, info.Size())
		if err != nil {
			return rollout.Errorf(rollout.KindFormat, where, "the Parquet file cannot be read: %w", err)
		}
		rows := pqread.NewRows(table, 0)
		next = func() (json.RawMessage, error) {
			row, err := rows.Next()
			return bytes.Clone(row), err // valid until the next call
		}
	case len(head) > 0:
		dec := json.NewDecoder(text)
		list := strings.HasPrefix(strings.TrimLeft(string(head), " \t\r\n"), "[")
		if list {
			_, _ = dec.Token()
		}
		next = func() (row json.RawMessage, err error) {
			if !list || dec.More() {
				err = dec.Decode(&row)
			} else if _, err = dec.Token(); err == nil { // the list must end
				err = io.EOF
			} else {
				err = io.ErrUnexpectedEOF
			}
			return row, err
		}
	}
	for where.Line = 1; ; where.Line++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		row, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return rollout.Errorf(rollout.KindFormat, where, "the row cannot be read: %w", err)
		}
		if err := f(where, row); err != nil {
			return err
		}
	}
}
