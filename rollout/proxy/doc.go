// Package proxy is an http.Handler between agents and an inference engine that records every call with package
// rollout/live: ids, log probabilities, the exact prompt. Clients use the API of OpenAI (chat completions,
// completions, Responses) or of Anthropic (messages, with an exact count_tokens), streamed or not.
//
//	e, err := engine.New(engine.Options{URL: "http://127.0.0.1:8000"})
//	h, err := proxy.New(proxy.Options{Recorder: recorder, Engine: e, Open: recorder.Begin})
//	http.ListenAndServe("127.0.0.1:8080", h)
//
// # Sessions
//
// Each request names its session: by its base URL, /rollouts/ID/v1 for OpenAI's clients and /rollouts/ID for
// Anthropic's, by the header X-Session-Id on /v1, or by the key that the client sends, if that is the session's
// [Handler.Token]. X-Parent-Session-Id names the session whose subagent this one is. There is no default
// session. A client's key is not passed on: not to the engine, the record or an error.
//
// # What a client may rely on
//
// The last event of a stream, and an unstreamed reply, are sent after the call is durable. A repeated request,
// with the same body or the same Idempotency-Key, joins the running call or gets the recorded reply (with ids
// and log probabilities, if it asks for them), even after a restart; if the first request failed, it is sampled
// anew and replaces the failed call. If the client is gone, the reply is recorded to its end and marked unseen
// until a retry gets it; with [Options].AbortUnseen it is stopped instead. Streams are flushed as they arrive
// and kept alive. Errors have the format of the dialect. Bodies may be compressed (gzip, zstd, deflate), and
// must arrive within five minutes.
//
// # Prompts
//
// Without [Prompts] the engine renders the messages with its own template and returns the ids; a client of chat
// completions gets the engine's bytes without the parts that it did not ask for. With Prompts the proxy makes
// the prompt's ids, so that they continue the ids sampled before.
//
// A call whose ids, log probabilities and usage disagree is sent to the client as it arrived and recorded as
// incomplete, which is never trained. A stream that breaks is an error in the dialect's format, and the ids
// that arrived are kept.
package proxy
