package chat

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Class is the cause of a template failure, in the terms of Jinja and Python: raise_exception, undefined, type,
// security, syntax, other or limit.
type Class string

// LimitError is the class of a failure because one of Limits was exceeded, or because the context ended.
const LimitError = Class(value.Limit)

// Error is the detail of a template failure, found with errors.As. The error that wraps it is of KindTemplate, or of
// KindLimit for LimitError, and carries the same position.
type Error struct {
	Class Class
	// Message is Jinja's message; for raise_exception, exactly the text that the template passed.
	Message string
	// Line and Column are 1-based, 0 if there is no position; Column counts characters.
	Line, Column int
	// Text is the source line, or the part of it around the position.
	Text string

	err error
}

// Unwrap returns the error of the context that ended the rendering, or nil.
func (e *Error) Unwrap() error { return e.err }

// Error returns the class, the message and the offending text.
func (e *Error) Error() string {
	s := string(e.Class) + ": " + e.Message
	if e.Text != "" {
		s += " at " + strconv.Quote(e.Text)
	}
	return s
}

// fail returns the error for a fault at position pos of the source, -1 for none.
func (t *Template) fail(f value.Fault, pos syntax.Pos) error {
	e := &Error{Class: Class(f.Class), Message: f.Msg, err: f.Err}
	where := rollout.Where{File: t.name}
	if pos >= 0 && int(pos) <= len(t.source) {
		before := t.source[:pos]
		start := strings.LastIndexByte(before, '\n') + 1
		e.Line = strings.Count(before, "\n") + 1
		e.Column = utf8.RuneCountInString(before[start:]) + 1
		e.Text = excerpt(t.source, start, int(pos))
		where.Line, where.Column = e.Line, e.Column
	}
	kind := rollout.KindTemplate
	if e.Class == LimitError {
		kind = rollout.KindLimit
	}
	return rollout.Errorf(kind, where, "%w", e)
}

func (t *Template) failf(c value.Class, format string, args ...any) error {
	return t.fail(*value.Faultf(c, format, args...), -1)
}

// excerpt returns the source line that begins at start, shortened to about a screen line around pos.
func excerpt(source string, start, pos int) string {
	end := len(source)
	if i := strings.IndexByte(source[pos:], '\n'); i >= 0 {
		end = pos + i
	}
	for start < pos-30 || !utf8.RuneStart(source[min(start, len(source)-1)]) && start < pos {
		start++
	}
	for end > pos+50 || end < len(source) && !utf8.RuneStart(source[end]) && end > pos {
		end--
	}
	return strings.TrimSpace(source[start:end])
}
