package value

import "fmt"

// Class is the cause of a template failure, as Python would name it.
type Class uint8

const (
	Other Class = iota
	Raised
	UndefinedUse
	Type
	Security
	Syntax
	Limit
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
