// Package pipe is the common part of plumb's commands: JSON lines in, JSON lines out, one
// object for each, in the same order and with the same id.
package pipe

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/turnpack/turnpack/rollout"
)

// Lines returns the answer to one input line, which must encode as a JSON object. Its
// keys are written after the copied id.
type Lines func(ctx context.Context, line []byte) (any, error)

// Run is a verb after setup. It either answers lines or reads files. A Failure of Files counts
// as a failed line.
type Run struct {
	Lines Lines
	Files func(ctx context.Context, paths []string, emit func(any) error) error
}

// Verb is one command of plumb. Setup registers flags; the function it returns is called
// after they are parsed.
type Verb struct {
	Name, Help string
	Setup      func(fs *flag.FlagSet) func() (Run, error)
}

// Plain returns a verb that filters lines and has no flags.
func Plain(name, help string, lines Lines) Verb {
	return Verb{name, help, func(*flag.FlagSet) func() (Run, error) {
		return func() (Run, error) { return Run{Lines: lines}, nil }
	}}
}

// Cases decodes each line and passes it to answer.
func Cases[T any](answer func(ctx context.Context, c *T) (any, error)) Lines {
	return func(ctx context.Context, line []byte) (any, error) {
		c := new(T)
		if err := Decode(line, c); err != nil {
			return nil, err
		}
		return answer(ctx, c)
	}
}

// Case returns a verb that filters the cases of a kit.
func Case[T any](name, help string, answer func(c *T) (any, error)) Verb {
	return Plain(name, help, Cases(func(_ context.Context, c *T) (any, error) { return answer(c) }))
}

// Decode decodes a kit line into to. It keeps the kind of errors that have one.
func Decode(data []byte, to any) error {
	err := json.Unmarshal(data, to)
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*rollout.Error](err); ok {
		return e
	}
	return rollout.Errorf(rollout.KindFormat, rollout.Where{}, "a case line: %w", err)
}

// Unsupported is the error for a line that needs a feature this build lacks.
type Unsupported string

func (u Unsupported) Error() string { return "unsupported: " + string(u) }

// Main runs one command and returns the exit code: 0 if all lines were answered, 1 if
// some line failed, 2 for usage or start-up errors.
func Main(ctx context.Context, table []Verb, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		names := make([]string, len(table))
		for i, v := range table {
			names[i] = fmt.Sprintf("  %-14s %s", v.Name, v.Help)
		}
		sort.Strings(names)
		fmt.Fprintf(stderr, "usage: plumb NAME [flags] < in.jsonl > out.jsonl\n%s\n", strings.Join(names, "\n"))
		if len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
			return 0
		}
		return 2
	}
	for _, v := range table {
		if v.Name == args[0] {
			return runVerb(ctx, v, args[1:], stdin, stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "plumb: no verb %q; run 'plumb' for the list\n", args[0])
	return 2
}

func runVerb(ctx context.Context, v Verb, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("plumb "+v.Name, flag.ContinueOnError)
	fs.SetOutput(stderr)
	errorsAs := fs.String("errors", "exit", "exit: status 1 if any line failed; data: failures are data, status 0")
	start := v.Setup(fs)
	paths, err := interleaved(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	if *errorsAs != "exit" && *errorsAs != "data" {
		fmt.Fprintf(stderr, "plumb %s: --errors is %q, want exit or data\n", v.Name, *errorsAs)
		return 2
	}
	run, err := start()
	if err != nil {
		fmt.Fprintf(stderr, "plumb %s: %v\n", v.Name, reason(err))
		return 2
	}
	out := bufio.NewWriterSize(stdout, 1<<20)
	failed, err := pump(ctx, run, paths, stdin, out)
	if err = errors.Join(err, out.Flush()); err != nil {
		fmt.Fprintf(stderr, "plumb %s: %v\n", v.Name, reason(err))
		return 2
	}
	if failed > 0 && *errorsAs == "exit" {
		return 1
	}
	return 0
}

// interleaved parses flags before and after file names and returns the file names. All
// arguments after "--" are files.
func interleaved(fs *flag.FlagSet, args []string) ([]string, error) {
	var files []string
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		left := fs.Args()
		if n := len(args) - len(left); n > 0 && args[n-1] == "--" {
			return append(files, left...), nil
		}
		if len(left) == 0 {
			return files, nil
		}
		files, args = append(files, left[0]), left[1:]
	}
}

// reason returns why a verb ended, in words for its user.
func reason(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return err
}

func pump(ctx context.Context, run Run, paths []string, stdin io.Reader, out *bufio.Writer) (failed int, err error) {
	if run.Files != nil {
		err := run.Files(ctx, paths, func(v any) error {
			if _, ok := v.(Failure); ok {
				failed++
			}
			return writeLine(out, nil, v)
		})
		return failed, err
	}
	if len(paths) == 0 {
		return pumpLines(ctx, run.Lines, stdin, out)
	}
	for _, p := range paths {
		r, err := Open(p)
		if err != nil {
			return failed, err
		}
		n, err := pumpLines(ctx, run.Lines, r, out)
		failed += n
		if err = errors.Join(err, r.Close()); err != nil {
			return failed, fmt.Errorf("%s: %w", p, err)
		}
	}
	return failed, nil
}

func pumpLines(ctx context.Context, fn Lines, r io.Reader, out *bufio.Writer) (failed int, err error) {
	br := bufio.NewReaderSize(r, 1<<20)
	for {
		line, rerr := br.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := ctx.Err(); err != nil {
				return failed, err
			}
			ok, err := answer(ctx, fn, line, out)
			if err != nil {
				return failed, err
			}
			if !ok {
				failed++
			}
		}
		if rerr == io.EOF {
			return failed, nil
		}
		if rerr != nil {
			return failed, rerr
		}
	}
}

