package jsonl

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// object describes one kind of JSON object of the format, which is read into and written
// from a T.
type object[T any] struct {
	fields []field[T] // in the order in which they are written
	// extra returns the map for keys without a field; nil if unknown keys are an error.
	extra func(*T) *map[string]json.RawMessage
	// done runs after all members are read; may be nil.
	done func(d *decoder, v jsonscan.Value, t *T)
}

// field is one key of an object.
type field[T any] struct {
	key string
	// own says that Extra never holds the key. Fields without own cannot represent every
	// recorded value (null, ""); Extra keeps those values.
	own bool
	// read reads v into t. It returns false if Extra must keep the value. at is the JSON
	// pointer within the object.
	read func(d *decoder, t *T, v jsonscan.Value, at string) bool
	// write writes key and value and returns true, or returns false if t has no value. It
	// is nil for a key that is never written.
	write func(e *encoder, t *T, at string) bool
	// nested says that the value is an object whose unknown keys are kept in Extra under
	// this key.
	nested bool
	at     string // "/" + key
}

func newObject[T any](extra func(*T) *map[string]json.RawMessage, fields ...field[T]) *object[T] {
	for i := range fields {
		fields[i].at = "/" + fields[i].key
	}
	return &object[T]{fields: fields, extra: extra}
}

// find returns the index of the field with the key, -1 for none. Keys mostly come in table
// order, so the search begins at next.
func (o *object[T]) find(key string, next int) int {
	for n := range o.fields {
		i := next + n
		if i >= len(o.fields) {
			i -= len(o.fields)
		}
		if o.fields[i].key == key {
			return i
		}
	}
	return -1
}

// members reads the members of v into t and returns the members without a field.
func (o *object[T]) members(d *decoder, v jsonscan.Value, t *T) map[string]json.RawMessage {
	if v.Kind() != jsonscan.Object {
		d.want(v, "", "an object")
		return nil
	}
	if k, dup := v.DuplicateKey(); dup {
		d.fail(rollout.KindFormat, k, "", "key %q occurs twice in one object", k.String())
		return nil
	}
	var rest map[string]json.RawMessage
	next := 0
	for k, m := range v.Members() {
		if d.err != nil {
			return nil
		}
		if i := o.find(k, next); i >= 0 {
			next = i + 1
			if f := &o.fields[i]; f.read(d, t, m, f.at) {
				continue
			}
		}
		if rest == nil {
			rest = map[string]json.RawMessage{}
		}
		rest[k] = m.Clone()
	}
	return rest
}

// read reads v into t; at is the JSON pointer of v within the current object.
func (o *object[T]) read(d *decoder, v jsonscan.Value, at string, t *T) {
	outer := d.prefix
	d.prefix += at
	rest := o.members(d, v, t)
	switch {
	case len(rest) == 0:
	case o.extra == nil:
		d.fail(rollout.KindFormat, v, "", "unknown key %q", sortedKeys(rest)[0])
	default:
		keep(o.extra(t), rest)
	}
	if o.done != nil && d.err == nil {
		o.done(d, v, t)
	}
	d.prefix = outer
}

func keep(extra *map[string]json.RawMessage, rest map[string]json.RawMessage) {
	if *extra == nil {
		*extra = rest
		return
	}
	for k, raw := range rest {
		(*extra)[k] = raw
	}
}

// write writes t, then the keys of extra. at is the JSON pointer of t within the current
// object.
func (o *object[T]) write(e *encoder, t *T, at string, extra map[string]json.RawMessage) {
	outer := e.prefix
	e.prefix += at
	e.b = append(e.b, '{')
	written := 0 // one bit per field
	for i := range o.fields {
		if f := &o.fields[i]; f.write != nil && f.write(e, t, f.at) {
			written |= 1 << i
		}
	}
	if len(extra) > 0 {
		for _, k := range sortedKeys(extra) {
			if i := o.find(k, 0); i >= 0 && (o.fields[i].own || written&(1<<i) != 0) {
				if !o.fields[i].nested {
					e.fail("/"+k, "Extra holds %q, which is a field of its own", k)
				}
				continue
			}
			e.key(k)
			e.raw(extra[k], "/"+k)
		}
	}
	e.b = append(e.b, '}')
	e.prefix = outer
}

