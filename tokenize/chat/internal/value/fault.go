package value

import "fmt"

// Class is the cause of a template failure, in the terms of Jinja and Python.
type Class string

// The classes.
const (
	Raised       Class = "raise_exception" // the template refused the conversation
	UndefinedUse Class = "undefined"       // something missing was used
	Type         Class = "type"            // an operation on the wrong type
	Security     Class = "security"        // the sandbox forbids it
	Syntax       Class = "syntax"          // the template is malformed
	Other        Class = "other"           // any other Python error
	Limit        Class = "limit"           // a limit was exceeded, or the context ended
)

// Fault is a failure of an operation on values.
type Fault struct {
	Class Class
	Msg   string
	Err   error // the underlying error, if a context ended
}

func (f *Fault) Error() string { return f.Msg }

// Faultf builds a Fault.
func Faultf(c Class, format string, args ...any) *Fault {
	return &Fault{Class: c, Msg: fmt.Sprintf(format, args...)}
}

// Stopped is the result of an operation after a failure.
var Stopped = &Undefined{Hint: "evaluation stopped"}

// Fail records f unless it is nil or there was an earlier failure.
func (l *Limits) Fail(f *Fault) Value {
	if l.Err == nil {
		l.Err = f
	}
	return Stopped
}

// Failf records a new fault as Fail does.
func (l *Limits) Failf(c Class, format string, args ...any) Value {
	return l.Fail(Faultf(c, format, args...))
}
