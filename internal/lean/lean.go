// Package lean encodes structs with mostly zero fields in few bytes: a run stores one of every rollout, and
// reads all of them when it continues from another run. Package spool stores rows with it.
package lean

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
)

// Append appends the number and the value of each nonempty field of a struct. The contents of interfaces are
// omitted; a type that Read cannot restore is an error.
func Append(dst []byte, v any) ([]byte, error) { return value(dst, reflect.ValueOf(v)) }

func value(dst []byte, x reflect.Value) (_ []byte, err error) {
	switch kind := x.Kind(); {
	case kind == reflect.Bool:
		if x.Bool() {
			return append(dst, 1), nil
		}
		return append(dst, 0), nil
	case x.CanInt():
		return binary.AppendVarint(dst, x.Int()), nil
	case x.CanUint():
		return binary.AppendUvarint(dst, x.Uint()), nil
	case x.CanFloat():
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(x.Float())), nil
	case kind == reflect.String:
		return append(binary.AppendUvarint(dst, uint64(x.Len())), x.String()...), nil
	case kind == reflect.Pointer && !x.IsNil():
		return value(dst, x.Elem())
	case kind == reflect.Slice && x.Type().Elem().Kind() == reflect.Uint8:
		return append(binary.AppendUvarint(dst, uint64(x.Len())), x.Bytes()...), nil
	case kind == reflect.Slice:
		dst = binary.AppendUvarint(dst, uint64(x.Len()))
		for i := 0; i < x.Len() && err == nil; i++ {
			dst, err = value(dst, x.Index(i))
		}
		return dst, err
	case kind == reflect.Map:
		dst = binary.AppendUvarint(dst, uint64(x.Len()))
		for of := x.MapRange(); err == nil && of.Next(); {
			if dst, err = value(dst, of.Key()); err == nil {
				dst, err = value(dst, of.Value())
			}
		}
		return dst, err
	case kind == reflect.Struct:
		for i := 0; i < x.NumField() && err == nil; i++ {
			f := x.Field(i)
			if k := f.Kind(); k == reflect.Interface || (k == reflect.Map || k == reflect.Slice) && f.Len() == 0 ||
				f.IsZero() && !(f.CanFloat() && math.Signbit(f.Float())) { // IsZero is true of -0
				continue
			}
			dst, err = value(binary.AppendUvarint(dst, uint64(i+1)), f)
		}
		return append(dst, 0), err
	}
	return dst, fmt.Errorf("a %v has no lean form", x.Type())
}

// Read decodes what Append wrote into the struct that into points to. After an error the struct's contents are
// undefined.
func Read(b []byte, into any) error {
	r := reader{rest: b}
	if r.value(reflect.ValueOf(into).Elem()); r.damaged || len(r.rest) > 0 {
		return errDamaged
	}
	return nil
}

var errDamaged = errors.New("the value is damaged")

type reader struct {
	rest    []byte
	damaged bool
}

// take consumes n bytes; a damaged value may have fewer.
func (r *reader) take(n int) []byte {
	if r.damaged = r.damaged || n <= 0 || n > len(r.rest); r.damaged {
		return make([]byte, 8)
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

func (r *reader) uint() uint64 {
	x, n := binary.Uvarint(r.rest)
	r.take(n)
	return x
}

// len reads the number of elements that take at least one byte each.
func (r *reader) len() int {
	n := r.uint()
	if r.damaged = r.damaged || n > uint64(len(r.rest)); r.damaged {
		return 0
	}
	return int(n)
}

func (r *reader) value(x reflect.Value) {
	switch kind := x.Kind(); {
	case kind == reflect.Bool:
		x.SetBool(r.take(1)[0] > 0)
	case x.CanInt():
		v, n := binary.Varint(r.rest)
		r.take(n)
		r.damaged = r.damaged || x.OverflowInt(v)
		x.SetInt(v)
	case x.CanUint():
		v := r.uint()
		r.damaged = r.damaged || x.OverflowUint(v)
		x.SetUint(v)
	case x.CanFloat():
		x.SetFloat(math.Float64frombits(binary.LittleEndian.Uint64(r.take(8))))
	case kind == reflect.String:
		if n := r.len(); n > 0 {
			x.SetString(string(r.take(n)))
		}
	case kind == reflect.Pointer:
		x.Set(reflect.New(x.Type().Elem()))
		r.value(x.Elem())
	case kind == reflect.Slice && x.Type().Elem().Kind() == reflect.Uint8:
		if n := r.len(); n > 0 {
			x.SetBytes(bytes.Clone(r.take(n)))
		}
	case kind == reflect.Slice:
		for range r.len() {
			one := reflect.New(x.Type().Elem()).Elem()
			r.value(one)
			x.Set(reflect.Append(x, one))
		}
	case kind == reflect.Map:
		n := r.len()
		x.Set(reflect.MakeMap(x.Type()))
		for range n {
			key, of := reflect.New(x.Type().Key()).Elem(), reflect.New(x.Type().Elem()).Elem()
			r.value(key)
			r.value(of)
			x.SetMapIndex(key, of)
		}
	case kind == reflect.Struct:
		for i := r.uint(); i > 0 && !r.damaged; i = r.uint() {
			if r.damaged = i > uint64(x.NumField()) || !x.Field(int(i-1)).CanSet(); !r.damaged {
				r.value(x.Field(int(i - 1)))
			}
		}
	default:
		r.damaged = true
	}
}
