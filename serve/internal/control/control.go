package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/turnpack/turnpack/internal/deliver"
	"github.com/turnpack/turnpack/internal/strictjson"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/live/gate"
)

// Options configures New. All fields are required.
type Options struct {
	Recorder *live.Recorder
	Journal  *live.Journal
	Gate     *gate.Gate
	// More returns the metrics of other parts.
	More func() []Metric
}

type control struct{ Options }

// New returns the handler.
func New(o Options) http.Handler {
	c := control{o}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /rollouts/{id}", c.rollout)
	mux.HandleFunc("GET /rollouts/{id}/calls", c.calls)
	mux.HandleFunc("POST /pause", c.pause)
	mux.HandleFunc("POST /resume", c.resume)
	mux.HandleFunc("POST /version", c.version)
	mux.HandleFunc("GET /healthz", c.health)
	mux.HandleFunc("GET /metrics", c.metrics)
	mux.HandleFunc("GET /debug/sessions", c.sessions)
	return mux
}

// session returns the session of the request; if there is none it answers the client and returns nil.
func (c control) session(w http.ResponseWriter, r *http.Request) *live.Session {
	if s, ok := c.Recorder.Session(r.PathValue("id")); ok {
		return s
	}
	deliver.Reply(w, nil, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.PathValue("id")}, "it is not known, or delivered: %w", live.ErrUnknown))
	return nil
}

