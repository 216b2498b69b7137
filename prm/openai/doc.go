// Package openai implements a judge over servers with the OpenAI chat completions protocol: OpenAI
// itself, vLLM, SGLang and their routers.
//
// A [Client] bounds the number of requests in flight over all callers, the time of a request, the size
// of a reply, and the number and duration of retries of a vote. A vote that cannot be obtained ends
// with an error that states the reason; it never blocks forever and never counts as a score.
//
// Several endpoints share the load: each request goes to the healthy endpoint with the fewest requests
// in flight. An endpoint that fails repeatedly is ejected, then probed with a single request before it
// gets load again; an endpoint that answers 429 gets no requests for the time it asks for.
//
// API keys come from environment variables only, are sent only to the configured endpoints, and appear
// in no error and no reply: they are replaced by [key] in texts that repeat them. Redirects are not
// followed and count as a failed try, like a status 502.
package openai
