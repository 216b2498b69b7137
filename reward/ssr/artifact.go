package ssr

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/reward/patch"
	"github.com/turnpack/turnpack/rollout"
)

// Artifact is the submission of an injector: a bug with the files that demonstrate it.
type Artifact struct {
	TestScript string   // shell script that runs the test suite
	TestFiles  []string // test files the script covers, restored before grading
	TestParser string   // program that turns the script's output into a JSON map
	Bug        string   // patch that injects the bug
	Weaken     string   // patch that weakens the tests so that they miss it
	// Attempts holds failed solver patches on top of the bug, oldest first, which make a bug of order
	// 1+len(Attempts). Empty for an injected bug.
	Attempts []string
}

// The file names of the five parts: those in the paper's figures, then those in its prompts.
var artifactFiles = [][]string{
	{"test_script.sh"}, {"test_files.txt"}, {"test_parser.py", "parse_test_output.py"},
	{"bug_inject.diff", "bug_patch.diff"}, {"test_weaken.diff", "test_patch.diff"},
}

// maxPartBytes bounds one file of an artifact.
const maxPartBytes = 64 << 20

// Load reads the five files of an artifact from a directory, under either name of each. It reports
// every missing, oversized or ambiguous file (kind input); [Artifact.Validate] checks the contents.
func Load(dir fs.FS) (Artifact, error) {
	var errs []error
	content := map[string]string{}
	for _, names := range artifactFiles {
		text, err := loadPart(dir, names)
		content[names[0]], errs = text, append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return Artifact{}, err
	}
	return Artifact{
		TestScript: content["test_script.sh"], TestFiles: listedFiles(content["test_files.txt"]), TestParser: content["test_parser.py"],
		Bug: content["bug_inject.diff"], Weaken: content["test_weaken.diff"],
	}, nil
}

func loadPart(dir fs.FS, names []string) (string, error) {
	var found []byte
	var from string
	for _, name := range names {
		info, err := fs.Stat(dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && info.Size() > maxPartBytes {
			return "", rollout.Errorf(rollout.KindLimit, rollout.Where{File: name}, "the file has %d bytes, the limit is %d", info.Size(), maxPartBytes)
		}
		content, err := fs.ReadFile(dir, name)
		if err != nil {
			return "", rollout.Errorf(rollout.KindInput, rollout.Where{File: name}, "%w", err)
		}
		if from != "" && !bytes.Equal(found, content) {
			return "", rollout.Errorf(rollout.KindInput, rollout.Where{File: name}, "the artifact holds both %s and %s, and they differ", from, name).
				WithFix("keep one of them")
		}
		found, from = content, name
	}
	if from == "" {
		return "", rollout.Errorf(rollout.KindInput, rollout.Where{File: names[0]}, "expected %s in the artifact, found none", strings.Join(names, " or "))
	}
	return string(found), nil
}

// listedFiles parses test_files.txt: one path per line; blank lines and # comments are ignored, a
// leading ./ is dropped.
func listedFiles(content string) []string {
	var files []string
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		files = append(files, strings.TrimPrefix(line, "./"))
	}
	return files
}

// Validate reports every fault that can be found without a run: parts that are empty or not UTF-8, patches that
// do not parse, test paths that are listed twice or leave the repository, a bug that touches a listed test
// file (which would be restored), an order above maxOrder. [Check] runs the seven checks.
func (a Artifact) Validate() error {
	var errs []error
	fault := func(file, format string, args ...any) {
		errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{File: file}, format, args...))
	}
	for _, file := range []struct{ name, text string }{
		{"test_script.sh", a.TestScript}, {"test_parser.py", a.TestParser}, {"bug_inject.diff", a.Bug}, {"test_weaken.diff", a.Weaken},
	} {
		if strings.TrimSpace(file.text) == "" {
			fault(file.name, "the file is empty")
		}
		if !utf8.ValidString(file.text) {
			fault(file.name, "the file is not UTF-8, and no record of the bug could hold it")
		}
	}
	if len(a.TestFiles) == 0 {
		fault("test_files.txt", "no test file is listed")
	}
	listed := map[string]bool{}
	for _, name := range a.TestFiles {
		switch {
		case !utf8.ValidString(name):
			fault("test_files.txt", "%q is not UTF-8", name)
		case listed[name]:
			fault("test_files.txt", "%s is listed twice", name)
		case path.Clean(name) != name || path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../"):
			fault("test_files.txt", "expected a path inside the repository, found %q", name)
		}
		listed[name] = true
	}
	for i, p := range append([]string{a.Bug}, a.Attempts...) {
		file := "bug_inject.diff"
		if i > 0 {
			file = "attempts/" + strconv.Itoa(i-1)
		}
		if strings.TrimSpace(p) == "" {
			continue
		}
		bug, err := patch.Parse(p)
		if err != nil {
			errs = append(errs, rollout.In(err, rollout.Where{File: file}))
			continue
		}
		if i > 0 {
			continue // restoring test files removes the attempts' changes to them
		}
		for _, name := range bug.Touched() {
			if listed[name] {
				fault(file, "the bug touches the test file %s, which is restored before grading", name)
			}
		}
	}
	if strings.TrimSpace(a.Weaken) != "" {
		if _, err := patch.Parse(a.Weaken); err != nil {
			errs = append(errs, rollout.In(err, rollout.Where{File: "test_weaken.diff"}))
		}
	}
	if a.Order() > maxOrder {
		fault("", "the bug has order %d, the limit is %d", a.Order(), maxOrder)
	}
	return errors.Join(errs...)
}

