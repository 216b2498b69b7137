// Package journal keeps judge votes in an append-only file, so that a killed
// job resumes with no vote asked twice and none lost.
//
// The file is text. Each line is
//
//	crc32c (8 hex digits)  SP  JSON object  LF
//
// where the checksum covers the JSON. The first line is the header
// {"format":"turnpack-votes","version":1}; every other one is a [Record].
//
// Append hands whole lines to the operating system in one write, so a killed
// process loses nothing that Append returned for; fsync follows in batches, so
// a crash of the machine loses at most the last batch. Open cuts off what a
// crash left at the end (a torn line, or lines that fail their checksum with
// nothing good after them) and refuses a file that is damaged in the middle.
//
// Only an index of 24 bytes or so per vote is held in memory; Lookup reads the
// file.
package journal
