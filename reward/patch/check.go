package patch

import (
	"path"
	"slices"
	"strings"
)

// Report is what can be said about a patch without running anything.
type Report struct {
	Empty   bool // no text but white space
	Parses  bool
	Applies bool // to the tree that was given; false when none was
	// Err says why Parses or Applies is false, nil if neither is.
	Err error
	// Files are the paths touched and TestFiles those of them that are tests.
	Files     []string
	TestFiles []string
	Added     int // lines
	Deleted   int // lines
}

// OnlyTests reports whether the patch touches tests and nothing else.
func (r Report) OnlyTests() bool { return len(r.Files) > 0 && len(r.Files) == len(r.TestFiles) }

// Check looks at the text of a patch. tree is the repository it is for, nil if
// not at hand; isTest decides which paths are tests, nil means [IsTest].
func Check(text string, tree Tree, isTest func(path string) bool) Report {
	r := Report{Empty: strings.TrimSpace(text) == ""}
	p, err := Parse(text)
	if err != nil {
		r.Err = err
		return r
	}
	r.Parses = true
	if isTest == nil {
		isTest = IsTest
	}
	r.Files = p.Touched()
	for _, name := range r.Files {
		if isTest(name) {
			r.TestFiles = append(r.TestFiles, name)
		}
	}
	for _, c := range p.Changes() {
		r.Added += c.Added
		r.Deleted += c.Deleted
	}
	if tree != nil {
		_, r.Err = p.Apply(tree)
		r.Applies = r.Err == nil
	}
	return r
}

// IsTest reports whether a path looks like a test by the conventions of common
// languages: a directory called test, tests, testing, e2e, spec or __tests__,
// or a file called test_x, x_test, x.test, x.spec, x_spec, XTest or conftest.py.
func IsTest(name string) bool {
	dir, file := path.Split(name)
	for part := range strings.SplitSeq(strings.Trim(dir, "/"), "/") {
		if slices.Contains([]string{"test", "tests", "testing", "e2e", "spec", "specs", "__tests__"}, strings.ToLower(part)) {
			return true
		}
	}
	stem := strings.TrimSuffix(file, path.Ext(file))
	for _, suffix := range []string{"_test", ".test", "_spec", ".spec", "Test", "Tests"} {
		if strings.HasSuffix(stem, suffix) && stem != suffix {
			return true
		}
	}
	return strings.HasPrefix(stem, "test_") || file == "conftest.py" || file == "tests.py" || file == "test.py"
}
