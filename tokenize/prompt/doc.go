// Package prompt makes the token ids of prompts during a rollout, for engines that take ids.
// Earlier replies are in a prompt with the ids that the engine sampled, so that the turns of a
// linear rollout make one row, whatever the engine samples.
//
//	sessions, err := prompt.New(model, prompt.Options{}) // once
//	tree := sessions.Tree()                         // for each rollout
//	p, err := tree.Prompt(ctx, prompt.Request{Messages: messages, Tools: tools})
//	…                                               // the engine samples after p.IDs
//	err = p.Reply(output, &message)                 // as sampled, and as sent to the client
//
// If calls are recorded, [Sessions.Prompt] takes the record in place of a tree.
//
// # Bridges
//
// A checkpoint is a prompt with the reply that was sampled after it. The next request of an agent
// shows that reply as a message, with more messages after it. The template renders the whole
// conversation. If that text begins with the checkpoint's text, the reply ends at the end of a
// token, and its control tokens are where the template writes them, then the prompt is the ids of
// the checkpoint followed by those of the rest: a bridge. Nothing is assumed about the template,
// and equal text alone is not enough: each byte must come from the same message as before, so that
// no content can forge a turn.
//
// A tree holds the checkpoints of a rollout, and a request continues from the deepest checkpoint
// that its text allows: agents that alternate, subagents, retries and shortened histories each find
// theirs. Checkpoints share what their prompts have in common, in memory too.
//
// # Forks
//
// Without a bridge the prompt is what the engine itself would make of the messages (as
// Encoder.Prompt), continued from a checkpoint as far as possible. It is a fork: a row of its own.
// [Prompt.Reason] says why, and [Report] counts the reasons: a template that removes reasoning
// after the next question, a client that leaves it out, arguments that the template spaces
// differently. [Options.Keep] keeps the sampled ids nevertheless, if only the spelling differs or
// in every case, and [Options.RestoreReasoning] restores the reasoning in clients' messages.
//
// The prompt of a fork or a bridge is what the model saw, so rows of both are exact.
package prompt
