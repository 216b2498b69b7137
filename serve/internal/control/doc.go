// Package control shows and steers a recorder over HTTP, for operators and for trainers that change the
// weights.
//
//	h := control.New(control.Options{Recorder: rec, Journal: journal, Gate: g})
//	mux.Handle("/", h)
//
//	GET  /rollouts/{id}        the current rollout, a line of the native format
//	GET  /rollouts/{id}/calls  a JSON line per call: id, state, counts, join, drift, version
//	POST /pause                {"policy": "hold"}, reject, finish or continue
//	POST /resume
//	POST /version              {"version": 7}
//	GET  /healthz              200, or 503 with the reason why recording fails
//	GET  /metrics              counters as Prometheus text
//	GET  /debug/sessions       a page of sessions; ?format=json for programs
//
// Rollouts are shown without authentication: do not expose the handler to agents.
package control
