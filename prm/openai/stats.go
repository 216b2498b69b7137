package openai

import "sync"

// Stats counts what a Client did.
type Stats struct {
	Requests, Votes                int64
	Retries, RateLimited, Failures int64 // Failures counts requests, not votes
	PromptTokens, CompletionTokens int64
	Cost                           float64 // by Options.Price
}

type meter struct {
	mu sync.Mutex
	s  Stats
}

func (m *meter) add(f func(*Stats)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.s)
}

// Stats returns a snapshot.
func (c *Client) Stats() Stats {
	if c.pool == nil {
		return Stats{}
	}
	c.meter.mu.Lock()
	s := c.meter.s
	c.meter.mu.Unlock()
	s.Cost = (float64(s.PromptTokens)*c.o.Price.Prompt + float64(s.CompletionTokens)*c.o.Price.Completion) / 1e6
	return s
}
