// Package format is what the importers of dump formats share: the [File] that they read
// and the parts that many dumps are made of.
//
// An [Importer] is a name, a match and a read function. The reader asks each whether a
// JSON value is of its format, and gives the value to the first that says yes. Framing,
// compression, ids, groups, joins, duplicates and the place of errors are the reader's.
//
//	func Importer() format.Importer {
//		return format.Importer{Name: "x", Match: match, Read: read, Stateless: true}
//	}
//
//	func match(v format.Value, _ *format.File) bool { return v.Get("x_version").Kind() == jsonscan.Number }
//
//	func read(in *format.File, v format.Value) error {
//		messages, err := in.ChatMessages(v.Get("messages"), "/messages")
//		if err != nil {
//			return err
//		}
//		format.MarkReplies(messages, rollout.SampledByPolicy)
//		r := &rollout.Rollout{Messages: messages, Turns: format.TurnsOf(messages), Index: format.NoIndex}
//		in.Leftover(r, v, "messages") // small keys that no field took become metadata
//		in.NoteParts(r)
//		return in.Emit(r)
//	}
//
// Messages: [File.ChatMessage] (chat completions), [File.Blocks] (Messages API), [Items] and
// [File.ResponseMessage] (Responses API), or [File.Message] and [File.Content] where a
// format has names of its own. Token ids and log probabilities under any of the names in
// use: [File.Capture]. What is wrong is said by [File.Want] (another kind of value) and
// [File.Fail], with message and field; what a user should know by [File.Note], with a
// code. Nothing is passed over without one of them. What an importer must know of earlier
// records is [Remembered]; what lies beside the dump is read by [File.Neighbour].
package format
