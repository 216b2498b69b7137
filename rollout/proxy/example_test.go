package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// An agent calls the proxy, and the sampled reply is a turn of its rollout.
func Example() {
	upstream := httptest.NewServer(fakeengine.New(fakeengine.Options{Script: []fakeengine.Reply{{Content: "Hi."}}}))
	defer upstream.Close()
	e, err := engine.New(engine.Options{URL: upstream.URL})
	if err != nil {
		panic(err)
	}
	defer e.Close()
	recorder, err := live.New(live.Options{})
	if err != nil {
		panic(err)
	}
	h, err := proxy.New(proxy.Options{Recorder: recorder, Engine: e, Open: recorder.Begin})
	if err != nil {
		panic(err)
	}
	defer h.Close()
	server := httptest.NewServer(h)
	defer server.Close()

	request := strings.NewReader(`{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"Hello"}]}`)
	res, err := http.Post(server.URL+"/rollouts/task-7/v1/messages", "application/json", request)
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		panic(err)
	}
	session, _ := recorder.Session("task-7")
	r, err := session.Rollout()
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Messages[1].Content, r.Turns[0].Output, r.Turns[0].FinishReason)
	// Output: Hi. [72 105 46 256] stop
}
