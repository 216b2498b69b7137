package openai_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/prm/openai"
	"github.com/turnpack/turnpack/rollout"
)

// A client is a judge like any other; three votes take one request if the server samples several
// answers from one prompt.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer := `{"message":{"role":"assistant","content":"\\boxed{1}"},"finish_reason":"stop"}`
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"choices":[`+answer+","+answer+","+answer+`],"usage":{"prompt_tokens":400,"completion_tokens":15}}`)
	}))
	defer server.Close()

	client, err := openai.New(openai.Options{
		Endpoints: []string{server.URL + "/v1"}, Model: "judge-8b",
		Price: openai.Price{Prompt: 0.5, Completion: 1.5},
	})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	scorer, err := prm.NewScorer(client, prm.Options{Identity: client.Identity()})
	if err != nil {
		panic(err)
	}
	steps, err := scorer.Score(context.Background(), &rollout.Rollout{ID: "demo", Messages: []rollout.Message{
		{Role: rollout.RoleUser, Content: "Fix it."},
		{Role: rollout.RoleAssistant, Sampled: rollout.SampledByPolicy, Content: "Fixed."},
	}})
	if err != nil {
		panic(err)
	}
	st := client.Stats()
	fmt.Println(*steps[0].Score, len(steps[0].Votes), st.Requests, st.PromptTokens, st.CompletionTokens, st.Cost)
	// Output: 1 3 1 400 15 0.0002225
}
