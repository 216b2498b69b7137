// Package detect finds sampled messages that hold an invalid tool call or malformed
// reasoning, so that an estimator can give them an advantage of their own:
//
//	found := detect.Detector{}.FindAll(r)            // faults by message
//	flags[message] = detect.Flags(found[message])    // what reward.Override applies to
//	reward.CreditMessages(seq, advantage, flags, e)
//
// Calls are checked against the tools that the model was offered, their arguments against the JSON
// schema of the tool; texts are searched for markers of calls and reasoning that the engine's parser
// did not remove.
package detect
