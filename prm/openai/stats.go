package openai

import (
	"sync"
	"time"
)

// Stats counts what a Client did.
type Stats struct {
	Requests, Votes                int64
	Retries, RateLimited, Failures int64 // Failures counts requests, not votes
	PromptTokens, CompletionTokens int64
	Cost                           float64 // by Options.Price
	Endpoints                      []EndpointStats
}

// EndpointStats is the state of one endpoint.
type EndpointStats struct {
	URL       string
	Requests  int64
	InFlight  int
	Ejections int64
	Ejected   bool
	// OneByOne is true once the server turned out not to draw several votes from
	// one request.
	OneByOne bool
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
	now := time.Now()
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	for _, e := range c.pool.endpoints {
		s.Endpoints = append(s.Endpoints, EndpointStats{
			URL: e.url, Requests: e.requests, InFlight: e.inFlight, Ejections: e.ejections,
			Ejected: e.ejected > 0 && now.Before(e.until), OneByOne: e.oneByOne,
		})
	}
	return s
}
