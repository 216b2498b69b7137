// Package native reads the native format among dumps, and protects records of the native
// format from other importers.
//
//	{"turnpack_version": 1, "id": "r", "messages": […], "turns": [{"message": 1}], "status": "completed"}
//
// A record is native if it has a version or turns or, without these, keys that only the
// native format has. [CheckUnread] refuses records of other formats with native keys about
// a reply, the run or its outcome that their importer did not read.
package native
