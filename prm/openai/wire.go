package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/rollout"
)

// commonFields returns the fields common to all requests as one JSON object, which is encoded only once.
func (c *Client) commonFields() ([]byte, error) {
	fields := map[string]any{"model": c.o.Model}
	if c.o.Temperature != nil {
		fields["temperature"] = *c.o.Temperature
	}
	if c.o.TopP != nil {
		fields["top_p"] = *c.o.TopP
	}
	if c.o.MaxTokens > 0 {
		// Many servers do not know the newer max_completion_tokens.
		if c.hosted {
			fields["max_completion_tokens"] = c.o.MaxTokens
		} else {
			fields["max_tokens"] = c.o.MaxTokens
		}
	}
	if c.o.Schema != nil {
		fields["response_format"] = map[string]any{"type": "json_schema",
			"json_schema": map[string]any{"name": "vote", "schema": c.o.Schema, "strict": true}}
	}
	maps.Copy(fields, c.o.Extra)
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options"}, "the request fields do not encode: %w", err)
	}
	return body, nil
}

// body returns the body of a request for n votes.
func (c *Client) body(req prm.Request, n int) []byte {
	messages, _ := json.Marshal(req.Messages) // texts do not fail to encode
	b := make([]byte, 0, len(c.common)+len(messages)+64)
	b = append(b, c.common[:len(c.common)-1]...)
	b = append(b, `,"messages":`...)
	b = append(b, messages...)
	b = append(b, `,"seed":`...)
	b = strconv.AppendInt(b, req.Seed, 10)
	if n > 1 {
		b = append(b, `,"n":`...)
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return append(b, '}')
}

// completion holds the parts of a reply that are read.
type completion struct {
	Choices []struct {
		Message *struct {
			Content *string `json:"content"`
		} `json:"message"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	} `json:"usage"`
}

// failure describes an attempt without a vote.
type failure struct {
	err     error
	status  int
	retry   bool          // another try may succeed
	limited bool          // 429: the endpoint is healthy but asks for a pause
	pause   time.Duration // requested by the server, 0 = none
	health  verdict
}

// send makes one request and reads its reply.
func (c *Client) send(ctx context.Context, e *endpoint, request []byte, n int) (replies []prm.Reply, status int, fail *failure) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+"/chat/completions", bytes.NewReader(request))
	if err != nil {
		return nil, 0, &failure{err: err, health: neutral}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "turnpack")
	if e.key != "" {
		req.Header.Set("Authorization", "Bearer "+e.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, 0, connectionFailure(err)
	}
	defer resp.Body.Close()
	status = resp.StatusCode
	if status >= 300 {
		return nil, status, c.failureOf(resp)
	}
	// One byte more distinguishes a body of exactly the limit from a larger one.
	raw, err := io.ReadAll(io.LimitReader(resp.Body, min(c.o.maxReply, math.MaxInt64-1)+1))
	switch {
	case int64(len(raw)) > c.o.maxReply:
		return nil, status, &failure{err: fmt.Errorf("the reply is larger than the limit of %d bytes", c.o.maxReply), health: neutral}
	case err != nil:
		return nil, status, connectionFailure(fmt.Errorf("read the reply of %s: %w", e.url, err))
	}
	var body completion
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, status, &failure{err: fmt.Errorf("the reply is no chat completion: %w", err), status: status, retry: true, health: failing}
	}
	for _, ch := range body.Choices {
		if ch.Message == nil {
			continue
		}
		r := prm.Reply{FinishReason: c.secret.redact(ch.FinishReason)}
		if ch.Message.Content != nil {
			r.Text = c.secret.redact(*ch.Message.Content)
		}
		if replies = append(replies, r); len(replies) == n {
			break
		}
	}
	if len(replies) == 0 {
		return nil, status, &failure{err: errors.New("the reply has no choices"), status: status, retry: true, health: failing}
	}
	distributeUsage(replies, max(body.Usage.Prompt, 0), max(body.Usage.Completion, 0))
	return replies, status, nil
}

// distributeUsage distributes the token counts of a reply over its votes: the prompt to the first vote, the
// completion evenly, its remainder to the first vote.
func distributeUsage(replies []prm.Reply, prompt, completion int) {
	each := completion / len(replies)
	for i := range replies {
		replies[i].CompletionTokens = each
	}
	replies[0].PromptTokens = prompt
	replies[0].CompletionTokens += completion - each*len(replies)
}

// connectionFailure returns the failure of a request without a whole response, after a failed connection or a
// timeout.
func connectionFailure(err error) *failure { return &failure{err: err, retry: true, health: failing} }

// failureOf returns the failure for a response without success.
func (c *Client) failureOf(resp *http.Response) *failure {
	f := &failure{status: resp.StatusCode, err: c.statusError(resp), health: neutral}
	switch s := resp.StatusCode; {
	case s == http.StatusTooManyRequests:
		f.retry, f.limited = true, true
		f.pause = retryAfter(resp.Header, time.Now())
	case s == http.StatusServiceUnavailable:
		f.retry, f.health = true, failing
		f.pause = retryAfter(resp.Header, time.Now())
	// A router or a login page answers with a redirect if the server is down.
	case s < 400, s >= 500, s == http.StatusRequestTimeout, s == http.StatusTooEarly:
		f.retry, f.health = true, failing
	}
	return f
}

const (
	quoted    = 300     // maximum number of characters quoted from a server in an error
	maxRefuse = 1 << 16 // maximum number of bytes read from a response without success
)

// statusError returns an error with the status and the server's message.
func (c *Client) statusError(resp *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, min(maxRefuse, c.o.maxReply)))
	text := ""
	if err == nil {
		text = bodyMessage(raw)
	}
	if to := resp.Header.Get("Location"); to != "" && resp.StatusCode < 400 {
		text = "a redirect to " + to + ", which is not followed"
	}
	// Redact before truncating, since half a key would not be recognised.
	text = strings.Join(strings.Fields(c.secret.redact(strings.ToValidUTF8(text, "\uFFFD"))), " ")
	if r := []rune(text); len(r) > quoted {
		text = string(r[:quoted]) + "…"
	}
	if text == "" {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return fmt.Errorf("status %d: %s", resp.StatusCode, text)
}

// bodyMessage returns the message in an error body, in the formats of common servers.
func bodyMessage(b []byte) string {
	var shape struct {
		Error   any    `json:"error"` // {"message": …} or a string
		Message string `json:"message"`
		Detail  any    `json:"detail"`
	}
	if json.Unmarshal(b, &shape) == nil {
		if e, ok := shape.Error.(map[string]any); ok {
			shape.Error = e["message"]
		}
		if text, ok := shape.Error.(string); ok && text != "" {
			return text
		}
		if shape.Message != "" {
			return shape.Message
		}
		if shape.Detail != nil {
			return fmt.Sprint(shape.Detail)
		}
	}
	return string(b)
}

// retryAfter returns the pause in Retry-After-Ms or Retry-After (seconds or a date), 0 if there is no
// valid one.
func retryAfter(h http.Header, now time.Time) time.Duration {
	number := func(s string, unit time.Duration) time.Duration {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(v) || v <= 0 {
			return 0
		}
		return time.Duration(min(v*float64(unit), float64(24*time.Hour)))
	}
	if d := number(h.Get("Retry-After-Ms"), time.Millisecond); d > 0 {
		return d
	}
	s := h.Get("Retry-After")
	if d := number(s, time.Second); d > 0 {
		return d
	}
	if t, _ := http.ParseTime(s); t.After(now) {
		return min(t.Sub(now), 24*time.Hour)
	}
	return 0
}
