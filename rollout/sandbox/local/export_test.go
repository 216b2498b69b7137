package local

import "time"

// Every sets how often memory and processes are checked.
func (o Options) Every(d time.Duration) Options {
	o.every = d
	return o
}
