// Package format is shared by the importers of dump formats: it defines the [File] that
// they read and reads the parts that many dumps have in common.
//
// An [Importer] is a name, a match and a read function. The reader asks each importer in
// turn whether a JSON value has its format, and passes the value to the first that matches.
// The reader handles framing, compression, ids, groups, joins, duplicates and error
// locations.
//
//	func Importer() format.Importer {
//		return format.Importer{Name: "x", Match: match, Read: read, Stateless: true}
//	}
//
//	func match(v format.Value, _ *format.File) bool { return v.Get("x_version").Kind() == jsonscan.Number }
//
//	func read(in *format.File, v format.Value) error {
//		messages := in.ChatMessages(v.Get("messages"), "/messages")
//		format.MarkReplies(messages, rollout.SampledByPolicy)
//		r := &rollout.Rollout{Messages: messages, Turns: format.TurnsOf(messages), Index: format.NoIndex}
//		in.Leftover(r, v, "messages") // small keys that no field took become metadata
//		in.NoteParts(r)
//		return in.Emit(r)
//	}
//
// For messages use [File.ChatMessage] (chat completions), [File.Blocks] (Messages API),
// [Items] and [File.ResponseMessage] (Responses API), or [File.Message] and [File.Content]
// if a format has names of its own. [File.Capture] reads token ids and log probabilities
// under any name in use. Report faults with [File.Want] (a value of the wrong kind) and
// [File.Fail], with message and field; report facts that a user should know with
// [File.Note], with a code. Skip nothing without one of them. [Remembered] holds what an
// importer must know of earlier records; [File.Neighbour] reads files beside the dump.
package format
