package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/live/gate"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// pausing is an engine under which the trainer changes the weights after some chunks of a request: it sends
// nothing more until it is stopped.
type pausing struct {
	engine.Engine
	gate   *gate.Gate
	after  int  // chunks of each request
	most   int  // pauses
	ended  bool // all sampled ids arrive before the first pause
	pauses int
	asked  []engine.Request
}

func (p *pausing) Generate(ctx context.Context, r *engine.Request, yield func(*engine.Chunk) error) error {
	p.asked = append(p.asked, *r)
	n := 0
	return p.Engine.Generate(ctx, r, func(c *engine.Chunk) error {
		if n++; n <= p.after || p.pauses >= p.most {
			return yield(c)
		}
		go func() {
			if p.gate.Pause(context.Background(), "continue") == nil { // no call is running
				p.pauses++
				_ = p.gate.SetVersion(int32(p.pauses))
				p.gate.Resume()
			}
		}()
		if p.ended {
			time.Sleep(10 * time.Millisecond) // the reply is not stopped
			return yield(c)
		}
		<-ctx.Done()
		return ctx.Err()
	})
}

// tokenIn makes prompts and parses replies as the fake engine without a model does.
func tokenIn(o *proxy.Options) { o.Prompts = prompts{} }

type prompts struct{}

func (prompts) Prompt(_ context.Context, p proxy.Prompt) ([]rollout.TokenID, error) {
	var out []rollout.TokenID
	for _, m := range p.Messages {
		out = append(out, idsOf("<"+string(m.Role)+">"+m.Content)...)
	}
	return append(out, idsOf("<assistant>")...), nil
}

func (prompts) Parser([]rollout.Tool, []rollout.TokenID) (proxy.Parser, error) {
	return &parser{}, nil
}

func (prompts) Decode(ids []rollout.TokenID) (string, error) {
	var out []byte
	for _, id := range ids {
		if id < 256 {
			out = append(out, byte(id))
		}
	}
	return strings.ToValidUTF8(string(out), "\uFFFD"), nil
}

func idsOf(text string) (out []rollout.TokenID) {
	for _, b := range []byte(text) {
		out = append(out, rollout.TokenID(b))
	}
	return out
}

// paused returns a world whose engine is wrapped in a pausing.
func paused(t *testing.T, f fakeengine.Options, after, most int) (*world, *pausing) {
	w := &world{t: t, fake: fakeengine.New(f)}
	upstream := httptest.NewServer(w.fake)
	t.Cleanup(upstream.Close)
	p := &pausing{gate: &gate.Gate{}, after: after, most: most}
	require.NoError(t, p.gate.SetVersion(0))
	return w.on(upstream.URL, "vllm", tokenIn, func(o *proxy.Options) {
		p.Engine, o.Engine, o.Gate = o.Engine, p, p.gate
	}), p
}

// TestContinue: a reply that pauses stop, after any chunk and within characters, is one call with the ids, log
// probabilities and text of an uninterrupted one, and records which weights sampled which ids.
func TestContinue(t *testing.T) {
	f := fakeengine.Options{Script: []fakeengine.Reply{toolReply}, Event: 3}
	whole := newWorld(t, f, tokenIn)
	status, body := whole.ask("/rollouts/r/v1/chat/completions", requests["chat"].body+"}")
	require.Equal(t, 200, status, body)
	want := whole.rollout("r").Turns[0]
	chunks := (len(want.Output) + 2) / 3
	for name, q := range requests {
		for _, stream := range []string{"", `,"stream":true`} {
			for after := 0; after <= chunks; after++ {
				for _, most := range []int{1, 3} {
					if name != "chat" && (after%8 != 5 || most > 1) || after == 0 && most > 1 {
						continue
					}
					w, p := paused(t, f, after, most)
					p.ended = after == chunks
					status, body := w.ask("/rollouts/r"+q.path, q.body+stream+"}")
					require.Equal(t, 200, status, body)
					at := fmt.Sprint(name, stream, " after ", after, " of ", chunks)
					text, reasoning, calls := told(t, name, stream != "", body)
					require.Equal(t, "Reading é.", text, at)
					require.Equal(t, "Look first.", reasoning, at)
					require.Equal(t, []string{`run {"command": "ls"}`, `run {"command": "cat \"a\""}`}, calls, at)
					r := w.rollout("r")
					require.Len(t, r.Turns, 1, at)
					got := r.Turns[0]
					require.Equal(t, want.Output, got.Output, at)
					require.Equal(t, want.Logprobs, got.Logprobs, at)
					require.Equal(t, want.Prompt.Add, got.Prompt.Add, at)
					require.NoError(t, r.Validate())
					c := w.calls("r")[0]
					require.Equal(t, live.StateOK, c.State, "%s: %s", at, c.Why)
					require.Equal(t, live.Usage{PromptTokens: len(want.Prompt.Add), CompletionTokens: len(want.Output)}, c.Usage, at)
					if p.ended {
						require.Len(t, p.asked, 1)
						continue
					}
					require.Equal(t, p.pauses+1, len(p.asked), at)
					require.NotZero(t, p.pauses, at)
					if after > 0 {
						require.Len(t, got.Versions, p.pauses+1, at)
						for i, run := range got.Versions {
							require.Equal(t, rollout.VersionRun{From: 3 * after * i, Version: int32(i)}, run, at)
						}
						last := p.asked[len(p.asked)-1]
						require.Equal(t, append(append([]rollout.TokenID{}, want.Prompt.Add...), want.Output[:3*after*p.pauses]...), last.Prompt)
						if name == "anthropic" {
							require.Equal(t, fmt.Sprint(4096-3*after*p.pauses), string(last.Fields["max_tokens"]))
						}
					}
				}
			}
		}
	}
}

