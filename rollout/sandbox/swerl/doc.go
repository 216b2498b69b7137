// Package swerl implements the protocol with which swe-rl (OpenClaw-RL at 0d034dd) runs its sandboxes: JSON
// over HTTP, an exec server on each machine with containers ([NewExecServer]), a pool that leases the
// containers ([NewPool]), and a client of either ([NewClient]).
//
// Requests and replies have the keys and defaults of swe-rl's servers and client, so each side works with the
// other's. These faults of swe-rl are corrected:
//
//	a lease without heartbeat or request      expires, and its container is destroyed
//	a command that exceeds its time           is killed with every process it started
//	a container that could not be destroyed   stays known and counted, and is retried
//	files that git ignores                    do not survive the reset before evaluation
//	an evaluation script                      may contain a line EOF, and have any length
//	an agent's commits                        are part of the patch
//	a patch without new lines                 is applied: files removed, renamed or made executable
//	files that are not UTF-8                  are in the patch as binary files are
//
// Replies have additional keys only if the request asked for them, and "verdict" if a command was killed for
// its memory or its number of processes.
package swerl
