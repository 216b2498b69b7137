package model

import "unsafe"

// ends returns what a segment knows of its offsets, which fit a byte: the end of
// each id's range where each begins at the end of the one before, else begin and
// end; nothing where it was stored without.
func (e *Segment) ends() []uint8 {
	if e.perID == 0 {
		return nil // what would follow may lie behind the allocation
	}
	return unsafe.Slice((*uint8)(unsafe.Add(unsafe.Pointer(e), headerSize+padded(int(e.size))+4*int(e.n))), int(e.n)*int(e.perID))
}

// endsPerID returns how many of the bytes of ends an id with these offsets takes.
func endsPerID(offsets []int32) uint16 {
	at := int32(0)
	for i := 0; i < len(offsets); i += 2 {
		if offsets[i] != at {
			return 2
		}
		at = offsets[i+1]
	}
	return uint16(min(1, len(offsets)))
}

// setEnds fills ends.
func (e *Segment) setEnds(offsets []int32) {
	ends := e.ends()
	step := 2 / max(1, int(e.perID))
	for i := range ends {
		ends[i] = uint8(offsets[step*i+step-1])
	}
}

// Offsets puts begin and end of each id, plus base, into dst, which has two places
// for each. Several at once halve the time that offsets add to a segment.
func (e *Segment) Offsets(dst []int32, base int32) {
	ends := e.ends()
	if e.perID == 2 {
		for k, x := range ends {
			dst[k] = base + int32(x)
		}
		return
	}
	last := base
	for len(ends) >= 4 && len(dst) >= 8 {
		o, x := (*[8]int32)(dst), (*[4]uint8)(ends)
		a, b, c, d := base+int32(x[0]), base+int32(x[1]), base+int32(x[2]), base+int32(x[3])
		o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7] = last, a, a, b, b, c, c, d
		last, dst, ends = d, dst[8:], ends[4:]
	}
	for k, x := range ends {
		dst[2*k], dst[2*k+1] = last, base+int32(x)
		last = base + int32(x)
	}
}
