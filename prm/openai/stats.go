package openai

// Stats counts the requests and votes of a Client.
type Stats struct {
	Requests, Votes                int64
	Retries, RateLimited, Failures int64 // Failures counts requests, not votes
	PromptTokens, CompletionTokens int64
	Cost                           float64 // by Options.Price
}

func (c *Client) count(f func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.stats)
}

// Stats returns a snapshot of the counts.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Cost = (float64(s.PromptTokens)*c.o.Price.Prompt + float64(s.CompletionTokens)*c.o.Price.Completion) / 1e6
	return s
}
