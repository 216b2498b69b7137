// Package ctxwindow says what the model sees at each turn under a token budget.
//
// [Plan] takes a recorded rollout and a [Policy] and returns one
// [rollout.Context] per turn. A [Session] does the same for a rollout while it happens:
// messages are appended as they arrive and each call is fitted before it is made, with
// the cuts of the calls before it in mind, so that a later plan gives the same contexts.
// [Fit] is for one call alone. Tokens are counted by the caller's [Counter], so a budget is exact when
// the counter is the encoder that will encode the context.
//
//   - [None] shows everything.
//   - [HeadTail] keeps the task, the first turns, a note and the latest turns;
//     [Tail] the task, a note and the latest turns.
//   - [Refill] cuts to 60 % when the budget is full and then only appends.
//     [Compaction] does so with a summary in place of the note.
//   - [SWERL] repeats the swe-rl reference with its faults, for parity.
//   - Any type with the methods of [Policy] is a policy too.
//
// Those of this package but SWERL keep three promises: no context exceeds the budget; the latest
// turn is in it, its content shortened in the middle at rune boundaries if it
// must be; turns stay whole, tool results with the call they answer. Where even
// messages without content exceed the budget, the answer is an error of kind
// limit. Where turns are left out, what says so ends the user or tool message
// before it: two user turns in a row, which the preset makes, are refused by
// templates with alternating roles and taken for a new task by others.
//
// # Rows
//
// A window that moves at every step changes the start of every context, so every
// step becomes a training row of its own: a rollout of 200 steps in a window of
// some 33 makes 145 rows under HeadTail and 12 under Refill, for the same budget.
// [Report].Rows counts them.
//
// # Cost
//
// What one history turn adds is counted once. On top of that each context is
// counted as a whole, which keeps the promise for counters whose counts do not
// add up (a template that drops old reasoning, say), and HeadTail and Tail ask in
// each turn whether the plain history fits. A counter that goes on from what it
// counted before, as tokenize.Counter does, answers that from what is new.
package ctxwindow