func answer(ctx context.Context, fn Lines, line []byte, out *bufio.Writer) (ok bool, err error) {
	var head struct {
		ID json.RawMessage `json:"id"`
	}
	err = json.Unmarshal(line, &head)
	if err == nil && line[0] != '{' {
		err = errors.New("it is null")
	}
	if err != nil {
		return false, writeLine(out, nil, FailureOf(rollout.Errorf(rollout.KindFormat, rollout.Where{}, "input line is not a JSON object: %w", err)))
	}
	v, ferr := fn(ctx, line)
	var no Unsupported
	switch {
	case errors.As(ferr, &no):
		return true, writeLine(out, head.ID, map[string]string{"unsupported": string(no)})
	case ferr != nil:
		return false, writeLine(out, head.ID, FailureOf(ferr))
	}
	err = writeLine(out, head.ID, v)
	if e, ok := errors.AsType[*json.UnsupportedValueError](err); ok {
		// No part of the answer has been written, so only this line fails.
		return false, writeLine(out, head.ID, FailureOf(rollout.Errorf(rollout.KindInput, rollout.Where{}, "the answer holds %s, which JSON has no number for", e.Str).
			WithFix("give numbers whose products and sums stay within float64")))
	}
	return true, err
}

// Failure is the answer to a line that failed. ID is that of an answer of Files.
type Failure struct {
	ID    *string `json:"id,omitempty"`
	Error Detail  `json:"error"`
}

// Detail is the kind of an error as named by rollout.Kind, and its text.
type Detail struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// FailureOf returns the answer that reports err.
func FailureOf(err error) Failure {
	kind := rollout.KindInternal
	if e, ok := errors.AsType[*rollout.Error](err); ok {
		kind = e.Kind
	}
	return Failure{Error: Detail{Kind: kind.String(), Message: err.Error()}}
}

// writeLine writes v as one line, with id before v's own keys. It writes nothing if v
// cannot be encoded as JSON.
func writeLine(out *bufio.Writer, id json.RawMessage, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	body := bytes.TrimSpace(buf.Bytes())
	if id != nil {
		if _, err := fmt.Fprintf(out, `{"id":%s`, id); err != nil {
			return err
		}
		if len(body) > 2 {
			out.WriteByte(',')
		}
		body = body[1:]
	}
	out.Write(body)
	return out.WriteByte('\n')
}

// Open opens a file and decompresses .gz and .zst.
func Open(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var r io.Reader = f
	switch {
	case strings.HasSuffix(path, ".gz"):
		r, err = gzip.NewReader(f)
	case strings.HasSuffix(path, ".zst"):
		r, err = zstd.NewReader(f, zstd.WithDecoderConcurrency(1)) // concurrency 1 starts no goroutine
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{r, f}, nil
}

// ReadFile reads a file opened with Open.
func ReadFile(path string) ([]byte, error) {
	r, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}

// Spans returns the runs of nonzero entries of a mask as [start, end).
func Spans[T int | int8](mask []T) [][2]int {
	out := [][2]int{}
	for i, m := range mask {
		switch {
		case m == 0:
		case i > 0 && mask[i-1] != 0:
			out[len(out)-1][1]++
		default:
			out = append(out, [2]int{i, i + 1})
		}
	}
	return out
}
