package value

import "sync/atomic"

// jsonMemo remembers the JSON text of a value, which never changes, from the
// second time on that it is asked for: a conversation is rendered again with
// every turn. It is safe for concurrent use.
type jsonMemo struct{ at atomic.Pointer[jsonText] }

type jsonText struct {
	as   *JSON
	text *Str
}

// askedOnce stands for a text that was asked for once.
var askedOnce = &jsonText{}

// longEnough is the length in bytes from which looking a text up is faster than
// writing it.
const longEnough = 64

// Known returns json.dumps(v) if it is remembered.
func (j *JSON) Known(l *Limits, v Value) *Str {
	var memo *jsonMemo
	switch v := v.(type) {
	case *Str:
		if len(v.S) < longEnough {
			return nil
		}
		memo = &v.json
	case *List:
		memo = &v.json
	case *Dict:
		memo = &v.json
	default:
		return nil
	}
	known := memo.at.Load()
	switch {
	case known == nil:
		memo.at.Store(askedOnce)
		return nil
	case known == askedOnce:
		t := Text{Track: true}
		if j.write(&t, l, v, 0) != nil {
			return nil
		}
		known = &jsonText{j, t.Value()}
		memo.at.Store(known)
	}
	if known.as != j && *known.as != *j || len(known.text.S) > l.Bytes {
		return nil
	}
	return known.text
}
