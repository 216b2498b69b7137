// Package gate says whether a model call may go to an engine now: it bounds what runs and
// what waits, holds or refuses calls while a trainer changes the weights, knows the
// version of the weights, and ends rollouts that are too long.
//
//	g, err := gate.New(gate.Options{Full: queue.Full})
//	err = g.Session()                        // before a new session begins
//	err = g.Turn(ctx, session)               // a rollout at its cap is truncated
//	leave, err := g.Enter(ctx, engine, id)   // waits its turn, or for the end of a pause
//	defer leave()
//	…                                        // ask the engine; g.Version() sampled it
//
// [Answer] gives the HTTP status of any error of a call, and when to ask again. Nothing is refused in silence: [Gate.Stats] counts.
//
// # Pauses
//
// Calls that run go on under each policy but "continue". With "hold" new ones wait until [Gate.Resume],
// during which a proxy keeps its client alive; with "reject" they are refused; with
// "finish" they wait, and [Gate.Pause] returns when none runs any more, so that weights
// can change where no token is being sampled; "continue" is that without the wait: who
// makes a call watches [Gate.Stop], ends its request, leaves, and asks for the rest of the
// reply after [Gate.Again].
package gate
