package traj

import (
	"slices"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

type value = jsonscan.Value

// importer reads one dump format. To add a format, write one file with its
// functions and one entry in table.
type importer struct {
	name string
	own  bool // the user's
	// match reports whether a value is of this format. It looks at a few keys only,
	// and must be true for every value of the format, not just the first.
	match func(v value, j *fileReader) bool
	// read turns one value into rollouts and hands each to j.emit.
	read func(j *fileReader, v value) error
	// fold is set instead of read when all values of a file make one rollout.
	fold func(j *fileReader) folder
	// alone says that a value is read the same whatever was read before it.
	alone bool
	at    int // among all, of one that find returned
}

// folder collects the values of a file.
type folder interface {
	add(v value) error
	finish() error
}

// table lists the importers. The first match wins, so narrow ones come first.
func table() []importer {
	return []importer{
		{name: "native", match: isNative, read: readNative, alone: true},
		{name: "preference", match: isPreference, read: readPreference, alone: true},
		{name: "openclaw-rl", match: isOpenClaw, read: readOpenClaw, alone: true},
		{name: "mini-swe-agent", match: isMini, read: readMini, alone: true},
		{name: "mini-swe-agent", match: isMiniList, fold: foldMiniList},
		{name: "swe-agent", match: isSWEAgent, read: readSWEAgent, alone: true},
		{name: "nemo-gym", match: isNeMoGym, read: readNeMoGym, alone: true},
		{name: "nemo-gym", match: isNeMoEpisode, read: readNeMoEpisode},
		{name: "atif", match: isATIF, read: readATIF},
		{name: "openhands-output", match: isOpenHandsOutput, read: readOpenHandsOutput, alone: true},
		{name: "openhands-events", match: isEventList, fold: foldEvents},
		{name: "openhands-sdk-events", match: isSDKEvent, fold: foldSDKEvents},
		{name: "llm-completion-log", match: isCompletionLog, read: readCompletionLog},
		{name: "openai-wire", match: isOpenAIWire, read: readOpenAIWire},
		{name: "anthropic-messages", match: isAnthropic, read: readAnthropic},
		{name: "tau-bench", match: isTauBench, read: readTauBench},
		{name: "tau-bench", match: isTau2, read: readTau2},
		{name: "swe-agent-nebius", match: isNebius, read: readNebius, alone: true},
		{name: "sharegpt", match: isShareGPT, read: readShareGPT},
		{name: "adp", match: isADP, read: readADP, alone: true},
		{name: "inspect-ai", match: isInspect, read: readInspect},
		{name: "inspect-ai", match: isInspectSample, read: readInspectSample},
		{name: "prompt-completion", match: isPromptCompletion, read: readPromptCompletion, alone: true},
		{name: "native", match: isNativeChat, read: readNative, alone: true},
		{name: "openai-chat", match: isChat, read: readChat, alone: true},
	}
}

// Formats lists the names of the importers.
func Formats() []string {
	var out []string
	for _, imp := range table() {
		if !slices.Contains(out, imp.name) {
			out = append(out, imp.name)
		}
	}
	return out
}

// find picks the importer of a value: by content or, when the caller chose a
// format, that one.
func (r *Reader) find(v value, j *fileReader) *importer {
	all := append(r.importers(), table()...)
	for i := range all {
		all[i].at = i
	}
	chosen := r.opt.Format
	if chosen == "auto" {
		chosen = ""
	}
	var fallback *importer
	for i := range all {
		if chosen != "" && all[i].name != chosen {
			continue
		}
		if all[i].match(v, j) {
			return &all[i]
		}
		if chosen != "" && fallback == nil && v.Kind() == jsonscan.Object {
			fallback = &all[i]
		}
	}
	return fallback
}
