package jsonl

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"slices"
	"strconv"
	"sync"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/internal/lines"
)

// Options configures Read and Parse. The zero value is a good default.
type Options struct {
	File   string // name used in errors and in Origin
	Limits Limits
	// ReplaceInvalidUTF8 reads bytes that are not UTF-8 as U+FFFD and adds a Note. By
	// default such a line is an error.
	ReplaceInvalidUTF8 bool
}

// Read yields the rollouts of native JSONL, one per line; for a line that cannot be read it
// yields an error that names the line. It ends at the end of the stream, or after yielding
// a read error or an error about invalid options. It holds one line in memory at a time.
func Read(in io.Reader, opt Options) iter.Seq2[*rollout.Rollout, error] {
	return func(yield func(*rollout.Rollout, error) bool) {
		err := opt.Limits.validate()
		if err == nil && in == nil {
			err = rollout.Errorf(rollout.KindInput, rollout.Where{File: opt.File}, "expected a stream to read, found nil")
		}
		if err != nil {
			yield(nil, err)
			return
		}
		p := parser{opt: opt.withDefaults()}
		for all := lines.New(in, p.opt.Limits.LineBytes); ; {
			line, err := all.Next()
			if err == io.EOF {
				return
			}
			var r *rollout.Rollout
			switch {
			case err != nil:
				err = rollout.In(err, rollout.Where{File: opt.File})
			case len(bytes.TrimSpace(line.Text)) == 0:
				continue
			default:
				r, err = p.decode(line)
			}
			if !yield(r, err) || all.Failed() {
				return
			}
		}
	}
}

// Parse reads one native rollout from text that holds nothing else. ID stays empty if the
// record has none.
func Parse(text []byte, opt Options) (*rollout.Rollout, error) {
	if err := opt.Limits.validate(); err != nil {
		return nil, err
	}
	p := parsers.Get().(*parser)
	p.opt = opt.withDefaults()
	out, err := p.decode(lines.Line{Text: text, Ended: true})
	if len(text) <= maxParser {
		parsers.Put(p)
	}
	return out, err
}

// parser parses lines, reusing the memory of its document.
type parser struct {
	opt Options
	doc jsonscan.Doc
}

// parsers are reused for the memory of their documents, if the text was at most maxParser
// bytes.
var parsers = sync.Pool{New: func() any { return new(parser) }}

const maxParser = 64 << 10

func (p *parser) decode(line lines.Line) (*rollout.Rollout, error) {
	where := rollout.Where{File: p.opt.File, Line: line.Number}
	text, replaced := line.Text, false
	v, err := p.doc.Parse(text, jsonscan.Options{Depth: p.opt.Limits.Depth})
	if e, ok := errors.AsType[*jsonscan.SyntaxError](err); ok && e.Class == jsonscan.BadUTF8 && p.opt.ReplaceInvalidUTF8 {
		text, replaced = bytes.ToValidUTF8(text, []byte("\uFFFD")), true
		v, err = p.doc.Parse(text, jsonscan.Options{Depth: p.opt.Limits.Depth})
	}
	if err != nil {
		return nil, syntaxError(err, where, line.Ended)
	}
	d := &decoder{where: where, lim: p.opt.Limits}
	if replaced {
		d.note("invalid_utf8", 0, "bytes that are not UTF-8 were read as U+FFFD")
	}
	return d.rollout(v)
}

func syntaxError(err error, where rollout.Where, ended bool) error {
	e, ok := errors.AsType[*jsonscan.SyntaxError](err)
	if !ok {
		return rollout.Errorf(rollout.KindInternal, where, "%w", err)
	}
	where.Byte = rollout.At(e.Offset)
	switch e.Class {
	case jsonscan.TooDeep, jsonscan.TooBig:
		return rollout.Errorf(rollout.KindLimit, where, "%s", e.Msg).WithFix("raise Limits.Depth if the file is trusted")
	case jsonscan.BadUTF8:
		return rollout.Errorf(rollout.KindFormat, where, "%s", e.Msg).WithFix("re-encode the file, or set ReplaceInvalidUTF8")
	case jsonscan.Truncated:
		if !ended {
			return rollout.Errorf(rollout.KindFormat, where, "the last line is cut off: %s", e.Msg).WithFix("drop the line or fetch the file again")
		}
	}
	return rollout.Errorf(rollout.KindFormat, where, "not JSON: %s", e.Msg)
}

// rollout reads a whole record. The id comes first, so that every error can name it.
func (d *decoder) rollout(v jsonscan.Value) (*rollout.Rollout, error) {
	if id := v.Get("id"); !id.IsNull() {
		d.where.Rollout = d.identifier(id, "/id")
	}
	r := &rollout.Rollout{}
	rolloutObject.read(d, v, "", r)
	if d.err != nil {
		return nil, d.err
	}
	if r.Origin == (rollout.Origin{}) {
		r.Origin = rollout.Origin{File: d.where.File, Line: d.where.Line, Format: "native"}
	}
	if r.ID == "" && d.where.Line > 0 {
		r.ID = "line-" + strconv.Itoa(d.where.Line)
		d.note("id_missing", 0, "the record has no id; its line number was taken")
	}
	d.assumeSampled(r)
	r.Notes = append(r.Notes, d.notes...)
	return r, nil
}

// assumeSampled sets Sampled of unmarked replies: those of turns or, without turns and
// marks, all.
func (d *decoder) assumeSampled(r *rollout.Rollout) {
	for i := range r.Turns {
		if m := r.Turns[i].Message; m >= 0 && m < len(r.Messages) && !d.marked[m] && r.Messages[m].Role == rollout.RoleAssistant {
			r.Messages[m].Sampled = rollout.SampledByPolicy
		}
	}
	if r.Turns != nil || slices.Contains(d.marked, true) {
		return
	}
	assumed := false
	for i := range r.Messages {
		if r.Messages[i].Role == rollout.RoleAssistant {
			r.Messages[i].Sampled = rollout.SampledByPolicy
			assumed = true
		}
	}
	if assumed {
		d.note("sampled_assumed", 0, "the record has neither turns nor sampled marks: every assistant message was taken as the policy's own")
	}
}
