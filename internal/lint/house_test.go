package lint

import (
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// packageLines is the largest size of a package without tests, in lines, that a second
// engineer can change after reading its doc.go.
const packageLines = 2500

func TestPackageSizes(t *testing.T) {
	_, all := sources(t)
	lines := map[string]int{}
	for _, s := range all {
		if s.test || strings.Contains(s.path, "tables") {
			continue
		}
		b, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(s.path)))
		require.NoError(t, err)
		lines[s.dir] += strings.Count(string(b), "\n")
	}
	for _, dir := range slices.Sorted(maps.Keys(lines)) {
		if n := lines[dir]; n > packageLines {
			t.Errorf("%s has %d lines, the limit is %d: is it still one idea?", dir, n, packageLines)
		}
	}
}

// methodFiles is the largest number of files with methods of one type.
const methodFiles = 6

// scatteredTypes are the exceptions, with their numbers of files. The numbers may only
// decrease.
var scatteredTypes = map[string]int{
	"..run": 8,
}

func TestMethodsStandTogether(t *testing.T) {
	_, all := sources(t)
	files := map[string]map[string]bool{}
	for _, s := range all {
		if s.test {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			name := s.dir + "." + receiver(f.Recv.List[0].Type)
			if files[name] == nil {
				files[name] = map[string]bool{}
			}
			files[name][s.path] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if n, limit := len(files[name]), max(methodFiles, scatteredTypes[name]); n > limit {
			t.Errorf("%s has methods in %d files, the limit is %d: is it still one thing?", name, n, limit)
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// orderWords are words of place that comments must not use.
var orderWords = regexp.MustCompile(`(?i)\b(behind|in front of)\b`)

// Comments use words of order, such as after and before, and not words of place.
// "look-behind" of regular expressions is allowed.
func TestWordsOfOrder(t *testing.T) {
	fset, all := sources(t)
	for _, s := range all {
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				if w := orderWords.FindString(strings.ReplaceAll(c.Text, "look-"+"behind", "")); w != "" {
					t.Errorf("%s: a comment says %q for order: say after or before", fset.Position(c.Pos()), w)
				}
			}
		}
	}
}

// A skipped test prints a word that a log can be searched for.
func TestSkipsAreLoud(t *testing.T) {
	fset, all := sources(t)
	for _, s := range all {
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "Skip" || f.Sel.Name == "Skipf") {
				if text, ok := call.Args[0].(*ast.BasicLit); !ok || !strings.HasPrefix(text.Value, `"SKIPPED`) {
					t.Errorf(`%s: the reason of a test that is left out begins with "SKIPPED"`, fset.Position(call.Pos()))
				}
			}
			return true
		})
	}
}
