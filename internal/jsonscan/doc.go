// Package jsonscan reads one JSON value into a flat list of nodes that point
// into the source text.
//
// It exists for three things encoding/json does not give at once: the source
// text of every value (number literals, key order), byte offsets in errors, and
// speed on long strings, which is what recorded rollouts are made of. Strings
// are checked eight bytes at a time and decoded only when asked for. A list of
// numbers, such as token ids, is one node.
//
// Nothing here panics on any input. Depth and size are bounded by Options.
package jsonscan
