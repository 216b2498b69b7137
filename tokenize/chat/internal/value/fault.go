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

func TypeError(format string, args ...any) *Fault  { return Faultf(Type, format, args...) }
func ValueError(format string, args ...any) *Fault { return Faultf(Other, format, args...) }
func LimitError(format string, args ...any) *Fault { return Faultf(Limit, format, args...) }
