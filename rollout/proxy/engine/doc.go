// Package engine requests replies with their token ids and log probabilities from inference servers. An
// [Engine] is one vLLM or SGLang server ([New]), several servers of one model ([NewPool]), or your own
// implementation.
//
// A request contains messages, which the server renders, or ids. The reply is a stream of chunks that do not
// depend on the kind of server: ids, log probabilities and the version of the weights that sampled them; text,
// reasoning and tool calls; the prompt's ids; usage.
//
//	vLLM    messages  /v1/chat/completions with return_token_ids
//	        ids       /v1/completions with return_token_ids, or, as vllm-tokens and if
//	                  ids suffice, /inference/v1/generate
//	SGLang  messages  /v1/chat/completions with return_meta_info, always unstreamed
//	        ids       /generate, whose events are cumulative or incremental
//
// Some servers drop ids from streams in which a tool parser holds text back. [Probe] tests for that, and each
// streamed reply with tools is checked; a server that drops ids is asked for unstreamed replies from then on,
// which Status reports. Redirects are not followed, and no header of a client is sent.
package engine