// put writes t with the keys of its own Extra.
func (o *object[T]) put(e *encoder, t *T, at string) {
	var extra map[string]json.RawMessage
	if o.extra != nil {
		extra = *o.extra(t)
	}
	o.write(e, t, at, extra)
}

// codec reads and writes values of one type.
type codec[V any] struct {
	read  func(d *decoder, v jsonscan.Value, at string) V
	write func(e *encoder, x V, at string)
}

var (
	texts    = codec[string]{(*decoder).text, (*encoder).text}
	names    = codec[string]{(*decoder).identifier, (*encoder).text}
	integers = codec[int]{(*decoder).integer, func(e *encoder, x int, _ string) { e.int(int64(x)) }}
	int32s   = codec[int32]{(*decoder).int32, func(e *encoder, x int32, _ string) { e.int(int64(x)) }}
	int64s   = codec[int64]{func(d *decoder, v jsonscan.Value, at string) int64 { return int64(d.integer(v, at)) }, func(e *encoder, x int64, _ string) { e.int(x) }}
	floats   = codec[float64]{(*decoder).float, func(e *encoder, x float64, at string) { e.float(x, 64, at) }}
	float32s = codec[float32]{func(d *decoder, v jsonscan.Value, at string) float32 { return float32(d.float(v, at)) }, func(e *encoder, x float32, at string) { e.float(float64(x), 32, at) }}
	booleans = codec[bool]{(*decoder).boolean, func(e *encoder, x bool, _ string) { e.b = strconv.AppendBool(e.b, x) }}
)

// enumCodec is the codec of an enum, written as its name.
func enumCodec[V interface {
	MarshalText() ([]byte, error)
}, P interface {
	*V
	UnmarshalText([]byte) error
}]() codec[V] {
	return codec[V]{func(d *decoder, v jsonscan.Value, at string) (x V) {
		s := d.text(v, at)
		if d.err == nil {
			if err := P(&x).UnmarshalText([]byte(s)); err != nil {
				d.fail(rollout.KindFormat, v, at, "%s", err)
			}
		}
		return x
	}, func(e *encoder, x V, at string) {
		b, err := x.MarshalText()
		if err != nil {
			e.fail(at, "%s", err)
		}
		e.text(string(b), at)
	}}
}

// always is a field that is always written.
func always[T, V any](key string, of func(*T) *V, c codec[V]) field[T] {
	return field[T]{key: key, own: true,
		read: func(d *decoder, t *T, v jsonscan.Value, at string) bool { *of(t) = c.read(d, v, at); return true },
		write: func(e *encoder, t *T, at string) bool {
			e.key(key)
			c.write(e, *of(t), at)
			return true
		}}
}

// value is a field that is written unless it is zero.
func value[T any, V comparable](key string, of func(*T) *V, c codec[V]) field[T] {
	f := always(key, of, c)
	write := f.write
	f.write = func(e *encoder, t *T, at string) bool {
		var zero V
		return *of(t) != zero && write(e, t, at)
	}
	return f
}

// filled is a string field; Extra keeps a null or empty value.
func filled[T any](key string, of func(*T) *string) field[T] {
	f := value(key, of, texts)
	f.own = false
	f.read = func(d *decoder, t *T, v jsonscan.Value, at string) bool {
		if v.IsNull() || v.Is("") {
			return false
		}
		*of(t) = d.text(v, at)
		return true
	}
	return f
}

