package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind is the closed set of failure causes. A Kind is itself an error, so
// errors.Is(err, rollout.KindTemplate) works on anything this module returns;
// each failure has exactly one Kind.
type Kind uint8

// The kinds. The zero value is no kind and matches nothing.
const (
	KindInput     Kind = iota + 1 // the caller's or the dump's data is wrong
	KindTemplate                  // a chat template cannot be compiled or rendered
	KindTokenizer                 // a tokenizer cannot be loaded or cannot encode
	KindDrift                     // recorded ids contradict each other and the policy refuses repair
	KindLimit                     // a declared bound was exceeded
	KindScorer                    // an outcome scorer could not decide
	KindJudge                     // a process reward judge failed
	KindFormat                    // bytes are not the file format they claim to be
	KindSandbox                   // a sandbox could not be made, or was lost: never the policy's doing
	KindInternal                  // a broken invariant of this module: please report
)

var kindNames = [...]string{"", "input", "template", "tokenizer", "drift", "limit", "scorer", "judge", "format", "sandbox", "internal"}

// String returns the lower-case name used in JSON reports.
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return "kind(" + strconv.Itoa(int(k)) + ")"
	}
	return kindNames[k]
}

// Error makes a Kind usable as the target of errors.Is.
func (k Kind) Error() string { return k.String() + " error" }

// Index is an optional 0-based position whose zero value means "not known". It is for error
// locations only, where most parts are unknown; data that normally has an index
// (Turn.Message, the columns of a Sequence) uses -1 for none.
type Index int

// At returns the Index of position i (0-based).
func At(i int) Index { return Index(i + 1) }

// Get returns the 0-based position and whether it is known.
func (x Index) Get() (int, bool) { return int(x) - 1, x > 0 }

// Where locates a failure. Unknown parts keep their zero value.
type Where struct {
	File    string
	Line    int    // 1-based
	Column  int    // 1-based, in characters
	Rollout string // rollout id
	Message Index  // message index in the rollout
	Turn    Index  // turn index in the rollout
	Token   Index  // token offset in the sequence
	Byte    Index  // byte offset in the named file, line or field
	Field   string // JSON pointer or column name
}

// String prints the known parts, outermost first.
func (w Where) String() string {
	var parts []string
	place := Printable(w.File)
	if w.Line > 0 {
		if place += ":"; w.File == "" {
			place = "line "
		}
		place += strconv.Itoa(w.Line)
		if w.Column > 0 {
			place += ":" + strconv.Itoa(w.Column)
		}
	}
	if place != "" {
		parts = append(parts, place)
	}
	if w.Rollout != "" {
		parts = append(parts, "rollout "+strconv.Quote(w.Rollout))
	}
	for _, x := range []struct {
		name string
		at   Index
	}{{"message", w.Message}, {"turn", w.Turn}, {"token", w.Token}, {"byte", w.Byte}} {
		if i, ok := x.at.Get(); ok {
			parts = append(parts, x.name+" "+strconv.Itoa(i))
		}
	}
	if w.Field != "" {
		parts = append(parts, Printable(w.Field))
	}
	return strings.Join(parts, ", ")
}

// Error is a failure with its details: what was expected and found (Msg), where, and what
// to do (Fix). Use errors.As to get it; errors.Is matches its Kind and its cause.
type Error struct {
	Kind  Kind
	Where Where
	Msg   string
	Fix   string // imperative sentence, "" if there is no remedy
	Err   error  `json:"-"` // cause, may be nil
}

// Errorf builds an Error. At most one %w verb in format sets the cause.
func Errorf(kind Kind, where Where, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	e := &Error{Kind: kind, Where: where, Msg: wrapped.Error()}
	if u, ok := wrapped.(interface{ Unwrap() error }); ok {
		e.Err = u.Unwrap()
	}
	return e
}

// WithFix returns e with the remedy set.
func (e *Error) WithFix(format string, args ...any) *Error {
	c := *e
	c.Fix = fmt.Sprintf(format, args...)
	return &c
}

// In returns an *Error with its unknown location parts filled from where, other errors
// unchanged.
func In(err error, where Where) error {
	e, ok := err.(*Error)
	if !ok {
		return err
	}
	c := *e
	w := &c.Where
	if w.Line == 0 {
		w.Line, w.Column = where.Line, where.Column
	}
	w.File, w.Rollout, w.Field = cmp.Or(w.File, where.File), cmp.Or(w.Rollout, where.Rollout), cmp.Or(w.Field, where.Field)
	w.Message, w.Turn = cmp.Or(w.Message, where.Message), cmp.Or(w.Turn, where.Turn)
	w.Token, w.Byte = cmp.Or(w.Token, where.Token), cmp.Or(w.Byte, where.Byte)
	return &c
}

// Plain returns err without its causes, which JSON can hold: the same text, Kind and, if
// err is itself an *Error, location; nil for nil. An error without a Kind gets KindInput.
func Plain(err error) *Error {
	switch e := err.(type) {
	case nil:
		return nil
	case *Error:
		c := *e
		c.Err = nil
		return &c
	}
	out := &Error{Kind: KindInput, Msg: err.Error()}
	if e, ok := errors.AsType[*Error](err); ok {
		out.Kind = e.Kind
	}
	return out
}

// Error returns "where: message (fix)" with control characters escaped (see Printable).
func (e *Error) Error() string {
	s := printableLines(e.Msg)
	if w := e.Where.String(); w != "" {
		s = w + ": " + s
	}
	if e.Fix != "" {
		s += " (" + printableLines(e.Fix) + ")"
	}
	return s
}

// Is reports whether target is e's Kind.
func (e *Error) Is(target error) bool {
	k, ok := target.(Kind)
	return ok && k == e.Kind && k != 0
}

// Unwrap returns the cause. Kinds anywhere in the chain of causes are hidden, so that each
// failure matches exactly one Kind; errors.Is and errors.As still find every other cause,
// such as context.Canceled.
func (e *Error) Unwrap() error {
	_, located := errors.AsType[*Error](e.Err)
	if _, kind := errors.AsType[Kind](e.Err); !located && !kind {
		return e.Err
	}
	return kindless{e.Err}
}

// kindless wraps a cause and hides its Kinds and Errors from errors.Is and errors.As.
type kindless struct{ error }

func (c kindless) Is(target error) bool {
	_, kind := target.(Kind)
	return !kind && errors.Is(c.error, target)
}

func (c kindless) As(target any) bool {
	switch target.(type) {
	case **Error, *Kind:
		return false
	}
	return errors.As(c.error, target)
}

// nilRollout returns the error for a nil rollout.
func nilRollout() *Error {
	return Errorf(KindInput, Where{}, "the rollout is nil").WithFix("leave it out")
}

// Printable returns s with everything that a terminal would act on, or not show, written as
// escapes: control characters, those that change the text direction or have no width, and
// bytes that are not UTF-8. Ids and file names of a dump are untrusted.
func Printable(s string) string { return escaped(s, unprintable) }

// printableLines is Printable for text of several lines.
func printableLines(s string) string {
	return escaped(s, func(c rune) bool { return c != '\n' && c != '\t' && unprintable(c) })
}

// escaped returns s with invalid UTF-8 and bad characters written as escapes.
func escaped(s string, bad func(rune) bool) string {
	if !strings.ContainsFunc(s, bad) {
		return s
	}
	var b strings.Builder
	for i, c := range s {
		switch {
		case c == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case bad(c):
			q := strconv.QuoteRuneToASCII(c)
			b.WriteString(q[1 : len(q)-1])
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

func unprintable(c rune) bool {
	return unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || c == utf8.RuneError
}
