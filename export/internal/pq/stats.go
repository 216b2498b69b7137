package pq

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/apache/arrow/go/v17/parquet/metadata"
)

// longestStat is the longest text kept as a minimum or maximum, in bytes. Longer ones are left
// out rather than shortened.
const longestStat = 256

// statistics returns the minimum, maximum and null count of v, which must not contain the
// values of null rows.
func statistics(k Kind, v *Values, rows int) metadata.EncodedStatistics {
	var out metadata.EncodedStatistics // Signed stays off: it would add the deprecated fields
	n := v.Len(k)
	out.SetNullCount(int64(rows - n))
	if n == 0 {
		return out
	}
	var lo, hi []byte
	le := binary.LittleEndian
	switch k {
	case Bool:
		a, b := bounds(v.Ints)
		lo, hi = []byte{byte(a)}, []byte{byte(b)}
	case Int8, Int32:
		a, b := bounds(v.Ints)
		lo, hi = le.AppendUint32(nil, uint32(a)), le.AppendUint32(nil, uint32(b))
	case Int64:
		a, b := bounds(v.Longs)
		lo, hi = le.AppendUint64(nil, uint64(a)), le.AppendUint64(nil, uint64(b))
	case Float32:
		a, b := bounds(v.Floats)
		// The format requires −0 as lower and +0 as upper bound.
		if a == 0 {
			a = float32(math.Copysign(0, -1))
		}
		if b == 0 {
			b = 0
		}
		lo, hi = le.AppendUint32(nil, math.Float32bits(a)), le.AppendUint32(nil, math.Float32bits(b))
	case Text:
		a, b := bounds(v.Texts)
		lo, hi = []byte(a), []byte(b)
	}
	if len(lo) <= longestStat && len(hi) <= longestStat {
		out.SetMin(lo)
		out.SetMax(hi)
	}
	return out
}

func bounds[T cmp.Ordered](v []T) (lo, hi T) { return slices.Min(v), slices.Max(v) }
