package play

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/turnpack/turnpack/agent"
	"github.com/turnpack/turnpack/reward/ssr"
)

// promptVersion is the version of the texts below, to be raised with every change of a text. Rollouts
// record it.
const promptVersion = "ssr-play-2"

// Strategy is the way in which an injector makes its bug.
type Strategy string

// The strategies of the paper.
const (
	removal Strategy = "removal" // remove code
	history Strategy = "history" // undo a repair from the history of the repository
	direct  Strategy = "direct"  // write the bug directly
)

// artifactFiles lists the files that an injector must write to ~/artifact.
var artifactFiles = []string{"test_script.sh", "test_files.txt", "test_parser.py", "bug_inject.diff", "test_weaken.diff"}

// systemPrompt returns the system prompt for the agent's harness.
func systemPrompt(harness string) string {
	if harness != "" {
		return "You work in a git repository with the tools that you are given. Call a tool in every reply until the work is done, then say that it is: by the tool for it, or by a reply without a call."
	}
	return "You work in a git repository through a shell. In each reply, write THOUGHT: and briefly what you think, then give exactly one block:\n\n" +
		"```bash\none or more commands\n```\n\n" +
		"Each block runs in a new shell in the repository's folder. You then see its return code and output. When all is done, reply with a block that holds nothing but this:\n\n" +
		"```bash\necho " + agent.SubmitMark + "\n```"
}

var strategyTexts = map[Strategy]string{
	removal: "Make the bug by taking code away: bodies of functions, branches, checks, whole helpers, in several files that depend on each other. What is left must still look like a repository that somebody could have written.",
	history: "Make the bug out of the repository's own past: look at its history for changes that repaired or extended something, and take parts of them back, adapted so that the code of today still loads.",
	direct:  "Make the bug by editing code: a wrong bound, a condition that forgets a case, state that is not updated, two places that no longer agree. Avoid faults that one look at a line gives away.",
}

//go:embed inject.txt
var injectText string

// injectPrompt returns the task of an injector.
func injectPrompt(s Strategy, command string, settings ssr.Settings) string {
	tests := "Find out how its tests are run."
	if command != "" {
		tests = "Its tests are run by: " + command
	}
	return fmt.Sprintf(strings.TrimSuffix(injectText, "\n"), tests, strategyTexts[s], *settings.MinPassingTests, *settings.MinChangedFiles, *settings.MinFailingTests)
}

// solvePrompt returns the task of a solver.
func solvePrompt(spec, script string) string {
	return fmt.Sprintf("This repository has a bug, and its tests do not see it. They must hold again after this patch to the tests, which is not applied:\n\n```diff\n%s```\n\n"+
		"Repair the code. The tests are put back to their full form before your work is judged, so changes to test files count for nothing. All tests must pass. They are run by:\n\n```\n%s```\n", withFinalNewline(spec), withFinalNewline(script))
}

func withFinalNewline(text string) string { return strings.TrimSuffix(text, "\n") + "\n" }
