package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func pages(t *testing.T) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..")
	out := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*/*.md", "examples/*/*/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		for _, p := range paths {
			b, err := os.ReadFile(p)
			require.NoError(t, err)
			out[p] = string(b)
		}
	}
	require.NotEmpty(t, out)
	return out
}

var (
	mdLink  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	command = regexp.MustCompile(`(?m)^\s*(?:\$ )?(?:go run \./examples/)?turnpack ([a-z][a-z-]*)(.*)$`)
	option  = regexp.MustCompile(`\s--([a-z][a-z0-9-]*)`)
	fence   = regexp.MustCompile("(?s)```[a-z]*\n(.*?)```")
)

// Every relative link of a page leads to an existing file.
func TestLinks(t *testing.T) {
	for page, text := range pages(t) {
		for _, m := range mdLink.FindAllStringSubmatch(text, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), filepath.FromSlash(target))); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
}

// The files and tests named in CONTRIBUTING.md and docs/live.md exist.
func TestWhereThingsAre(t *testing.T) {
	for _, page := range []struct {
		path, heading string
		least         int
	}{{"CONTRIBUTING.md", "## Where things are", 10}, {"docs/live.md", "## The record of a call", 100}} {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(page.path)))
		require.NoError(t, err)
		_, table, found := strings.Cut(string(text), page.heading)
		require.True(t, found, page.path)
		require.Greater(t, testsNamed(t, table), page.least, page.path)
	}
}

// testsNamed checks the tests named in table rows, each after its folder, and returns
// their number.
func testsNamed(t *testing.T, text string) (seen int) {
	t.Helper()
	root := filepath.Join("..", "..")
	names, test := regexp.MustCompile("`([^`]+)`"), regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)[A-Z]\w*$`)
	for _, line := range regexp.MustCompile(`(?m)^\| .*/.*$`).FindAllString(text, -1) {
		folder := ""
		for _, m := range names.FindAllStringSubmatch(line, -1) {
			switch name := m[1]; {
			case test.MatchString(name):
				seen++
				files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
				require.NoError(t, err)
				found := false
				for _, f := range files {
					b, err := os.ReadFile(f)
					require.NoError(t, err)
					found = found || strings.Contains(string(b), "\nfunc "+name+"(")
				}
				require.True(t, found, "%s has no %s", folder, name)
			case !strings.Contains(name, " "):
				_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
				require.NoError(t, err)
				folder = filepath.FromSlash(name)
			}
		}
	}
	return seen
}

// Commands in the code blocks of pages use subcommands and flags that the source of the
// command defines.
func TestCommands(t *testing.T) {
	_, all := sources(t)
	var src strings.Builder
	for _, s := range all {
		if strings.HasPrefix(s.dir, "examples/turnpack") && !s.test {
			b, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(s.path)))
			require.NoError(t, err)
			src.Write(b)
		}
	}
	code, seen := src.String(), 0
	field := func(flag string) string { return "(?i)\\b" + strings.ReplaceAll(flag, "-", "") + "\\s+\\S+\\s+`" }
	for page, text := range pages(t) {
		for _, f := range fence.FindAllStringSubmatch(text, -1) {
			for _, m := range command.FindAllStringSubmatch(strings.ReplaceAll(f[1], "\\\n", " "), -1) {
				seen++
				verb := m[1]
				if !regexp.MustCompile("(?i)\\b" + verb + "\\s+[\\w.]+\\s+`cmd").MatchString(code) {
					t.Errorf("%s: turnpack has no command %q", page, verb)
				}
				for _, o := range option.FindAllStringSubmatch(m[2], -1) {
					if !strings.Contains(code, `"`+o[1]+`"`) && !strings.Contains(code, `name:"`+o[1]+`"`) && !regexp.MustCompile(field(o[1])).MatchString(code) {
						t.Errorf("%s: turnpack %s: nothing defines --%s", page, verb, o[1])
					}
				}
			}
		}
	}
	require.NotZero(t, seen, "no page shows a command")
}
