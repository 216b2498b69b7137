package engine_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// A server replies to a prompt of ids.
func ExampleNew() {
	server := httptest.NewServer(fakeengine.New(fakeengine.Options{Script: []fakeengine.Reply{{Content: "yes"}}}))
	defer server.Close()
	e, err := engine.New(engine.Options{URL: server.URL})
	if err != nil {
		panic(err)
	}
	defer e.Close()
	err = e.Generate(context.Background(), &engine.Request{Prompt: []rollout.TokenID{'o', 'k', '?'}, Stream: true}, func(c *engine.Chunk) error {
		for _, k := range c.Choices {
			fmt.Printf("%q %d %q\n", k.Text, k.IDs, k.Finish)
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// "y" [121] ""
	// "e" [101] ""
	// "s" [115] ""
	// "" [256] "stop"
}
