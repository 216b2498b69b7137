// Package clients asks a proxy with the official Go clients of OpenAI and Anthropic. It is
// a module of its own, so that the library does not depend on them: make clients.
package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	aoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

var script = []fakeengine.Reply{
	{Reasoning: "Look first.", Content: "Reading é.", Calls: []fakeengine.Call{
		{Name: "run", Arguments: json.RawMessage(`{"command": "ls"}`)}, {Name: "run", Arguments: json.RawMessage(`{"command": "cat \"a\""}`)}}},
	{Content: "Done <&>."},
}

var schema = map[string]any{"type": "object", "properties": map[string]any{"command": map[string]any{"type": "string"}}}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want); g != w {
		t.Errorf("%s: %s, expected %s", what, g, w)
	}
}

func start(t *testing.T) (url string, recorder *live.Recorder) {
	upstream := httptest.NewServer(fakeengine.New(fakeengine.Options{Script: script, Event: 3}))
	t.Cleanup(upstream.Close)
	e, err := engine.New(engine.Options{URL: upstream.URL})
	must(t, err)
	t.Cleanup(e.Close)
	recorder, err = live.New(live.Options{})
	must(t, err)
	h, err := proxy.New(proxy.Options{Recorder: recorder, Engine: e, Open: recorder.Begin})
	must(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(func() { server.Close(); h.Close() })
	return server.URL, recorder
}

// recorded checks that a session has two whole calls, the second of the conversation that
// the first was told.
func recorded(t *testing.T, recorder *live.Recorder, id string) {
	t.Helper()
	s, ok := recorder.Session(id)
	if !ok {
		t.Fatalf("session %s is not there", id)
	}
	calls, err := s.Calls()
	must(t, err)
	if len(calls) != 2 {
		t.Fatalf("%d calls, expected 2", len(calls))
	}
	for _, c := range calls {
		same(t, id+" state "+c.Why, c.State, live.StateOK)
	}
	_, _, first, err := s.Conversation(calls[0].ID)
	must(t, err)
	_, sent, _, err := s.Conversation(calls[1].ID)
	must(t, err)
	if len(sent) != 4 && len(sent) != 5 {
		t.Fatalf("%d messages were sent, expected 4 or 5", len(sent))
	}
	repeated := sent[len(sent)-3]
	same(t, id+" content", repeated.Content, first.Content)
	for i, c := range first.ToolCalls {
		same(t, id+" arguments", repeated.ToolCalls[i].Arguments, c.Arguments)
	}
}

func TestOpenAIChat(t *testing.T) {
	url, recorder := start(t)
	for _, stream := range []bool{false, true} {
		id := fmt.Sprintf("chat-%t", stream)
		client := openai.NewClient(option.WithBaseURL(url+"/rollouts/"+id+"/v1"), option.WithAPIKey("k"), option.WithMaxRetries(0))
		p := openai.ChatCompletionNewParams{Model: "fake", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("What is here?")},
			Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "run", Parameters: schema})}}
		for step := range 2 {
			var choice openai.ChatCompletionChoice
			if stream {
				var acc openai.ChatCompletionAccumulator
				s := client.Chat.Completions.NewStreaming(context.Background(), p)
				for s.Next() {
					if !acc.AddChunk(s.Current()) {
						t.Fatal("a chunk does not fit")
					}
				}
				must(t, s.Err())
				choice = acc.Choices[0]
			} else {
				done, err := client.Chat.Completions.New(context.Background(), p)
				must(t, err)
				choice = done.Choices[0]
			}
			if step == 1 {
				same(t, "text", choice.Message.Content, "Done <&>.")
				break
			}
			same(t, "text", choice.Message.Content, "Reading é.")
			same(t, "finish", choice.FinishReason, "tool_calls")
			same(t, "calls", len(choice.Message.ToolCalls), 2)
			same(t, "arguments", choice.Message.ToolCalls[1].Function.Arguments, `{"command": "cat \"a\""}`)
			p.Messages = append(p.Messages, choice.Message.ToParam())
			for _, c := range choice.Message.ToolCalls {
				p.Messages = append(p.Messages, openai.ToolMessage("a.txt", c.ID))
			}
		}
		recorded(t, recorder, id)
	}
}

