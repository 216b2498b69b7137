package chat_test

import (
	"cmp"
	"context"
	"fmt"

	"github.com/turnpack/turnpack/tokenize/chat"
)

func Example() {
	source := `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`
	tmpl, err := chat.Compile(source, chat.Options{Name: "chatml"})
	if err != nil {
		fmt.Println(err)
		return
	}
	messages, _ := chat.ParseJSON([]byte(`[{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]`))
	conv, err := chat.NewConversation(messages, chat.Null(), chat.Null(), chat.ConversationOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := tmpl.Render(context.Background(), conv, chat.Input{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for s := range res.Spans() {
		fmt.Printf("%s %q\n", cmp.Or(s.Field.Path(), "-"), res.Text[s.Start:s.End])
	}
	// Output:
	// - "<|im_start|>"
	// /messages/0/role "user"
	// - "\n"
	// /messages/0/content "2+2?"
	// - "<|im_end|>\n<|im_start|>"
	// /messages/1/role "assistant"
	// - "\n"
	// /messages/1/content "4"
	// - "<|im_end|>\n"
}
