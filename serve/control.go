package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/live"
)

// session answers with what show writes of the session of the request.
func (s *Service) session(w http.ResponseWriter, r *http.Request, kind string, show func(*live.Session, *bytes.Buffer) error) {
	var out bytes.Buffer
	err := error(rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.PathValue("id")}, "it is not known, or delivered: %w", live.ErrUnknown))
	if x, ok := s.record.Session(r.PathValue("id")); ok {
		err = show(x, &out)
	}
	send(w, kind, &out, err)
}

// send answers with a text, or with an error.
func send(w http.ResponseWriter, kind string, text *bytes.Buffer, err error) {
	if err != nil {
		reply(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = text.WriteTo(w)
}

func (s *Service) rollout(w http.ResponseWriter, r *http.Request) {
	s.session(w, r, "application/json", func(x *live.Session, out *bytes.Buffer) error {
		now, err := x.Rollout()
		if err != nil {
			return err
		}
		line, err := jsonl.Append(nil, now)
		out.Write(append(line, '\n'))
		return err
	})
}

func (s *Service) calls(w http.ResponseWriter, r *http.Request) {
	s.session(w, r, "application/x-ndjson", func(x *live.Session, out *bytes.Buffer) error {
		calls, err := x.Calls()
		for _, c := range calls {
			err = errors.Join(err, json.NewEncoder(out).Encode(c))
		}
		return err
	})
}

func (s *Service) pause(w http.ResponseWriter, r *http.Request) {
	body := struct {
		Policy string `json:"policy"`
	}{"hold"}
	if decode(w, r, maxSteer, &body) {
		err := s.gate.Pause(r.Context(), body.Policy)
		reply(w, map[string]any{"paused": body.Policy, "running": s.gate.Stats().Running}, err)
	}
}

func (s *Service) resume(w http.ResponseWriter, r *http.Request) {
	if decode(w, r, maxSteer, &struct{}{}) {
		s.gate.Resume()
		reply(w, map[string]any{"paused": nil}, nil)
	}
}

func (s *Service) version(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Version *int32 `json:"version"`
	}
	if !decode(w, r, maxSteer, &body) {
		return
	}
	err := error(rollout.Errorf(rollout.KindInput, rollout.Where{Field: "version"}, "is missing, expected a number"))
	if body.Version != nil {
		err = s.gate.SetVersion(*body.Version)
	}
	reply(w, body, err)
}

func (s *Service) health(w http.ResponseWriter, _ *http.Request) {
	reply(w, map[string]string{"status": "ok"}, s.journal.Err())
}

func (s *Service) metrics(w http.ResponseWriter, _ *http.Request) {
	engines := map[string]map[string]float64{"running": {}, "failed": {}, "down": {}, "drops_ids": {}}
	is := map[bool]float64{true: 1}
	for _, e := range s.engines.Status() {
		engines["running"][e.Name], engines["failed"][e.Name] = float64(e.Running), float64(e.Failed)
		engines["down"][e.Name], engines["drops_ids"][e.Name] = is[time.Now().Before(e.Down)], is[e.Streams == "drops ids"]
	}
	all := slices.Concat(metricsOf("turnpack_recorder", "state", s.record.Stats()), metricsOf("turnpack_journal", "", s.journal.Stats()), metricsOf("turnpack_gate", "reason", s.gate.Stats()),
		metricsOf("turnpack_proxy", "", s.proxy.Stats()), metricsOf("turnpack_delivery", "reason", s.queue.Stats()), metricsOf("turnpack_engine", "engine", engines))
	if s.exact != nil {
		report := s.exact.Report()
		all = append(all, metricsOf("turnpack_prompts", "reason", report)...)
		all = append(all, metric{Name: "turnpack_prompts_bridged_share", Help: "share of turns whose prompt holds the reply before as it was sampled", Value: report.Share()})
	}
	var out bytes.Buffer
	writeMetrics(&out, all)
	send(w, "text/plain; version=0.0.4; charset=utf-8", &out, nil)
}

// summary describes one session.
type summary struct {
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
	Error    string  `json:"error,omitempty"` // why the calls cannot be read
}

// summarize returns the summary of a session's calls.
func summarize(s *live.Session) summary {
	calls, err := s.Calls()
	x := summary{ID: s.ID(), Ended: s.Ended(), States: map[live.State]int{}, Joins: map[string]int{}, Fidelity: 1}
	if err != nil {
		x.Error = err.Error()
	}
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
	return x
}

// sessionsShown is the maximum number of sessions on the page, the latest ones.
const sessionsShown = 500

var page = template.Must(template.New("").Parse(`<!DOCTYPE html><meta charset="utf-8"><title>sessions</title>
<style>body{font-family:sans-serif}td,th{padding:2px 8px;text-align:left}tr:nth-child(even){background:#eee}</style>
<h1>Sessions</h1><p>{{.Held}} are held, {{len .Shown}} shown, the latest first.</p>
<table><tr><th>id<th>began<th>ended<th>calls<th>states<th>joins<th>drift<th>incomplete<th>sampled<th>fidelity
{{range .Shown}}<tr><td><a href="/rollouts/{{.ID}}/calls">{{.ID}}</a>{{if .Error}}<td colspan="9">cannot be read: {{.Error}}{{else}}<td>{{.Began.Format "2006-01-02 15:04:05"}}<td>{{.Ended}}<td>{{.Calls}}<td>{{range $k, $n := .States}}{{$k}} {{$n}} {{end}}<td>{{range $k, $n := .Joins}}{{$k}} {{$n}} {{end}}<td>{{.Drift}}<td>{{.Incomplete}}<td>{{.Sampled}}<td>{{printf "%.3f" .Fidelity}}{{end}}
{{end}}</table>
`))

func (s *Service) sessions(w http.ResponseWriter, r *http.Request) {
	all := slices.Collect(s.record.Sessions())
	data := struct {
		Held  int       `json:"held"`
		Shown []summary `json:"sessions"`
	}{Held: len(all), Shown: []summary{}}
	for _, s := range slices.Backward(all) {
		if len(data.Shown) == sessionsShown {
			break
		}
		data.Shown = append(data.Shown, summarize(s))
	}
	if strings.EqualFold(r.URL.Query().Get("format"), "json") {
		reply(w, data, nil)
		return
	}
	var out bytes.Buffer
	err := page.Execute(&out, data)
	send(w, "text/html; charset=utf-8", &out, err)
}
