package traj

import (
	"maps"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// NeMo-Gym environments in which several models talk (nemo_user_sim) write an
// episode: "invocations", each the request and the response of one of them, in
// order. The policy is the assistant; users, judges and simulated tools are not.

func isNeMoEpisode(v value, _ *fileReader) bool {
	return v.Get("episode_interaction_protocol").Kind() == jsonscan.String && v.Get("invocations").Kind() == jsonscan.Array
}

func readNeMoEpisode(j *fileReader, v value) error {
	r := &rollout.Rollout{Index: noIndex, Turns: []rollout.Turn{}}
	join := newCallJoin(r)
	var last value
	others := map[string]bool{}
	for _, x := range v.Get("invocations").Items() {
		if role := x.Get("role").String(); role != "assistant" {
			others[role] = true
			continue
		}
		call, err := j.nemoCall(x.Get("request"), x.Get("response"))
		if err != nil {
			return err
		}
		if len(call.Turns) == 0 {
			continue // noted by nemoCall
		}
		if r.Tools == nil {
			r.Tools = call.Tools
		}
		if r.Temperature == nil {
			r.Temperature = call.Temperature
		}
		if r.TemplateKwargs == nil {
			r.TemplateKwargs = call.TemplateKwargs
		}
		join.call(call.Messages, call.Turns)
		last = x.Get("response")
	}
	if len(others) > 0 {
		j.note("other_agents", 0, "calls of other models were left in the dump: %s", strings.Join(slices.Sorted(maps.Keys(others)), ", "))
	}
	if len(r.Turns) == 0 {
		j.note("no_output", 0, "no invocation of the assistant has an output")
	}
	for i := range r.Turns {
		r.Turns[i].Step = i
	}
	j.nemoIdentity(r, v)
	j.nemoOutcome(r, v, last)
	j.leftover(r, v, "invocations", "reward", "_ng_task_index", "_ng_rollout_index")
	j.noteParts(r)
	j.orphans(r)
	return j.emit(r)
}
