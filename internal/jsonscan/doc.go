// Package jsonscan parses one JSON value into a flat list of nodes that point into the
// source text.
//
// It provides three things that encoding/json does not give at once: the source text of
// every value (number literals, key order), byte offsets in errors, and speed on long
// strings, which make up most of a recorded rollout. Strings are checked eight bytes at a
// time and decoded only on demand. A list of numbers, such as token ids, is one node.
//
// Nothing here panics on any input. Options bounds the depth; a text has at most 4 GiB.
package jsonscan
