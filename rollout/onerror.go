package rollout

// OnError says what a failure of one record does to the others: to a reader of dumps
// and to a run over rollouts alike.
type OnError uint8

// The choices.
const (
	OnErrorSkip OnError = iota // the record is left out, counted, and listed with its error
	OnErrorStop                // the first failure ends the reading or the run
)
