package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	oai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/rollout"
)

// fixed writes what all requests have in common, as one JSON object. The client
// library encodes it once: per vote, its encoder would cost more than all the
// rest of the client.
func (c *Client) fixed() ([]byte, error) {
	p := oai.ChatCompletionNewParams{Model: c.o.Model}
	if c.o.Temperature != nil {
		p.Temperature = oai.Float(*c.o.Temperature)
	}
	if c.o.TopP != nil {
		p.TopP = oai.Float(*c.o.TopP)
	}
	if c.o.MaxTokens > 0 {
		// max_completion_tokens is younger than many servers.
		if c.hosted {
			p.MaxCompletionTokens = oai.Int(int64(c.o.MaxTokens))
		} else {
			p.MaxTokens = oai.Int(int64(c.o.MaxTokens))
		}
	}
	if c.o.Schema != nil {
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "vote", Schema: c.o.Schema, Strict: param.NewOpt(true)},
		}
	}
	if len(c.o.Extra) > 0 {
		p.SetExtraFields(c.o.Extra)
	}
	body, err := json.Marshal(p)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options"}, "the request fields do not encode: %w", err)
	}
	return body, nil
}

// body writes a request for n votes.
func (c *Client) body(req prm.Request, n int) ([]byte, error) {
	messages, err := json.Marshal(req.Messages)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInternal, where(req), "the messages do not encode: %w", err)
	}
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
	return append(b, '}'), nil
}

// completion is the part of a reply that is read.
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

// failure is an attempt that gave no vote.
type failure struct {
	err     error
	status  int
	retry   bool          // another try may succeed
	limited bool          // 429: the endpoint is well but wants a pause
	pause   time.Duration // asked for by the server, 0 none
	health  verdict
}

// send makes one request and reads its reply.
func send(ctx context.Context, e *endpoint, request []byte, n int) (replies []prm.Reply, status int, fail *failure) {
	var raw []byte
	var resp *http.Response
	_, err := e.chat.New(ctx, oai.ChatCompletionNewParams{}, option.WithRequestBody("application/json", request), option.WithResponseBodyInto(&raw), option.WithResponseInto(&resp))
	if resp != nil {
		status = resp.StatusCode
	}
	if err != nil || status >= 300 {
		return nil, status, classify(err, resp)
	}
	var body completion
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, status, &failure{err: fmt.Errorf("the reply is no chat completion: %w", err), status: status, retry: true, health: failing}
	}
	for _, ch := range body.Choices {
		if ch.Message == nil {
			continue
		}
		r := prm.Reply{FinishReason: ch.FinishReason}
		if ch.Message.Content != nil {
			r.Text = *ch.Message.Content
		}
		if replies = append(replies, r); len(replies) == n {
			break
		}
	}
	if len(replies) == 0 {
		return nil, status, &failure{err: errors.New("the reply has no choices"), status: status, retry: true, health: failing}
	}
	share(replies, max(body.Usage.Prompt, 0), max(body.Usage.Completion, 0))
	return replies, status, nil
}

// share spreads the usage of a reply over its votes: the prompt on the first,
// the completion evenly, the rest on the first.
func share(replies []prm.Reply, prompt, completion int) {
	each := completion / len(replies)
	for i := range replies {
		replies[i].CompletionTokens = each
	}
	replies[0].PromptTokens = prompt
	replies[0].CompletionTokens += completion - each*len(replies)
}

// classify says what a failed request means. resp may be nil; its body may be
// gone.
func classify(err error, resp *http.Response) *failure {
	if resp == nil || resp.StatusCode < 300 {
		// No response, or one that broke off: the connection or the server's haste.
		f := &failure{err: err, retry: true, health: failing}
		if errors.Is(err, errReplyTooLarge) {
			f.retry, f.health = false, neutral
		}
		return f
	}
	f := &failure{status: resp.StatusCode, err: statusError(err, resp), health: neutral}
	switch s := resp.StatusCode; {
	case s == http.StatusTooManyRequests:
		f.retry, f.limited = true, true
		f.pause = retryAfter(resp.Header, time.Now())
	case s == http.StatusServiceUnavailable:
		f.retry, f.health = true, failing
		f.pause = retryAfter(resp.Header, time.Now())
	case s >= 500, s == http.StatusRequestTimeout, s == http.StatusTooEarly:
		f.retry, f.health = true, failing
	}
	return f
}

const quoted = 300 // characters of a server's own words in an error

// statusError quotes what the server said beside its status.
func statusError(err error, resp *http.Response) error {
	text := ""
	var api *oai.Error
	if errors.As(err, &api) && api.Message != "" {
		text = api.Message
	} else if resp.Body != nil {
		// The client has read the body already and left a copy.
		b, rerr := io.ReadAll(io.LimitReader(resp.Body, 8*quoted))
		if rerr == nil {
			text = bodyMessage(b)
		}
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if r := []rune(text); len(r) > quoted {
		text = string(r[:quoted]) + "…"
	}
	if text == "" {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return fmt.Errorf("status %d: %s", resp.StatusCode, text)
}

// bodyMessage finds the message in the error shapes of common servers.
func bodyMessage(b []byte) string {
	var shape struct {
		Message string `json:"message"`
		Detail  any    `json:"detail"`
	}
	if json.Unmarshal(b, &shape) == nil {
		if shape.Message != "" {
			return shape.Message
		}
		if shape.Detail != nil {
			return fmt.Sprint(shape.Detail)
		}
	}
	return string(b)
}

// retryAfter reads Retry-After-Ms and Retry-After (seconds or a date), 0 when
// there is none that makes sense.
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
	if t, err := http.ParseTime(s); err == nil && t.After(now) {
		return min(t.Sub(now), 24*time.Hour)
	}
	return 0
}

var errReplyTooLarge = errors.New("the reply is larger than the limit")

// capped bounds every reply body, after decompression.
type capped struct {
	next  http.RoundTripper
	limit int64
}

func (t capped) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if resp != nil && resp.Body != nil {
		resp.Body = &cappedBody{ReadCloser: resp.Body, left: t.limit}
	}
	return resp, err
}

type cappedBody struct {
	io.ReadCloser
	left int64
}

func (b *cappedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		// One byte more tells a body of exactly the limit from a larger one.
		var one [1]byte
		n, err := b.ReadCloser.Read(one[:])
		if n > 0 {
			return 0, errReplyTooLarge
		}
		return 0, err
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}
