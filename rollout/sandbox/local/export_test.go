package local

import "time"

// Every has memory and processes looked at more often.
func (o Options) Every(d time.Duration) Options {
	o.every = d
	return o
}
