package openai

import "time"

// Waits sets the bounds of the waits between tries.
func (o *Options) Waits(least, most time.Duration) { o.backoffMin, o.backoffMax = least, most }

// Ejects sets the number of failures before an ejection and the bounds of its length.
func (o *Options) Ejects(after int, least, most time.Duration) {
	o.ejectAfter, o.ejectFor, o.ejectMax = after, least, most
}

// ReplyBytes sets the maximum size of a reply.
func (o *Options) ReplyBytes(n int64) { o.maxReply = n }

// First returns the state of the first endpoint.
func (c *Client) First() (inFlight int, ejected, oneByOne bool) {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	e := c.pool.endpoints[0]
	return e.inFlight, e.ejected > 0, e.oneByOne.Load()
}

// Ejection returns the length of the first endpoint's ejection, 0 if it is in service.
func (c *Client) Ejection() time.Duration {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return c.pool.endpoints[0].ejected
}
