package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// errStopped ends a request to the engine whose rest is requested after a pause.
var errStopped = errors.New("a pause stops the reply")

// pausable is a reply that a pause may stop, and what is known of it from the requests before the current one.
type pausable struct {
	output []rollout.TokenID // sampled so far
	text   strings.Builder   // of output, as the engine returned it
	before int               // number of ids of output from earlier requests
	prompt []rollout.TokenID // of the current request
	detokenizer
}

// shaping are the fields that make a reply depend on more than the ids before it.
var shaping = []string{"stop", "presence_penalty", "frequency_penalty", "bad_words", "use_beam_search", "response_format", "structured_outputs",
	"guided_json", "guided_regex", "guided_choice", "guided_grammar", "regex", "ebnf", "json_schema"}

// stateful reports whether a request for the rest of a reply could be answered differently from the whole.
func stateful(fields map[string]json.RawMessage) bool {
	return slices.ContainsFunc(shaping, func(name string) bool {
		switch v := string(fields[name]); v {
		case "", "null", "0", "0.0", "false", "[]", `""`, `{"type":"text"}`, `{"type": "text"}`:
			return false
		}
		return true
	})
}

// generate requests the reply from the engine, in one request more than pauses stop it.
func (j *job) generate(leave func()) error {
	o := &j.h.opts
	defer func() { leave() }()
	if !j.call.IDsOnly { // its ids do not determine the reply, or the engine parses its text
		return o.Engine.Generate(j.ctx, &j.call.Request, j.take)
	}
	r := j.call.Request
	r.Stream = true // an unstreamed reply cannot be stopped
	j.rest = &pausable{prompt: r.Prompt, detokenizer: detokenizer{decode: o.Prompts.Decode}}
	for {
		err := j.generateUntil(o.Gate.Stop(), &r)
		if !errors.Is(err, errStopped) {
			return err
		}
		leave()
		leave = func() {}
		next, err := o.Gate.Again(j.ctx, o.Engine.Route(r.Session), r.Session)
		if err != nil {
			return err
		}
		leave = next
		if err := j.prepareRest(&r); err != nil || r.Prompt == nil {
			return err
		}
	}
}

// generateUntil calls the engine until the reply ends, or stop is closed before its last chunk: then it returns
// errStopped. A chunk is recorded completely or not at all.
func (j *job) generateUntil(stop <-chan struct{}, r *engine.Request) error {
	ctx, cancel := context.WithCancel(j.ctx)
	defer cancel()
	var mu sync.Mutex
	ended, stopped := false, false
	go func() {
		select {
		case <-ctx.Done():
		case <-stop:
			mu.Lock()
			defer mu.Unlock()
			if stopped = !ended; stopped {
				cancel()
			}
		}
	}()
	err := j.h.opts.Engine.Generate(ctx, r, func(c *engine.Chunk) error {
		mu.Lock()
		if stopped {
			mu.Unlock()
			return errStopped
		}
		ended = ended || slices.ContainsFunc(c.Choices, func(k engine.Choice) bool { return k.Finish != "" })
		mu.Unlock()
		return j.take(c)
	})
	mu.Lock()
	defer mu.Unlock()
	if stopped && j.ctx.Err() == nil {
		return errStopped
	}
	return err
}

// prepareRest makes the request for the rest, whose prompt ends with the ids so far. It removes the prompt if
// the reply already has all the ids that it may have, and no request is needed.
func (j *job) prepareRest(r *engine.Request) error {
	x := j.rest
	n := len(x.output)
	if n == x.before { // nothing arrived since
		return nil
	}
	text, told := "", x.text.String()
	if x.before == 0 { // the engine may hold back text that might begin a stop string or end within a character
		x.tail = contextIDs(j.call.Prompt)
		var err error
		if text, err = x.push(x.output, false); err != nil {
			return err
		}
		missing, ok := strings.CutPrefix(text, told)
		if !ok {
			missing, ok = strings.CutPrefix(strings.TrimPrefix(text, " "), told)
		}
		if !ok {
			j.why = "the ids before a pause do not spell the text that the engine told"
		}
		if text = missing; !ok {
			text = ""
		}
	}
	x.before, x.prompt = n, slices.Concat(j.call.Prompt, x.output)
	if text != "" {
		if err := j.take(&engine.Chunk{Choices: []engine.Choice{{Text: text}}}); err != nil {
			return err
		}
	}
	r.Prompt, r.Fields = x.prompt, maps.Clone(j.call.Fields)
	for _, name := range []string{"max_tokens", "max_completion_tokens", "min_tokens"} {
		most, err := strconv.Atoi(string(r.Fields[name]))
		if err != nil {
			continue // not a number
		}
		if most -= n; most <= 0 && name != "min_tokens" {
			r.Prompt = nil
			return j.take(&engine.Chunk{Choices: []engine.Choice{{Finish: "length"}}, Usage: &engine.Usage{Prompt: len(x.prompt), Completion: 0}})
		}
		r.Fields[name] = json.RawMessage(strconv.Itoa(max(0, most)))
	}
	return nil
}

// track records a chunk of a reply that a pause may stop. It converts a chunk of the rest to one of the whole
// reply, since the engine's prompt and its counts include the ids before the pause.
func (x *pausable) track(c *engine.Chunk) (err error) {
	if x.before > 0 {
		if slices.Equal(c.Prompt, x.prompt) {
			c.Prompt = nil
		}
		if u := c.Usage; u != nil {
			if u.Prompt >= x.before {
				u.Prompt -= x.before
			}
			u.Completion, u.Cached = u.Completion+x.before, min(u.Cached, u.Prompt)
		}
	}
	for i := range c.Choices {
		k := &c.Choices[i]
		if x.before == 0 {
			x.text.WriteString(k.Text)
		} else if len(k.IDs) > 0 || k.Finish != "" {
			if k.Text, err = x.push(k.IDs, k.Finish != ""); err != nil {
				return err
			}
		}
		x.output = append(x.output, k.IDs...)
	}
	return nil
}

// detokenizer returns the text of ids as they arrive.
type detokenizer struct {
	decode func([]rollout.TokenID) (string, error)
	tail   []rollout.TokenID // ids before more, on which the text of more may depend
	more   []rollout.TokenID // ids that end within a character
	told   int               // bytes of their text already returned
}

// contextIDs returns the final ids, on which the text of later ids may depend (SentencePiece).
func contextIDs(ids []rollout.TokenID) []rollout.TokenID {
	return slices.Clone(ids[max(0, len(ids)-4):])
}

// push returns the new text. An incomplete character is returned with its last id, or at the end if whole is
// set.
func (s *detokenizer) push(ids []rollout.TokenID, whole bool) (string, error) {
	s.more = append(s.more, ids...)
	before, err := s.decode(s.tail)
	if err != nil {
		return "", err
	}
	all, err := s.decode(slices.Concat(s.tail, s.more))
	if err != nil {
		return "", err
	}
	text, ok := strings.CutPrefix(all, before)
	if !ok {
		if text, err = s.decode(s.more); err != nil {
			return "", err
		}
	}
	if open := "\uFFFD"; !whole && strings.HasSuffix(text, open) {
		text = text[min(s.told, len(text)):max(s.told, len(text)-len(open))]
		s.told += len(text)
		return text, nil
	}
	text = text[min(s.told, len(text)):]
	s.tail, s.more, s.told = contextIDs(append(s.tail, s.more...)), nil, 0
	return text, nil
}
