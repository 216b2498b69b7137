package traj

import (
	"path/filepath"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// tau2-bench keeps the runs of all tasks and trials in one file ("simulations"),
// or a file each. The user has tools of its own: its calls and their results are
// not shown to the assistant. The system prompt is not among the messages.

func isTau2(v value, _ *fileReader) bool {
	return v.Get("simulations").Kind() == jsonscan.Array && v.Get("info").Kind() == jsonscan.Object || isTau2Run(v)
}

func isTau2Run(v value) bool {
	return v.Get("termination_reason").Kind() == jsonscan.String && !v.Get("task_id").IsNull() && v.Get("messages").Kind() == jsonscan.Array
}

func readTau2(j *fileReader, v value) error {
	if isTau2Run(v) {
		info, err := j.tau2Beside()
		if err != nil {
			return err
		}
		if info.domain == "" {
			j.task = taskOf(filepath.Dir(j.file.Name))
		}
		return j.tau2Run(v, info)
	}
	info := tau2InfoOf(v)
	for _, run := range v.Get("simulations").Items() {
		if err := j.tau2Run(run, info); err != nil {
			if err = j.failed(err); err != nil {
				return err
			}
		}
	}
	return nil
}

// tau2Info is what the runs of a file share.
type tau2Info struct {
	domain, policy, agent string
	temperature           *float32
	tools                 []rollout.Tool
}

func tau2InfoOf(results value) tau2Info {
	env, agent := results.Path("info", "environment_info"), results.Path("info", "agent_info")
	x := tau2Info{
		domain: env.Get("domain_name").String(), policy: strings.Clone(env.Get("policy").String()),
		agent: strings.Clone(agent.Get("implementation").String()), temperature: temperature(agent.Path("llm_args", "temperature")),
	}
	if defs := env.Get("tool_defs"); defs.Kind() == jsonscan.Array {
		x.tools = functionTools(defs)
	}
	return x
}

// tau2Beside is that of a run in a file of its own, simulations/<id>.json, which the
// results.json beside that folder tells.
func (j *fileReader) tau2Beside() (tau2Info, error) {
	known := &j.r.tau2
	folder := filepath.Dir(j.file.Name)
	if j.r.opt.Alone || known.folder == folder {
		return known.tau2Info, nil
	}
	results, err := j.neighbourJSON(filepath.Join("..", "results.json"))
	known.folder, known.tau2Info = folder, tau2InfoOf(results)
	return known.tau2Info, err
}

// policyMark stands for the policy in Options.System.
const policyMark = "{policy}"

// tau2Agents are the agents whose system prompt holds the policy and nothing of the
// task; "" is one that the file does not name. What they put around the policy is
// not in the file.
var tau2Agents = []string{"", "llm_agent"}

// tau2System is the system prompt of a run, "" when it cannot be known.
func (j *fileReader) tau2System(info tau2Info) (text string, known bool) {
	given := j.r.opt.System
	switch {
	case given != "" && (info.policy != "" || !strings.Contains(given, policyMark)):
		return strings.ReplaceAll(given, policyMark, info.policy), true
	case info.policy == "":
		j.note("prompt_not_recorded", 0, "the system prompt, made of the domain's policy, is not in the file (--system FILE gives it)")
	case !contains(tau2Agents, info.agent):
		j.note("prompt_not_recorded", 0, "the agent %q puts more than the policy into its system prompt, and the file does not hold it (--system FILE gives it)", info.agent)
	default:
		j.note("system_partial", 0, "the system prompt is the domain's policy alone: what the agent puts around it is not in the file (--system FILE gives it, with {policy})")
		return info.policy, true
	}
	return "", false
}

// tau2Ends are the reasons that say how a run ended; of the others it is not
// known.
var tau2Ends = map[string]rollout.Status{
	"user_stop": rollout.StatusCompleted, "agent_stop": rollout.StatusCompleted,
	"max_steps": rollout.StatusTruncated, "timeout": rollout.StatusTruncated, "too_many_errors": rollout.StatusTruncated, "context_window_exceeded": rollout.StatusTruncated,
	"user_error": rollout.StatusFailed, "infrastructure_error": rollout.StatusFailed, "unexpected_error": rollout.StatusFailed,
}

// tau2Run reads one run. Each domain numbers its tasks from 0, so a group is
// named by both. Runs of which the domain is not known share groups in one folder
// only.
func (j *fileReader) tau2Run(v value, info tau2Info) error {
	task := identifier(v.Get("task_id"))
	x := tau2Messages{j: j}
	system, known := j.tau2System(info)
	if known {
		x.list = []rollout.Message{{Role: rollout.RoleSystem, Content: system}}
	}
	for _, m := range v.Get("messages").Items() {
		if err := x.add(m); err != nil {
			return err
		}
	}
	r := &rollout.Rollout{
		ID: identifier(v.Get("id")), Group: strings.TrimPrefix(info.domain+"/task-"+task, "/"), Instance: task, Index: noIndex,
		Messages: x.list, Turns: turns(x.list),
		ExitStatus: v.Get("termination_reason").String(),
		Outcome:    rollout.Outcome{Reward: j.reward(v.Path("reward_info", "reward"))},
		Tools:      info.tools, Temperature: info.temperature,
	}
	if n, ok := v.Get("trial").Int(); ok && n >= 0 {
		r.Index = n
	}
	if r.Status = tau2Ends[r.ExitStatus]; r.Status == rollout.StatusFailed {
		r.Failure = &rollout.Failure{Reason: r.ExitStatus}
	}
	for i := range r.Turns {
		r.Turns[i].Context.Unknown = !known
	}
	if info.tools == nil {
		j.note("tools_not_recorded", 0, "the tools the model saw are not in the file")
	}
	if x.users > 0 {
		j.note("user_tools", 0, "%d messages in which the user called tools of its own or got their results were left in the dump: the assistant does not see them", x.users)
	}
	j.leftover(r, v, "id", "task_id", "messages", "termination_reason", "reward_info")
	j.noteParts(r)
	return j.emit(r)
}

// tau2Messages are the messages that the assistant sees.
type tau2Messages struct {
	j     *fileReader
	list  []rollout.Message
	users int // messages of the user's own tools
	// spoken is true after the first message.
	spoken bool
}

func (x *tau2Messages) add(v value) error {
	if many := v.Get("tool_messages"); many.Kind() == jsonscan.Array {
		for _, m := range many.Items() {
			if err := x.add(m); err != nil {
				return err
			}
		}
		return nil
	}
	if v.Get("requestor").Is("user") || v.Get("role").Is("user") && v.Get("tool_calls").Len() > 0 {
		x.users++
		return nil
	}
	i := len(x.list)
	m, err := x.j.chatMessage(v, i)
	if err != nil {
		return err
	}
	drop(&m.Extra, "id", "turn_idx", "timestamp", "cost", "usage", "raw_data", "requestor")
	switch m.Role {
	case rollout.RoleTool:
		m.ToolCallID = v.Get("id").String()
	case rollout.RoleAssistant:
		m.Sampled = rollout.SampledByPolicy
		if !x.spoken && v.Get("usage").IsNull() && v.Get("raw_data").IsNull() {
			m.Sampled = rollout.SampledScripted // the greeting that opens every conversation
		}
		if m.Reasoning == "" {
			m.Reasoning = reasoningOf(v.Path("raw_data", "message"))
		}
	}
	x.list, x.spoken = append(x.list, m), true
	return nil
}