// present is a field that is written unless none says that it has no value; Extra keeps a
// null.
func present[T, V any](key string, of func(*T) *V, none func(V) bool, c codec[V]) field[T] {
	f := always(key, of, c)
	read, write := f.read, f.write
	f.own = false
	f.read = func(d *decoder, t *T, v jsonscan.Value, at string) bool { return !v.IsNull() && read(d, t, v, at) }
	f.write = func(e *encoder, t *T, at string) bool { return !none(*of(t)) && write(e, t, at) }
	return f
}

// pointer is an optional field, nil if absent.
func pointer[T, V any](key string, of func(*T) **V, c codec[V]) field[T] {
	return present(key, of, func(x *V) bool { return x == nil }, codec[*V]{
		func(d *decoder, v jsonscan.Value, at string) *V { x := c.read(d, v, at); return &x },
		func(e *encoder, x *V, at string) { c.write(e, *x, at) }})
}

// optional is a pointer field that reads null as absent, without keeping it in Extra.
func optional[T, V any](key string, of func(*T) **V, c codec[V]) field[T] {
	f := pointer(key, of, c)
	read := f.read
	f.own, f.read = true, func(d *decoder, t *T, v jsonscan.Value, at string) bool { return read(d, t, v, at) || true }
	return f
}

// inner is a nested object whose unknown keys are kept in the outer object's Extra, under
// key. into returns the value to read into, of the value to write (nil = not written). If
// nullable, Extra keeps a null.
func inner[T, U any](key string, nullable bool, into, of func(*T) *U, o *object[U], extra func(*T) *map[string]json.RawMessage) field[T] {
	return field[T]{key: key, nested: true,
		read: func(d *decoder, t *T, v jsonscan.Value, at string) bool {
			if nullable && v.IsNull() {
				return false
			}
			outer := d.prefix
			d.prefix += at
			if rest := o.members(d, v, into(t)); len(rest) > 0 {
				keep(extra(t), map[string]json.RawMessage{key: d.raw(v, rest)})
			}
			d.prefix = outer
			return true
		},
		write: func(e *encoder, t *T, at string) bool {
			u := of(t)
			if u == nil {
				return false
			}
			var rest map[string]json.RawMessage
			if raw, ok := (*extra(t))[key]; ok {
				if err := json.Unmarshal(raw, &rest); err != nil || rest == nil {
					e.fail(at, "Extra[%q] holds the unknown keys of that object and must be one", key)
				}
			}
			e.key(key)
			o.write(e, u, at, rest)
			return true
		}}
}

// list is a list of objects.
func list[T, E any](key string, of func(*T) *[]E, max func(l *Limits) int, o *object[E]) field[T] {
	return entries(key, of, max, nil, func(int, jsonscan.Value) (x E) { return x }, func(*E) *object[E] { return o })
}

// entries is a list of objects, whose kinds may differ. begin returns an entry before it is
// read. Errors name entries by place; if that is nil, by their index in the path.
func entries[T, E any](key string, of func(*T) *[]E, max func(l *Limits) int, place func(*rollout.Where) *rollout.Index, begin func(i int, v jsonscan.Value) E, kind func(*E) *object[E]) field[T] {
	in := func(w *rollout.Where, i int, at string, entry func(at string)) {
		if place == nil {
			entry(at + "/" + strconv.Itoa(i))
			return
		}
		*place(w) = rollout.At(i)
		entry("")
		*place(w) = 0
	}
	return field[T]{key: key, own: true,
		read: func(d *decoder, t *T, v jsonscan.Value, at string) bool {
			d.list(v, at, max(&d.lim), func(i int, m jsonscan.Value) {
				x := begin(i, m)
				in(&d.where, i, at, func(at string) { kind(&x).read(d, m, at, &x) })
				*of(t) = append(*of(t), x)
			})
			return true
		},
		write: func(e *encoder, t *T, at string) bool {
			items := *of(t)
			if items == nil {
				return false
			}
			e.key(key)
			e.list(len(items), func(i int) {
				in(&e.where, i, at, func(at string) { kind(&items[i]).put(e, &items[i], at) })
			})
			return true
		}}
}

func sortedKeys(m map[string]json.RawMessage) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
