package rollout

import (
	"bytes"
	"errors"
	"io"
	"iter"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

// ReaderOptions of NewReader. The zero value is the right default.
type ReaderOptions struct {
	File   string // name used in errors and in Origin
	Limits Limits
	// ReplaceInvalidUTF8 reads bytes that are not UTF-8 as U+FFFD, with a Note. By
	// default such a line is an error.
	ReplaceInvalidUTF8 bool
}

// Validate reports every option that is out of range.
func (o ReaderOptions) Validate() error { return o.Limits.Validate() }

// Reader reads native rollout JSONL, one rollout a line. It holds one line at a
// time. It is not safe for concurrent use.
type Reader struct {
	lines *Lines
	opt   ReaderOptions
	doc   jsonscan.Doc
	err   error
}

// NewReader returns a reader of native JSONL. Options that do not validate are
// reported by the first Next.
func NewReader(r io.Reader, opt ReaderOptions) *Reader {
	err := opt.Validate()
	opt.Limits = opt.Limits.withDefaults()
	return &Reader{lines: NewLines(r, opt.Limits.LineBytes), opt: opt, err: err}
}

// Next returns the next rollout, io.EOF after the last one. Any other error is
// about one line, which it names, and the following call goes on with the line
// after it; only a failing underlying reader ends the stream for good.
func (r *Reader) Next() (*Rollout, error) {
	if r.lines == nil && r.err == nil {
		r.err = zeroValue("rollout.Reader", "NewReader")
	}
	if r.err != nil {
		return nil, r.err
	}
	for {
		line, err := r.lines.Next()
		if err != nil {
			return nil, r.located(err)
		}
		if len(bytes.TrimSpace(line.Text)) == 0 {
			continue
		}
		return r.decode(line)
	}
}

func (r *Reader) located(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		c := *e
		if c.Where.File == "" {
			c.Where.File = r.opt.File
		}
		return &c
	}
	return err
}

// All yields every rollout and every error; it ends at the end of the stream or
// when the stream itself fails.
func (r *Reader) All() iter.Seq2[*Rollout, error] {
	return func(yield func(*Rollout, error) bool) {
		for {
			out, err := r.Next()
			if err == io.EOF || !yield(out, err) || r.err != nil || r.lines.Failed() {
				return
			}
		}
	}
}

// ParseJSON reads one native rollout from text that holds nothing else. Where a
// record has no id, ID stays empty.
func ParseJSON(text []byte, opt ReaderOptions) (*Rollout, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	opt.Limits = opt.Limits.withDefaults()
	r := &Reader{opt: opt}
	return r.decode(Line{Text: text, Ended: true})
}

func (r *Reader) decode(line Line) (*Rollout, error) {
	where := Where{File: r.opt.File, Line: line.Number}
	text, replaced := line.Text, false
	v, err := r.doc.Parse(text, jsonscan.Options{Depth: r.opt.Limits.Depth})
	if e, ok := errors.AsType[*jsonscan.SyntaxError](err); ok && e.Class == jsonscan.BadUTF8 && r.opt.ReplaceInvalidUTF8 {
		text, replaced = bytes.ToValidUTF8(text, []byte("\uFFFD")), true
		v, err = r.doc.Parse(text, jsonscan.Options{Depth: r.opt.Limits.Depth})
	}
	if err != nil {
		return nil, syntaxError(err, where, line.Ended)
	}
	d := &decoder{where: where, lim: r.opt.Limits}
	if replaced {
		d.note("invalid_utf8", 0, "bytes that are not UTF-8 were read as U+FFFD")
	}
	return d.rollout(v)
}

func syntaxError(err error, where Where, ended bool) error {
	e, ok := errors.AsType[*jsonscan.SyntaxError](err)
	if !ok {
		return Errorf(KindInternal, where, "%w", err)
	}
	where.Byte = At(e.Offset)
	switch e.Class {
	case jsonscan.TooDeep, jsonscan.TooBig:
		return Errorf(KindLimit, where, "%s", e.Msg).WithFix("raise Limits.Depth if the file is trusted")
	case jsonscan.BadUTF8:
		return Errorf(KindFormat, where, "%s", e.Msg).WithFix("re-encode the file, or set ReplaceInvalidUTF8")
	case jsonscan.Truncated:
		if !ended {
			return Errorf(KindFormat, where, "the last line is cut off: %s", e.Msg).WithFix("drop the line or fetch the file again")
		}
	}
	return Errorf(KindFormat, where, "not JSON: %s", e.Msg)
}

// Writer writes native rollout JSONL. It is not safe for concurrent use.
type Writer struct {
	w   io.Writer
	buf []byte
}

// NewWriter returns a writer of native JSONL. Each Write of a rollout is one
// Write of w; wrap a file in a bufio.Writer.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes one rollout as a line. A rollout that cannot be written leaves
// nothing in the file.
func (w *Writer) Write(r *Rollout) error {
	if w.w == nil {
		return zeroValue("rollout.Writer", "NewWriter")
	}
	var err error
	if w.buf, err = AppendJSON(w.buf[:0], r); err != nil {
		return err
	}
	w.buf = append(w.buf, '\n')
	if _, err := w.w.Write(w.buf); err != nil {
		return Errorf(KindInput, Where{Rollout: r.ID}, "the line cannot be written: %w", err)
	}
	return nil
}