// A reply that has all the ids that it may have when the pause comes is not requested again, and one that
// depends on more than its ids runs to its end.
func TestContinueEnds(t *testing.T) {
	f := fakeengine.Options{Script: []fakeengine.Reply{{Content: "one two three"}}, Event: 4}
	q := requests["chat"].body
	w, p := paused(t, f, 1, 1)
	p.Engine = endless{p.Engine}
	_, body := w.ask("/rollouts/r/v1/chat/completions", q+`,"max_tokens":4}`)
	require.Equal(t, "length", at(parsed(t, body), "choices", 0, "finish_reason"), body)
	require.EqualValues(t, 4, at(parsed(t, body), "usage", "completion_tokens"))
	require.Len(t, p.asked, 1)
	require.Equal(t, live.StateOK, w.calls("r")[0].State)

	for _, more := range []string{`,"stop":["x"]`, `,"n":2`, `,"frequency_penalty":0.5`, `,"response_format":{"type":"json_object"}`} {
		w := newWorld(t, f, tokenIn, func(o *proxy.Options) {
			o.Gate = &gate.Gate{}
			o.Engine = &pauseFirst{o.Engine, o.Gate}
		})
		_, body := w.ask("/rollouts/r/v1/chat/completions", q+more+`}`)
		require.Equal(t, "one two three", at(parsed(t, body), "choices", 0, "message", "content"), body)
	}
}

// endless removes the end of a reply.
type endless struct{ engine.Engine }

func (e endless) Generate(ctx context.Context, r *engine.Request, yield func(*engine.Chunk) error) error {
	return e.Engine.Generate(ctx, r, func(c *engine.Chunk) error {
		for i := range c.Choices {
			c.Choices[i].Finish = ""
		}
		return yield(c)
	})
}

// pauseFirst pauses before each request.
type pauseFirst struct {
	engine.Engine
	gate *gate.Gate
}

func (p *pauseFirst) Generate(ctx context.Context, r *engine.Request, yield func(*engine.Chunk) error) error {
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := p.gate.Pause(short, "continue"); err != context.DeadlineExceeded {
		return fmt.Errorf("the call has left: %v", err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return p.Engine.Generate(ctx, r, yield)
}

// TestContinueUnspelled: ids whose text differs from the text that arrived are not trained.
func TestContinueUnspelled(t *testing.T) {
	w, p := paused(t, fakeengine.Options{Script: []fakeengine.Reply{{Content: "one two three"}}, Event: 3}, 2, 1)
	p.Engine = other{p.Engine}
	w.ask("/rollouts/r/v1/chat/completions", requests["chat"].body+`}`)
	c := w.calls("r")[0]
	require.Equal(t, live.StateIncomplete, c.State)
	require.Contains(t, c.Why, "do not spell")
}

// other returns ids that do not match the text.
type other struct{ engine.Engine }

func (o other) Generate(ctx context.Context, r *engine.Request, yield func(*engine.Chunk) error) error {
	return o.Engine.Generate(ctx, r, func(c *engine.Chunk) error {
		for i := range c.Choices {
			if ids := c.Choices[i].IDs; len(ids) > 2 {
				ids[0] = 'x'
			}
		}
		return yield(c)
	})
}

// TestHeldCalls: calls that a pause holds are kept alive in their dialect, and answered when the pause ends.
func TestHeldCalls(t *testing.T) {
	for name, q := range requests {
		g := &gate.Gate{}
		w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply}}, func(o *proxy.Options) { o.Gate, o.KeepAlive = g, 5*time.Millisecond })
		require.NoError(t, g.Pause(t.Context(), "hold"))
		res := w.send(t.Context(), "/rollouts/r"+q.path, q.body+`,"stream":true}`)
		in := bufio.NewReader(res.Body)
		waited := ""
		for strings.Count(waited, "\n\n") < 3 { // while it is held
			line, err := in.ReadString('\n')
			require.NoError(t, err)
			waited += line
		}
		require.Zero(t, w.fake.Requests())
		g.Resume()
		rest, err := io.ReadAll(in)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		text, _, _ := told(t, name, true, string(rest))
		require.Equal(t, "Reading é.", text)
	}
}
