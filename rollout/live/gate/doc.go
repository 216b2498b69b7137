// Package gate decides whether a model call may go to an engine now: it limits running and waiting calls, holds
// or refuses calls while a trainer changes the weights, tracks the version of the weights, and ends rollouts
// that are too long.
//
//	g, err := gate.New(gate.Options{Full: queue.Full})
//	err = g.Session()                        // before a new session begins
//	err = g.Turn(ctx, session)               // refuses a rollout at its cap
//	leave, err := g.Enter(ctx, engine, id)   // waits for its turn, or for the end of a pause
//	defer leave()
//	…                                        // ask the engine; g.Version() is the weights' version
//
// [Answer] maps any error of a call to an HTTP status and a time to retry. [Gate.Stats] counts every refusal.
//
// # Pauses
//
// Running calls continue under each policy but "continue". With "hold" new calls wait until [Gate.Resume],
// while a proxy keeps its client alive; with "reject" they are refused; with "finish" they wait, and
// [Gate.Pause] returns when no call is running, so that weights can change while no token is being sampled.
// "continue" is "finish" without the wait for replies: the caller watches [Gate.Stop], ends its request,
// leaves, and requests the rest of the reply after [Gate.Again].
package gate
