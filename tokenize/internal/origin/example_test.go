package origin_test

import (
	"context"
	"fmt"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
	"github.com/turnpack/turnpack/tokenize/internal/origin"
)

// The example prints which bytes of a rendering the user wrote.
func ExampleField() {
	t, err := chat.Compile(`{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}`, chat.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := chat.NewConversation(chat.List(chat.Object(
		chat.Member{Key: "role", Value: chat.String(string(rollout.RoleUser))},
		chat.Member{Key: "content", Value: chat.String("hello")})), chat.Null(), chat.Null(), chat.ConversationOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := t.Render(context.Background(), c, chat.Input{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for s := range r.Spans() {
		switch {
		case s.Field == nil:
			fmt.Printf("%q is scaffold\n", r.Text[s.Start:s.End])
		case s.Field.Part == origin.PartContent:
			fmt.Printf("%q is %s of message %d\n", r.Text[s.Start:s.End], s.Field.Path(), s.Field.Message)
		default:
			fmt.Printf("%q is %s\n", r.Text[s.Start:s.End], s.Field.Path())
		}
	}
	// Output:
	// "<|" is scaffold
	// "user" is /messages/0/role
	// "|>" is scaffold
	// "hello" is /messages/0/content of message 0
}
