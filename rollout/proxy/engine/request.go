package engine

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

// body returns the request in the server's format, and its path.
func (s *server) body(r *Request) (path string, body []byte, stream bool, err error) {
	s.mu.Lock()
	drops, whole := s.status.Streams == "drops ids", s.whole
	s.mu.Unlock()
	yes := []byte("true")
	set := []member{{"stream", nil}, {"stream_options", nil}}
	stream = r.Stream
	if s.opts.Model != "" {
		set = append(set, member{"model", quote(s.opts.Model)})
	}
	switch {
	case s.opts.Kind == kindSGLang && !r.chat():
		return "/generate", s.generateBody(r), stream, nil
	case s.opts.Kind == kindVLLMTokens && r.Prompt != nil && r.Raw == nil && r.IDsOnly && r.N <= 1:
		stream = stream && !whole
		return tokensPath, s.tokensBody(r, stream), stream, nil
	case s.opts.Kind == kindSGLang: // it returns ids of unstreamed replies only
		path, stream = "/v1/chat/completions", false
		set = append(set, member{"logprobs", yes}, member{"return_meta_info", yes}, member{"return_prompt_token_ids", yes})
	case r.chat():
		path, stream = "/v1/chat/completions", stream && !(drops && len(r.Tools) > 0)
		set = append(set, member{"logprobs", yes}, member{"return_token_ids", yes})
	default:
		path = "/v1/completions"
		set = append(set, member{"return_token_ids", yes})
		if n, err := strconv.Atoi(string(r.Fields["logprobs"])); err != nil || n < 0 {
			set = append(set, member{"logprobs", []byte("0")})
		}
	}
	if stream {
		set[0].value, set[1].value = yes, []byte(`{"include_usage":true}`)
	}
	if r.Raw != nil {
		var d jsonscan.Doc
		v, err := d.Parse(r.Raw, jsonscan.Options{})
		if err != nil {
			return "", nil, false, &Error{Status: http.StatusBadRequest, Message: "the request is no JSON", Err: err}
		}
		return path, edit(v, r.Raw, set), stream, nil
	}
	if r.N > 1 {
		set = append(set, member{"n", []byte(strconv.Itoa(r.N))})
	}
	var first []member
	switch {
	case r.chat():
		first = append(first, member{"messages", AppendMessages(nil, r.Messages)})
		if len(r.Tools) > 0 {
			first = append(first, member{"tools", list(r.Tools)})
		}
	case r.Prompt != nil:
		first = append(first, member{"prompt", list(r.Prompt)})
	default:
		first = append(first, member{"prompt", quote(r.Text)})
	}
	leave := func(k string) bool {
		return slices.ContainsFunc(set, func(m member) bool { return m.key == k }) || !r.chat() && chatOnly[k]
	}
	if !r.chat() && r.Prompt != nil {
		first = append(first, member{"max_tokens", r.maxTokens()})
	}
	first = withFields(first, r.Fields, leave)
	return path, object(append(first, set...)), stream, nil
}

// chatOnly are the fields that the completions API does not have.
var chatOnly = map[string]bool{"tools": true, "tool_choice": true, "parallel_tool_calls": true, "max_completion_tokens": true, "top_logprobs": true, "logprobs": true,
	"chat_template": true, "chat_template_kwargs": true, "reasoning_effort": true, "add_generation_prompt": true, "continue_final_message": true, "include_reasoning": true}

// samplings maps the fields of chat completions to SGLang's sampling_params.
var samplings = map[string]string{"temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "min_p": "min_p", "stop": "stop", "stop_token_ids": "stop_token_ids",
	"frequency_penalty": "frequency_penalty", "presence_penalty": "presence_penalty", "repetition_penalty": "repetition_penalty", "min_tokens": "min_new_tokens",
	"ignore_eos": "ignore_eos", "skip_special_tokens": "skip_special_tokens", "spaces_between_special_tokens": "spaces_between_special_tokens", "no_stop_trim": "no_stop_trim",
	"seed": "sampling_seed", "regex": "regex", "ebnf": "ebnf", "logit_bias": "logit_bias"}

func (s *server) generateBody(r *Request) []byte {
	params := []member{{"max_new_tokens", r.maxTokens()}}
	for k, v := range r.Fields {
		if name := samplings[k]; name != "" && string(v) != "null" {
			params = append(params, member{name, v})
		}
	}
	if r.N > 1 {
		params = append(params, member{"n", []byte(strconv.Itoa(r.N))})
	}
	set := []member{{"return_logprob", []byte("true")}, {"logprob_start_len", []byte("-1")}, {"sampling_params", object(params)}}
	if r.Prompt != nil {
		set = append(set, member{"input_ids", list(r.Prompt)})
	} else {
		set = append(set, member{"text", quote(r.Text)})
	}
	if r.Stream {
		set = append(set, member{"stream", []byte("true")})
	}
	return object(set)
}

// tokensPath is vLLM's endpoint for tokens in, tokens out.
const tokensPath = "/inference/v1/generate"

// sampled are the fields of vLLM's SamplingParams that completions have under the same name.
var sampled = []string{"temperature", "top_p", "top_k", "min_p", "seed", "stop_token_ids", "presence_penalty", "frequency_penalty", "repetition_penalty", "min_tokens", "ignore_eos", "logit_bias", "bad_words"}

func (s *server) tokensBody(r *Request, stream bool) []byte {
	params := []member{{"max_tokens", r.maxTokens()}, {"logprobs", []byte("1")}}
	for _, k := range sampled {
		if v := r.Fields[k]; v != nil && string(v) != "null" {
			params = append(params, member{k, v})
		}
	}
	set := []member{{"token_ids", list(r.Prompt)}, {"sampling_params", object(params)}}
	if model := cmp.Or(s.opts.Model, jsonscan.Unquote(r.Fields["model"])); model != "" {
		set = append(set, member{"model", quote(model)})
	}
	if stream {
		set = append(set, member{"stream", []byte("true")}, member{"stream_options", []byte(`{"include_usage":true}`)})
	}
	return object(set)
}

// maxTokens returns the maximum number of sampled ids as JSON: without it completions end after 16.
func (r *Request) maxTokens() []byte {
	for _, k := range []string{"max_tokens", "max_completion_tokens"} {
		if v := r.Fields[k]; v != nil {
			return v
		}
	}
	return []byte("null")
}