func TestOpenAIResponses(t *testing.T) {
	url, recorder := start(t)
	for _, stream := range []bool{false, true} {
		id := fmt.Sprintf("responses-%t", stream)
		client := openai.NewClient(option.WithBaseURL(url+"/rollouts/"+id+"/v1"), option.WithAPIKey("k"), option.WithMaxRetries(0))
		p := responses.ResponseNewParams{Model: "fake", Instructions: param.NewOpt("Be brief."), Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt("What is here?")},
			Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "run", Parameters: schema, Strict: param.NewOpt(false)}}}}
		for step := range 2 {
			var done *responses.Response
			if stream {
				text := ""
				s := client.Responses.NewStreaming(context.Background(), p)
				for s.Next() {
					switch e := s.Current().AsAny().(type) {
					case responses.ResponseTextDeltaEvent:
						text += e.Delta
					case responses.ResponseCompletedEvent:
						done = &e.Response
					}
				}
				must(t, s.Err())
				if done == nil {
					t.Fatal("the stream has no end")
				}
				same(t, "deltas", text, done.OutputText())
			} else {
				var err error
				done, err = client.Responses.New(context.Background(), p)
				must(t, err)
			}
			same(t, "text", done.OutputText(), []string{"Reading é.", "Done <&>."}[step])
			p.PreviousResponseID = param.NewOpt(done.ID)
			items := responses.ResponseInputParam{}
			for _, o := range done.Output {
				if o.Type == "function_call" {
					c := o.AsFunctionCall()
					out := responses.ResponseInputItemParamOfFunctionCallOutput("a.txt")
					out.OfFunctionCallOutput.CallID = param.NewOpt(c.CallID)
					items = append(items, out)
				}
			}
			p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: items}
		}
		recorded(t, recorder, id)
	}
}

func TestAnthropic(t *testing.T) {
	url, recorder := start(t)
	for _, stream := range []bool{false, true} {
		id := fmt.Sprintf("anthropic-%t", stream)
		client := anthropic.NewClient(aoption.WithBaseURL(url+"/rollouts/"+id), aoption.WithAPIKey("k"), aoption.WithMaxRetries(0))
		tool := anthropic.ToolParam{Name: "run", InputSchema: anthropic.ToolInputSchemaParam{Properties: schema["properties"]}}
		p := anthropic.MessageNewParams{Model: "fake", MaxTokens: 4096, System: []anthropic.TextBlockParam{{Text: "Be brief."}},
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("What is here?"))}, Tools: []anthropic.ToolUnionParam{{OfTool: &tool}}}
		for step := range 2 {
			counted, err := client.Messages.CountTokens(context.Background(), anthropic.MessageCountTokensParams{Model: "fake", Messages: p.Messages,
				System: anthropic.MessageCountTokensParamsSystemUnion{OfTextBlockArray: p.System}, Tools: []anthropic.MessageCountTokensToolUnionParam{{OfTool: &tool}}})
			must(t, err)
			done := &anthropic.Message{}
			if stream {
				s := client.Messages.NewStreaming(context.Background(), p)
				for s.Next() {
					must(t, done.Accumulate(s.Current()))
				}
				must(t, s.Err())
			} else if done, err = client.Messages.New(context.Background(), p); err != nil {
				t.Fatal(err)
			}
			same(t, "counted", counted.InputTokens, done.Usage.InputTokens)
			text, thinking := "", ""
			var results []anthropic.ContentBlockParamUnion
			for _, b := range done.Content {
				switch b := b.AsAny().(type) {
				case anthropic.TextBlock:
					text += b.Text
				case anthropic.ThinkingBlock:
					thinking += b.Thinking
				case anthropic.ToolUseBlock:
					results = append(results, anthropic.NewToolResultBlock(b.ID, "a.txt", false))
				}
			}
			same(t, "text", text, []string{"Reading é.", "Done <&>."}[step])
			same(t, "thinking", thinking, []string{"Look first.", ""}[step])
			same(t, "reason", string(done.StopReason), []string{"tool_use", "end_turn"}[step])
			same(t, "results", len(results), []int{2, 0}[step])
			p.Messages = append(p.Messages, done.ToParam(), anthropic.NewUserMessage(results...))
		}
		recorded(t, recorder, id)
	}
}
