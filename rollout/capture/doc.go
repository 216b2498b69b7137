// Package capture finds the token ids and log probabilities that inference engines and harnesses return beside
// the text. [Decode] reads one recorded JSON object and recognizes these fields in a choice, a message or the
// response itself:
//
//   - vLLM with return_token_ids: prompt_token_ids, choices[0].token_ids, and
//     logprobs.content[].logprob or, of completions, logprobs.token_logprobs; also tokens written as "token_id:<n>"
//   - SGLang: output_ids and meta_info.output_token_logprobs, triples of log
//     probability, id and text; input_token_logprobs for the prompt
//   - OpenAI: logprobs.content, which has no ids
//   - NeMo-Gym: prompt_token_ids, generation_token_ids, generation_log_probs
//   - OpenHands token events, instrumented vLLM: prompt_token_ids, response_token_ids
//   - ATIF: metrics.prompt_token_ids, completion_token_ids, logprobs
//
// The ids are compared with the engine's usage (prompt_tokens, completion_tokens, input_tokens, output_tokens
// of a response, of meta_info or of a metrics record): vLLM drops ids in some streams with tool parsers, and
// the remaining ids are not what was sampled ([Tokens].Incomplete). SGLang's weight_version, in meta_info or
// metadata, is the policy version; output_versions has one version for each token.
//
// Present but empty fields count as absent and are reported, since "has the key" does not imply "has tokens".
// The package does no networking.
package capture
