package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// maxBody bounds a request and a response: a context of a million tokens with
// ids and log probabilities is smaller.
const maxBody = 256 << 20

// service holds the rollouts that are under way and the groups that wait for
// their last rollout.
type service struct {
	engine  string
	size    int // rollouts of a group
	batches *batches

	mu     sync.Mutex
	live   map[string][]*rollout.Rollout // rollout id → one entry per call
	groups map[string][]*rollout.Rollout // group → rollouts that ended
}

func newService(engine string, size int, b *batches) *service {
	return &service{engine: strings.TrimRight(engine, "/"), size: size, batches: b, live: map[string][]*rollout.Rollout{}, groups: map[string][]*rollout.Rollout{}}
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /rollouts/{id}/v1/chat/completions", s.complete)
	mux.HandleFunc("POST /rollouts/{id}/end", s.end)
	return mux
}

// complete asks the engine for a completion with its token ids, and answers
// what the engine answered.
func (s *service) complete(w http.ResponseWriter, r *http.Request) {
	var request map[string]json.RawMessage
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&request); err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	if string(request["stream"]) == "true" {
		fail(w, http.StatusBadRequest, errors.New("found stream: true, expected a request without streaming: set it to false"))
		return
	}
	request["return_token_ids"], request["logprobs"] = json.RawMessage("true"), json.RawMessage("true")
	body, err := json.Marshal(request)
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	status, response, err := s.ask(r, body)
	if err != nil {
		fail(w, http.StatusBadGateway, err)
		return
	}
	if status == http.StatusOK {
		call, err := readCall(body, response)
		if err != nil {
			fail(w, http.StatusBadGateway, err)
			return
		}
		id := r.PathValue("id")
		s.mu.Lock()
		s.live[id] = append(s.live[id], call)
		s.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(response)
}

func (s *service) ask(r *http.Request, body []byte) (int, []byte, error) {
	ask, err := http.NewRequestWithContext(r.Context(), http.MethodPost, s.engine+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	ask.Header.Set("Content-Type", "application/json")
	ask.Header.Set("Authorization", r.Header.Get("Authorization"))
	answer, err := http.DefaultClient.Do(ask)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	response, err := io.ReadAll(http.MaxBytesReader(nil, answer.Body, maxBody))
	return answer.StatusCode, response, err
}

// readCall makes a rollout of one call out of one exchange.
func readCall(request, response []byte) (*rollout.Rollout, error) {
	call, err := traj.ReadCall(request, response)
	if err != nil {
		return nil, err
	}
	if t := call.Turns[0]; t.Incomplete == "" && (!t.Prompt.Captured() || t.Output == nil || t.Logprobs == nil) {
		return nil, errors.New("the engine's answer lacks prompt_token_ids, token_ids or logprobs: training needs what was sampled, so use an engine that knows return_token_ids, as vLLM does")
	}
	return call, nil
}

// outcome is how a harness says that a rollout ended.
type outcome struct {
	Group    string          `json:"group"`
	Resolved *bool           `json:"resolved"`
	Status   *rollout.Status `json:"status"`
	// Failure names a fault that is not the policy's; such a rollout has no reward.
	Failure string `json:"failure"`
}

// ended is what /end answers.
type ended struct {
	Group   string `json:"group"`
	Waiting int    `json:"waiting"` // rollouts that the group still lacks
	Batch   *batch `json:"batch,omitempty"`
}

// end closes a rollout; the last one of a group is answered with its batch,
// unless the whole group was lost.
func (s *service) end(w http.ResponseWriter, r *http.Request) {
	var o outcome
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	in.DisallowUnknownFields()
	if err := in.Decode(&o); err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	if o.Group == "" || o.Resolved == nil && o.Failure == "" {
		fail(w, http.StatusBadRequest, errors.New("expected a group, and resolved or failure"))
		return
	}
	group, waiting, err := s.close(r.PathValue("id"), o)
	if err != nil {
		fail(w, http.StatusConflict, err)
		return
	}
	answer := ended{Group: o.Group, Waiting: waiting}
	if group != nil {
		// The harness may hang up; the batch is written all the same.
		if answer.Batch, err = s.batches.write(group); err != nil {
			fail(w, http.StatusInternalServerError, err)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(answer)
}

// close moves a rollout from the live ones to its group, and gives the group
// back once it is complete.
func (s *service) close(id string, o outcome) (group []*rollout.Rollout, waiting int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls, ok := s.live[id]
	if !ok {
		return nil, 0, fmt.Errorf("rollout %q has no recorded call, or has ended already", id)
	}
	if slices.ContainsFunc(s.groups[o.Group], func(x *rollout.Rollout) bool { return x.ID == id }) {
		return nil, 0, fmt.Errorf("group %q holds a rollout %q already: give each attempt an id of its own, one that runs again, too", o.Group, id)
	}
	x, err := traj.JoinCalls(calls)
	if err != nil {
		return nil, 0, err
	}
	delete(s.live, id)
	x.ID, x.Group, x.Index = id, o.Group, len(s.groups[o.Group])
	x.Outcome.Resolved = o.Resolved
	if o.Status != nil {
		x.Status = *o.Status
	}
	if o.Failure != "" {
		x.Status, x.Failure = rollout.StatusFailed, &rollout.Failure{Reason: o.Failure}
	}
	s.groups[o.Group] = append(s.groups[o.Group], x)
	if waiting = s.size - len(s.groups[o.Group]); waiting > 0 {
		return nil, waiting, nil
	}
	group = s.groups[o.Group]
	delete(s.groups, o.Group)
	return group, 0, nil
}

func fail(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}
