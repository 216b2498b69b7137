// Package ctxwindow plans what the model sees at each turn under a token budget.
//
// [Plan] takes a recorded rollout and a [Policy] and returns one [rollout.Context] per turn. A
// [Session] does the same for a live rollout: messages are appended as they arrive, and each call
// is fitted before it is made. It remembers the cuts of earlier calls, so that a later plan gives
// the same contexts. [Fit] serves a single call. Tokens are counted by the caller's [Counter], so a
// budget is exact if the counter is the encoder that will encode the context.
//
//   - [None] shows everything.
//   - [HeadTail] keeps the task, the first turns, a note and the latest turns; [Tail] keeps the
//     task, a note and the latest turns.
//   - [Refill] cuts the context to 60 % of the budget when the budget is full, and otherwise
//     only appends. [Compaction] does the same with a summary in place of the note.
//   - [SWERL] reproduces the swe-rl reference, faults included, for parity.
//   - Any type with the methods of [Policy] is a policy too.
//
// The policies of this package except SWERL make three promises. No context exceeds the budget. The
// latest turn is always shown, with content shortened in the middle at rune boundaries if
// necessary. Turns stay whole: tool results stay with the call they answer. If even messages
// without content exceed the budget, the result is an error of kind limit. The note on omitted
// turns is appended to the user or tool message before it: two user turns in a row, which SWERL
// makes, are rejected by templates with alternating roles and read as a new task by others.
//
// # Rows
//
// A window that moves at every step changes the start of every context, so every step becomes a
// training row of its own. With a budget of about 33 steps, a rollout of 200 steps gives 145 rows
// under HeadTail and 12 under Refill. [Report].Rows counts them.
//
// # Cost
//
// The tokens that a history turn adds are counted once. In addition each context is counted as a
// whole, which keeps the promise for counters whose counts do not add up (a template that drops old
// reasoning, say), and HeadTail and Tail count the plain history at each turn. A counter that
// continues from what it counted before, such as tokenize.Counter, needs to count only the new
// messages for that.
package ctxwindow
