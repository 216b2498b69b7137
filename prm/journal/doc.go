// Package journal stores judge votes in an append-only file, so that a killed job resumes without
// requesting a vote twice or losing one.
//
// The file is text. Each line is
//
//	crc32c (8 hex digits)  SP  JSON object  LF
//
// where the checksum covers the JSON. The first line is the header
// {"format":"turnpack-votes","version":1}; every other line is a [Record].
//
// Append passes whole lines to the operating system in one write, so a killed process loses no vote
// for which Append returned; fsync follows in batches, so a crash of the machine loses at most the
// last batch. Open removes the damage of a crash at the end of the file (a torn line, or lines with a
// wrong checksum and no good line after them) and refuses a file that is damaged in the middle.
//
// Memory holds only an index of about 24 bytes per vote; Lookup reads the file.
package journal
