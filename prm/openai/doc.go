// Package openai is a judge over a server that speaks the OpenAI chat
// completions protocol: OpenAI itself, vLLM, SGLang and their routers.
//
// A [Client] bounds everything it does: how many requests are in flight over
// all callers, how long one may take, how much a reply may weigh, how often and
// how long a vote is tried again. A vote that cannot be had ends with an error
// that says why; it never blocks for good and is never read as a score.
//
// Several endpoints share the load: each request goes to the healthy one with
// the fewest in flight. One that fails again and again is ejected, then tried
// with a single request before it takes load again; one that answers 429 is left
// alone for as long as it asks.
//
// API keys come from environment variables only, are sent to the endpoints named and
// nowhere else, and appear in no error and no reply: a text that repeats one has [key]
// in its place. Redirects are not followed; one is a failed try like a status 502.
package openai