func (c control) rollout(w http.ResponseWriter, r *http.Request) {
	s := c.session(w, r)
	if s == nil {
		return
	}
	var line []byte
	x, err := s.Rollout()
	if err == nil {
		line, err = jsonl.Append(nil, x)
	}
	if err != nil {
		deliver.Reply(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(line, '\n'))
}

func (c control) calls(w http.ResponseWriter, r *http.Request) {
	s := c.session(w, r)
	if s == nil {
		return
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	calls, err := s.Calls()
	for _, x := range calls {
		err = errors.Join(err, enc.Encode(x))
	}
	if err != nil {
		deliver.Reply(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	_, _ = out.WriteTo(w)
}

func (c control) pause(w http.ResponseWriter, r *http.Request) {
	body := struct {
		Policy string `json:"policy"`
	}{"hold"}
	if err := c.steer(r, &body); err != nil {
		deliver.Reply(w, nil, err)
		return
	}
	err := c.Gate.Pause(r.Context(), body.Policy)
	deliver.Reply(w, map[string]any{"paused": body.Policy, "running": c.Gate.Stats().Running}, err)
}

func (c control) resume(w http.ResponseWriter, r *http.Request) {
	err := c.steer(r, &struct{}{})
	if err == nil {
		c.Gate.Resume()
	}
	deliver.Reply(w, map[string]any{"paused": nil}, err)
}

func (c control) version(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Version *int32 `json:"version"`
	}
	err := c.steer(r, &body)
	switch {
	case err != nil:
	case body.Version == nil:
		err = rollout.Errorf(rollout.KindInput, rollout.Where{Field: "version"}, "is missing, expected a number")
	default:
		err = c.Gate.SetVersion(*body.Version)
	}
	deliver.Reply(w, body, err)
}

// steer decodes a request to the gate into to; an empty body changes nothing.
func (c control) steer(r *http.Request, to any) error {
	var text bytes.Buffer
	if _, err := text.ReadFrom(http.MaxBytesReader(nil, r.Body, 1<<16)); err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{}, "the request: %v", err)
	}
	if len(bytes.TrimSpace(text.Bytes())) == 0 {
		return nil
	}
	return strictjson.Decode(text.Bytes(), to)
}

func (c control) health(w http.ResponseWriter, _ *http.Request) {
	deliver.Reply(w, map[string]string{"status": "ok"}, c.Journal.Err())
}

func (c control) metrics(w http.ResponseWriter, _ *http.Request) {
	all := slices.Concat(Metrics("turnpack_recorder", "state", c.Recorder.Stats()), Metrics("turnpack_journal", "", c.Journal.Stats()),
		Metrics("turnpack_gate", "reason", c.Gate.Stats()), c.More())
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	var out bytes.Buffer
	writeMetrics(&out, all)
	_, _ = out.WriteTo(w)
}

// Summary describes one session.
type Summary struct {
	ID         string             `json:"id"`
	Began      time.Time          `json:"began,omitzero"`
	Ended      bool               `json:"ended"`
	Calls      int                `json:"calls"`
	States     map[live.State]int `json:"states"`
	Joins      map[string]int     `json:"joins"`
	Drift      int                `json:"drift"`      // ids that came back different
	Incomplete int                `json:"incomplete"` // calls
	Sampled    int                `json:"sampled"`    // ids
	// Fidelity is the share of sampled ids that are trained, 1 if none were sampled.
	Fidelity float64 `json:"fidelity"`
}

// summarize returns the summary of a session's calls.
func summarize(s *live.Session) (Summary, error) {
	calls, err := s.Calls()
	x := Summary{ID: s.ID(), Ended: s.Ended(), States: map[live.State]int{}, Joins: map[string]int{}, Fidelity: 1}
	trained := 0
	for i, c := range calls {
		if i == 0 {
			x.Began = c.Began
		}
		x.Calls++
		x.States[c.State]++
		if c.Join != "" {
			x.Joins[c.Join]++
		}
		x.Drift += c.Drift
		x.Sampled += c.OutputTokens
		if c.State == live.StateIncomplete {
			x.Incomplete++
		} else if c.State == live.StateOK || c.Used {
			trained += c.OutputTokens
		}
	}
	if x.Sampled > 0 {
		x.Fidelity = float64(trained) / float64(x.Sampled)
	}
	return x, err
}

// sessionsShown is the maximum number of sessions on the page, the latest ones.
const sessionsShown = 500

var page = template.Must(template.New("").Parse(`<!DOCTYPE html><meta charset="utf-8"><title>sessions</title>
<style>body{font-family:sans-serif}td,th{padding:2px 8px;text-align:left}tr:nth-child(even){background:#eee}</style>
<h1>Sessions</h1><p>{{.Held}} are held, {{len .Shown}} shown, the latest first.</p>
<table><tr><th>id<th>began<th>ended<th>calls<th>states<th>joins<th>drift<th>incomplete<th>sampled<th>fidelity
{{range .Shown}}<tr><td><a href="/rollouts/{{.ID}}/calls">{{.ID}}</a><td>{{.Began.Format "2006-01-02 15:04:05"}}<td>{{.Ended}}<td>{{.Calls}}<td>{{range $k, $n := .States}}{{$k}} {{$n}} {{end}}<td>{{range $k, $n := .Joins}}{{$k}} {{$n}} {{end}}<td>{{.Drift}}<td>{{.Incomplete}}<td>{{.Sampled}}<td>{{printf "%.3f" .Fidelity}}
{{end}}</table>
`))

func (c control) sessions(w http.ResponseWriter, r *http.Request) {
	all := slices.Collect(c.Recorder.Sessions())
	data := struct {
		Held  int       `json:"held"`
		Shown []Summary `json:"sessions"`
	}{Held: len(all), Shown: []Summary{}}
	for _, s := range slices.Backward(all) {
		if len(data.Shown) == sessionsShown {
			break
		}
		x, err := summarize(s)
		if err != nil {
			deliver.Reply(w, nil, err)
			return
		}
		data.Shown = append(data.Shown, x)
	}
	if strings.EqualFold(r.URL.Query().Get("format"), "json") {
		deliver.Reply(w, data, nil)
		return
	}
	var out bytes.Buffer
	if err := page.Execute(&out, data); err != nil {
		deliver.Reply(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = out.WriteTo(w)
}