// Facts returns the facts about the patches that the checks use. Files changed by failed attempts
// count as changed by the bug; listed test files do not, since they are restored. original is the
// repository, nil if unknown: if given, files that an attempt changed back to their original content
// are left out.
func (a Artifact) Facts(original patch.Tree) (Facts, error) {
	f := Facts{TestFiles: a.TestFiles}
	weaken, err := patch.Parse(a.Weaken)
	if err != nil {
		return Facts{}, err
	}
	f.WeakenFiles = weaken.Touched()
	var buggy patch.Tree
	if original != nil {
		// If a patch does not apply, buggy is nil and no file is left out.
		buggy, _ = a.Tree(original, State{Kind: Buggy})
	}
	unchanged := func(name string) bool {
		before, was := original[name]
		after, is := buggy[name]
		return buggy != nil && was == is && before == after
	}
	seen := setOf(a.TestFiles)
	for _, text := range append([]string{a.Bug}, a.Attempts...) {
		p, err := patch.Parse(text)
		if err != nil {
			return Facts{}, err
		}
		for _, name := range p.Touched() {
			if !seen[name] && !unchanged(name) {
				f.ChangedFiles = append(f.ChangedFiles, name)
			}
			seen[name] = true
		}
	}
	return f, nil
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// Spec returns the solver's specification: the reversed weakening patch. It shows, as a patch to the
// tests, which expectations the repaired code must meet.
func (a Artifact) Spec() (string, error) {
	weaken, err := patch.Parse(a.Weaken)
	if err != nil {
		return "", err
	}
	reversed, err := weaken.Reverse()
	if err != nil {
		return "", err
	}
	return reversed.String(), nil
}

// Tree returns a state of the repository, made from its original files. The bug, the weakening and the
// failed attempts are applied in this order, the order of their creation; then the listed test files
// get the form of the state. original is not changed.
func (a Artifact) Tree(original patch.Tree, state State) (patch.Tree, error) {
	if state.Kind == Original {
		return maps.Clone(original), nil
	}
	tree, err := applyText(original, "the bug", a.Bug)
	if err != nil {
		return nil, err
	}
	weakened := tree
	// The weakening is needed only for states and attempts that were made on top of it.
	if state.Kind == Weakened || state.Kind == Repaired || len(a.Attempts) > 0 {
		if weakened, err = applyText(tree, "the weakening", a.Weaken); err != nil {
			return nil, err
		}
		tree = weakened
	}
	for _, attempt := range a.Attempts {
		if tree, err = applyText(tree, "a failed attempt", attempt); err != nil {
			return nil, err
		}
	}
	if state.Kind == Repaired {
		if tree, err = applyText(tree, "the solver's patch", state.Fix); err != nil {
			return nil, err
		}
	}
	if state.Kind == Weakened {
		restore(tree, weakened, a.TestFiles)
		return tree, nil
	}
	restore(tree, original, a.TestFiles)
	if weaken, err := patch.Parse(a.Weaken); err == nil && state.Kind != Repaired {
		restore(tree, original, weaken.Touched())
	}
	if state.Kind == Inverse {
		restore(tree, original, []string{state.File})
	}
	return tree, nil
}

func applyText(tree patch.Tree, what, text string) (patch.Tree, error) {
	p, err := patch.Parse(text)
	if err == nil {
		tree, err = p.Apply(tree)
	}
	if err == nil {
		return tree, nil
	}
	return nil, rollout.Errorf(rollout.KindInput, rollout.Where{}, "%s does not apply: %v", what, err)
}

// restore sets files of tree, in place, to their contents in from. As in a checkout, it removes
// entries in their way (a link where a directory was, a directory where a file was).
func restore(tree, from patch.Tree, files []string) {
	for _, name := range files {
		file, there := from[name]
		if !there {
			delete(tree, name)
			continue
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			delete(tree, dir)
		}
		maps.DeleteFunc(tree, func(other string, _ patch.File) bool { return strings.HasPrefix(other, name+"/") })
		tree[name] = file
	}
}
