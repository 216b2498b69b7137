package sandbox

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// Blocklist names commands that an agent should not run, by class. It advises the model and serves audits; it
// is not security, since a shell can write each command in countless ways. Whatever must not happen has to be
// impossible in the container.
type Blocklist []class

// class is a kind of command and the reason why agents should not use it.
type class struct {
	name     string
	patterns []*regexp.Regexp
	advice   string // an answer that the model can act on
}

// DefaultBlocklist returns the classes that most often spoil a rollout.
func DefaultBlocklist() Blocklist {
	of := func(name, advice string, patterns ...string) class {
		c := class{name: name, advice: advice}
		for _, p := range patterns {
			c.patterns = append(c.patterns, regexp.MustCompile(p))
		}
		return c
	}
	const start = `(?m)(?:^|[;&|(]\s*|\bsudo\s+|\bthen\s+|\bdo\s+)`
	return Blocklist{
		of("history", "The repository's later history and its remotes are not part of the task.", start+`git\s+(?:-\S+\s+)*(?:fetch|pull|clone|remote\s+add)\b`, start+`git\s+(?:-\S+\s+)*log\b[^;&|\n]*\s--(?:all|remotes)\b`),
		of("interactive", "Nobody is there to type: use commands that end by themselves, such as sed or python -c.", start+`(?:vim?|nano|emacs|less|more|top|htop|tmux|screen|ssh)(?:\s|$)`, start+`git\s+(?:rebase|add)\s+(?:-i|--interactive|-p|--patch)\b`),
		of("machine", "The machine is shared with others: stay inside of the repository.", start+`(?:shutdown|reboot|halt|poweroff|mkfs\S*|insmod|modprobe)(?:\s|$)`, start+`dd\s[^;&|\n]*\bof=/dev/(?:sd|nvme|vd)`),
		of("wipe", "This removes what the task needs.", start+`rm\s+(?:-\S+\s+)*(?:/|/\*|~|\$HOME)(?:\s|$)`, start+`rm\s+-\S*r\S*\s+(?:\S*/)?\.git/?(?:\s|$)`),
		of("forkbomb", "This starts processes without end.", `:\s*\(\s*\)\s*\{\s*:\s*\|\s*:`),
	}
}

// Check looks a command up: ok means that it may run. Otherwise answer is for the model to read in place of the
// output.
func (l Blocklist) Check(command string) (answer string, ok bool) {
	for _, c := range l {
		for _, p := range c.patterns {
			if m := p.FindString(command); m != "" {
				return fmt.Sprintf("The command was not run: %q is of the class %s. %s", strings.Trim(m, ";&|( \n\t"), c.name, c.advice), false
			}
		}
	}
	return "", true
}

// ParseBlocklist returns a list from patterns by class, as in a configuration.
func ParseBlocklist(classes map[string][]string) (Blocklist, error) {
	var l Blocklist
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		c := class{name: name, advice: "Find another way."}
		for i, p := range classes[name] {
			re, err := regexp.Compile(p)
			if err != nil {
				return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: fmt.Sprintf("/%s/%d", name, i)}, "%w", err).WithFix("write a regular expression of Go's syntax")
			}
			c.patterns = append(c.patterns, re)
		}
		l = append(l, c)
	}
	return l, nil
}
