package rollout

// OnError says what a reader of dumps, or a run over rollouts, does after one record fails.
type OnError uint8

// The choices of OnError.
const (
	OnErrorSkip OnError = iota // the record is left out, counted, and listed with its error
	OnErrorStop                // the first failure ends the reading or the run
)
