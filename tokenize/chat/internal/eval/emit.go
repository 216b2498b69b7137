package eval

import (
	"github.com/turnpack/turnpack/tokenize/chat/internal/builtin"
	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// emit evaluates an expression and prints it, where possible without building intermediate strings.
func (x *exec) emit(e expr) {
	if x.Escape {
		x.write(e.eval(x))
		return
	}
	switch e := e.(type) {
	case *sumExpr:
		e.emit(x)
	case *concatExpr:
		for _, it := range e.items {
			x.emit(it)
		}
		x.at(e.pos)
	case *filterExpr:
		e.emit(x)
	case *callExpr: // a macro writes directly to the output
		if v := e.run(x, true); v != nil {
			x.write(v)
		}
		x.at(e.pos)
	default:
		x.write(e.eval(x))
	}
}

// emit prints the terms one by one if they are strings. If Markup is involved it evaluates the sum, which escapes the
// other strings.
func (e *sumExpr) emit(x *exec) {
	if x.prog.markup {
		x.write(e.eval(x))
		return
	}
	for i, t := range e.terms {
		if f, ok := t.(*filterExpr); ok && f.json && i > 0 {
			f.emit(x)
			continue
		}
		v := t.eval(x)
		s, ok := v.(*value.Str)
		switch {
		case ok && x.Err == nil:
			x.out.Str(s)
			continue
		case i == 0:
			x.write(e.add(x, v, 1))
		default:
			x.arith("+", value.Empty, v, e.pos[i]) // always fails
		}
		return
	}
}

func (e *filterExpr) emit(x *exec) {
	if !e.json {
		x.write(e.eval(x))
		return
	}
	v := e.x.eval(x)
	mark := x.mark()
	a := e.args.eval(x)
	if x.Err == nil {
		builtin.WriteJSON(&x.Context, x.out, v, a)
	}
	x.pop(mark)
	x.at(e.pos)
}

// write prints a value.
func (x *exec) write(v value.Value) {
	if x.Err != nil {
		return
	}
	if x.Escape {
		x.out.Str(py.Escape(x.SoftStr(v), x.Lim))
		return
	}
	if s, ok := v.(*value.Str); ok {
		x.out.Str(s)
		return
	}
	value.WriteStr(x.out, x.Lim, v)
}
