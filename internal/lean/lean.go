// Package lean writes structures as JSON without what is zero: of what is kept of very many
// rollouts most numbers are.
package lean

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// Append appends a structure as encoding/json writes it, but for fields that are zero or hold
// nothing. Decoded into a zero structure they are as they were.
func Append(dst []byte, v reflect.Value) (_ []byte, err error) {
	dst = append(dst, '{')
	if dst, err = fields(dst, v); err != nil {
		return dst, err
	}
	return append(dst, '}'), nil
}

func fields(dst []byte, v reflect.Value) (_ []byte, err error) {
	t := v.Type()
	for i := range t.NumField() {
		x := v.Field(i)
		kind := x.Kind()
		if x.IsZero() || (kind == reflect.Map || kind == reflect.Slice) && x.Len() == 0 {
			continue
		}
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
			continue
		case f.Anonymous:
			if dst, err = fields(dst, x); err != nil {
				return dst, err
			}
			continue
		case name == "":
			name = f.Name
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), name...), '"', ':')
		if dst, err = value(dst, x); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func value(dst []byte, x reflect.Value) ([]byte, error) {
	switch t := x.Type(); {
	case x.Kind() == reflect.Struct:
		return Append(dst, x)
	case t.PkgPath() != "": // it may have a form of its own
	case x.CanInt():
		return strconv.AppendInt(dst, x.Int(), 10), nil
	case x.Kind() == reflect.Bool:
		return strconv.AppendBool(dst, x.Bool()), nil
	case x.CanFloat() && x.Float()-x.Float() == 0: // finite
		return strconv.AppendFloat(dst, x.Float(), 'g', -1, 64), nil
	case x.Kind() == reflect.Pointer && t.Elem().PkgPath() == "":
		return value(dst, x.Elem())
	}
	text, err := json.Marshal(x.Interface())
	return append(dst, text...), err
}
