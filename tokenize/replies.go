package tokenize

import (
	"context"

	"github.com/turnpack/turnpack/tokenize/chat"
	"github.com/turnpack/turnpack/tokenize/internal/completion"
)

// Reply locates the reply of one assistant message in a rendered conversation: the bytes [Start,
// End) are what a model samples for this message. Start is right after the generation prompt, which
// includes a prefilled opener of reasoning; End is after the stop marker, before the separator that
// follows it.
type Reply struct {
	Message    int // index into the conversation
	Start, End int
	// Stop is where the stop marker starts; End if none was found.
	Stop int
}

// FindReplies finds the replies in res, the rendering of c by template t with input in, without a
// rollout; an Encoder does this for the turns of a rollout. stops are the texts of the stop tokens
// (<|im_end|>; for GLM the marker of the next role). Without stops, a reply ends where the template
// ends its message, less trailing white space. A reply whose text the template left out is not
// found, unless its header is. The error is that of ctx.
func FindReplies(ctx context.Context, t *chat.Template, c *chat.Conversation, in chat.Input, res *chat.Result, stops []string) ([]Reply, error) {
	turns, err := completion.Find(ctx, t, c, in, res, stops)
	var out []Reply
	for _, f := range turns {
		out = append(out, Reply{Message: f.Message, Start: f.Start, Stop: f.Stop, End: f.End})
	}
	return out, err
}
