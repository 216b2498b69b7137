// Package native reads the native format where it stands among dumps, and guards the other
// importers against records of it.
//
//	{"turnpack_version": 1, "id": "r", "messages": […], "turns": [{"message": 1}], "status": "completed"}
//
// A record is native by its version or its turns, or, where both are absent, by what only
// the native format says. [CheckUnread] refuses records of other formats that say of a
// reply, the run or its outcome what their importer did not read.
package native
