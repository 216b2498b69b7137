package tau

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Tau2 reads runs of tau2-bench, all in one file or one per file.
func Tau2() format.Importer {
	return format.Importer{Name: "tau-bench", Match: isTau2, Read: readTau2}
}

func isTau2(v format.Value, _ *format.File) bool {
	return v.Get("simulations").Kind() == jsonscan.Array && v.Get("info").Kind() == jsonscan.Object || isRun(v)
}

func isRun(v format.Value) bool {
	return v.Get("termination_reason").Kind() == jsonscan.String && !v.Get("task_id").IsNull() && v.Get("messages").Kind() == jsonscan.Array
}

func readTau2(in *format.File, v format.Value) error {
	if isRun(v) {
		info, err := infoBeside(in)
		if err != nil {
			return err
		}
		if info.domain == "" {
			in.Task = format.TaskOf(filepath.Dir(in.Name))
		}
		return readRun(in, v, info)
	}
	info := infoOf(v)
	for _, run := range v.Get("simulations").Items() {
		if err := in.Failed(readRun(in, run, info)); err != nil {
			return err
		}
	}
	return nil
}

// runInfo holds what the runs of a file share.
type runInfo struct {
	domain, policy, agent string
	temperature           *float32
	tools                 []rollout.Tool
}

func infoOf(results format.Value) runInfo {
	env, agent := results.Path("info", "environment_info"), results.Path("info", "agent_info")
	x := runInfo{
		domain: env.Get("domain_name").String(), policy: strings.Clone(env.Get("policy").String()),
		agent: strings.Clone(agent.Get("implementation").String()), temperature: format.Temperature(agent.Path("llm_args", "temperature")),
	}
	if defs := env.Get("tool_defs"); defs.Kind() == jsonscan.Array {
		x.tools = format.FunctionTools(defs)
	}
	return x
}

// infoFolder caches the shared info of the last folder whose runs have a file each.
type infoFolder struct {
	folder string
	runInfo
}

// infoBeside returns the shared info of a run in a file of its own, simulations/<id>.json,
// from results.json beside that folder.
func infoBeside(in *format.File) (runInfo, error) {
	known := format.Remembered[infoFolder](in.OfReader)
	folder := filepath.Dir(in.Name)
	if in.Settings.Alone || known.folder == folder {
		return known.runInfo, nil
	}
	results, err := in.NeighbourJSON(filepath.Join("..", "results.json"))
	known.folder, known.runInfo = folder, infoOf(results)
	return known.runInfo, err
}

// policyAgents are the agents whose system prompt has the policy and nothing of the task;
// "" is an agent that the file does not name. The text around the policy is not in the
// file.
var policyAgents = []string{"", "llm_agent"}

// systemPrompt returns the system prompt of a run, if it is known.
func systemPrompt(in *format.File, info runInfo) (text string, known bool) {
	given := in.Settings.System
	switch {
	case given != "" && (info.policy != "" || !strings.Contains(given, format.PolicyMark)):
		return strings.ReplaceAll(given, format.PolicyMark, info.policy), true
	case info.policy == "":
		in.Note("prompt_not_recorded", 0, "the system prompt, made of the domain's policy, is not in the file (--system FILE gives it)")
	case !slices.Contains(policyAgents, info.agent):
		in.Note("prompt_not_recorded", 0, "the agent %q puts more than the policy into its system prompt, and the file does not hold it (--system FILE gives it)", info.agent)
	default:
		in.Note("system_partial", 0, "the system prompt is the domain's policy alone: what the agent puts around it is not in the file (--system FILE gives it, with {policy})")
		return info.policy, true
	}
	return "", false
}

// statuses maps the termination reasons whose status is known.
var statuses = map[string]rollout.Status{
	"user_stop": rollout.StatusCompleted, "agent_stop": rollout.StatusCompleted,
	"max_steps": rollout.StatusTruncated, "timeout": rollout.StatusTruncated, "too_many_errors": rollout.StatusTruncated, "context_window_exceeded": rollout.StatusTruncated,
	"user_error": rollout.StatusFailed, "infrastructure_error": rollout.StatusFailed, "unexpected_error": rollout.StatusFailed,
}

// readRun reads one run. Each domain numbers its tasks from 0, so a group is named by both.
// Runs of unknown domain share groups only within a folder.
func readRun(in *format.File, v format.Value, info runInfo) error {
	task := format.Identifier(v.Get("task_id"))
	x := shownMessages{in: in}
	system, known := systemPrompt(in, info)
	if known {
		x.list = []rollout.Message{{Role: rollout.RoleSystem, Content: system}}
	}
	for _, m := range v.Get("messages").Items() {
		if err := x.add(m); err != nil {
			return err
		}
	}
	r := &rollout.Rollout{
		ID: format.Identifier(v.Get("id")), Group: strings.TrimPrefix(info.domain+"/task-"+task, "/"), Instance: task, Index: format.NoIndex,
		Messages: x.list, Turns: format.TurnsOf(x.list),
		ExitStatus: v.Get("termination_reason").String(),
		Outcome:    rollout.Outcome{Reward: in.Reward(v.Path("reward_info", "reward"))},
		Tools:      info.tools, Temperature: info.temperature,
	}
	if n, ok := v.Get("trial").Int(); ok && n >= 0 {
		r.Index = n
	}
	if r.Status = statuses[r.ExitStatus]; r.Status == rollout.StatusFailed {
		r.Failure = &rollout.Failure{Reason: r.ExitStatus}
	}
	for i := range r.Turns {
		r.Turns[i].Context.Unknown = !known
	}
	if info.tools == nil {
		in.Note("tools_not_recorded", 0, "the tools the model saw are not in the file")
	}
	if x.users > 0 {
		in.Note("user_tools", 0, "%d messages in which the user called tools of its own or got their results were left in the dump: the assistant does not see them", x.users)
	}
	in.Leftover(r, v, "id", "task_id", "messages", "termination_reason", "reward_info")
	in.NoteParts(r)
	return in.Emit(r)
}

// shownMessages collects the messages that the assistant sees.
type shownMessages struct {
	in    *format.File
	list  []rollout.Message
	users int // number of messages of the user's own tools
	// spoken is true after the first message.
	spoken bool
}

func (x *shownMessages) add(v format.Value) error {
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
	m, err := x.in.ChatMessage(v, i)
	if err != nil {
		return err
	}
	format.Drop(&m.Extra, "id", "turn_idx", "timestamp", "cost", "usage", "raw_data", "requestor")
	switch m.Role {
	case rollout.RoleTool:
		m.ToolCallID = v.Get("id").String()
	case rollout.RoleAssistant:
		m.Sampled = rollout.SampledByPolicy
		if !x.spoken && v.Get("usage").IsNull() && v.Get("raw_data").IsNull() {
			m.Sampled = rollout.SampledScripted // the greeting that opens every conversation
		}
		if m.Reasoning == "" {
			m.Reasoning = format.ReasoningOf(v.Path("raw_data", "message"))
		}
	}
	x.list, x.spoken = append(x.list, m), true
	return nil
}
