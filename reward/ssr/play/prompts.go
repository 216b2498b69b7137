package play

import (
	"fmt"

	"github.com/turnpack/turnpack/agent"
	"github.com/turnpack/turnpack/reward/ssr"
)

// promptVersion names the texts below: a changed text is a new version. Rollouts record it.
const promptVersion = "ssr-play-2"

// Strategy is how an injector makes its bug.
type Strategy string

// The strategies of the paper.
const (
	removal Strategy = "removal" // take code away
	history Strategy = "history" // undo what the history of the repository repaired
	direct  Strategy = "direct"  // write the bug
)

// artifactFiles are what an injector leaves in ~/artifact.
var artifactFiles = []string{"test_script.sh", "test_files.txt", "test_parser.py", "bug_inject.diff", "test_weaken.diff"}

// systemPrompt says how to work, by the harness of the agent.
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

// injectPrompt asks for an artifact.
func injectPrompt(s Strategy, command string, settings ssr.Settings) string {
	tests := "Find out how its tests are run."
	if command != "" {
		tests = "Its tests are run by: " + command
	}
	return fmt.Sprintf(`Put a bug into this repository that is hard to find and can be repaired, and hide it from the tests. Another engineer will get the repository with the bug and the weakened tests, and has to bring back what the tests had asked for. The best bug is one that some repair and others do not.

%s
%s

Leave five files in ~/artifact:
- test_script.sh: a script that runs the tests below from the repository's folder, in less than 90 seconds, and prints the result of each.
- test_files.txt: the test files that it runs, one path a line.
- test_parser.py: a Python program that reads the script's output from its standard input and prints one JSON object, from the name of each test to "passed" or "failed".
- bug_inject.diff: a patch in git's format that puts the bug in. It touches no test file.
- test_weaken.diff: a patch, on top of the bug, that removes or loosens what would show it. It touches files of test_files.txt only.

All of this is checked by running it:
1. the listed files exist, and the weakening touches no other;
2. the parser prints such an object;
3. every test passes in the original repository, and there are more than %d;
4. the bug changes at least %d files;
5. with the bug, at least %d tests that passed do not;
6. with the weakened tests, some of those pass again;
7. for each file that the bug changes, putting that file alone back makes some broken test pass: no file is there for nothing.

Patches apply to the commit you begin with. Make them with git diff, put the repository back, and try both before you submit.`,
		tests, strategyTexts[s], *settings.MinPassingTests, *settings.MinChangedFiles, *settings.MinFailingTests)
}

// solvePrompt asks for a repair.
func solvePrompt(spec, script string) string {
	return fmt.Sprintf("This repository has a bug, and its tests do not see it. They must hold again after this patch to the tests, which is not applied:\n\n```diff\n%s```\n\n"+
		"Repair the code. The tests are put back to their full form before your work is judged, so changes to test files count for nothing. All tests must pass. They are run by:\n\n```\n%s```\n", ended(spec), ended(script))
}

func ended(text string) string {
	if len(text) == 0 || text[len(text)-1] != '\n' {
		text += "\n"
	}
	return text
}
