// Package lint holds the module's rules as tests.
package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/turnpack/turnpack"

// source is one parsed Go file of the module.
type source struct {
	path string // slash-separated, relative to the module root
	dir  string
	test bool
	file *ast.File
}

// tree holds the parsed Go files of the repository.
type tree struct {
	set   *token.FileSet
	files []source
}

// sources returns the files of the tree, parsed once for all tests. Tests must not modify
// them.
func sources(t *testing.T) (*token.FileSet, []source) {
	t.Helper()
	all, err := parsed()
	require.NoError(t, err)
	require.NotEmpty(t, all.files)
	return all.set, all.files
}

var parsed = sync.OnceValues(func() (tree, error) {
	root := filepath.Join("..", "..")
	out := tree{set: token.NewFileSet()}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(out.set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		out.files = append(out.files, source{path: rel, dir: filepath.ToSlash(filepath.Dir(rel)), test: strings.HasSuffix(name, "_test.go"), file: f})
		return nil
	})
	return out, err
})

// verbs are the packages that must not import each other.
var verbs = []string{"tokenize", "lossmask", "ctxwindow", "reward", "prm", "export"}

// speakHTTP are the packages that serve or send requests over a network.
var speakHTTP = []string{"prm/openai", "serve", "rollout/sandbox/swerl"}

func top(dir string) string { first, _, _ := strings.Cut(dir, "/"); return first }

// library reports whether programs of users may import the file's package, directly or
// indirectly. Below internal, that is everything except commands and tests.
func (s source) library() bool {
	if s.test || s.dir == "." || top(s.dir) == "examples" {
		return false
	}
	own, _, _ := strings.Cut(strings.TrimPrefix(s.dir, "internal/"), "/")
	return top(s.dir) != "internal" || !slices.Contains([]string{"demo", "devtools", "fakeengine", "kit", "libtokenizers", "lint", "oracle", "plumb"}, own)
}

func imports(s source) []string {
	var out []string
	for _, i := range s.file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		out = append(out, p)
	}
	return out
}

// Imports form a star: nouns are in rollout, verbs do not import each other, and each
// heavy dependency is imported by one package only.
func TestImports(t *testing.T) {
	_, all := sources(t)
	for _, s := range all {
		for _, p := range imports(s) {
			own, inside := strings.CutPrefix(p, module+"/")
			bad := func(rule string) { t.Errorf("%s imports %s: %s", s.path, p, rule) }
			if strings.HasPrefix(own, "examples") && inside && top(s.dir) != "examples" {
				bad("examples are imported by nobody")
			}
			if s.dir == "internal/jsonscan" && !s.test && strings.Contains(top(p), ".") {
				bad("jsonscan, which the native format builds on, uses the standard library only")
			}
			if !s.library() {
				continue
			}
			switch {
			case s.dir == "rollout" && (inside || strings.Contains(top(p), ".")):
				bad("rollout uses the standard library only")
			case inside && slices.Contains(verbs, top(s.dir)) && slices.Contains(verbs, top(own)) && top(own) != top(s.dir):
				bad("verbs never import verbs")
			case inside && top(s.dir) == "rollout" && top(own) != "rollout" && own != "internal/jsonscan" && own != "internal/pqread" && own != "internal/arrowfile" && own != "internal/pickle" && own != "internal/packed" && own != "internal/keys" && own != "internal/faults" && !(strings.HasPrefix(s.dir, "rollout/live") && (own == "internal/atomic" || own == "internal/strictjson")):
				bad("rollout and its importers know no verb")
			case top(s.dir) == "prm" && strings.Contains(top(p), ".") && !inside && !strings.HasPrefix(p, "golang.org/x/"):
				bad("prm uses the standard library and golang.org/x only: a program with a judge stays small")
			case p == module:
				bad("the front door is imported by nobody inside")
			}
			for _, door := range []struct{ prefix, dir string }{
				{"github.com/apache/arrow/", "export"},
				{"github.com/daulet/tokenizers", "tokenize/hf"},
				{"github.com/dlclark/regexp2", "tokenize/bpe"},
				{"gocloud.dev", "export/blobstore"},
				{"gocloud.dev/blob/", "examples"}, // drivers, which import whole cloud SDKs
			} {
				if strings.HasPrefix(p, door.prefix) && s.dir != door.dir && !strings.HasPrefix(s.dir, door.dir+"/") {
					bad("only " + door.dir + " may import it")
				}
			}
			if strings.HasPrefix(p, "net/http") && !slices.Contains(speakHTTP, s.dir) && !strings.HasPrefix(s.dir, "rollout/proxy") {
				bad("only " + strings.Join(speakHTTP, ", ") + " may import it")
			}
			for _, banned := range []string{"log", "log/slog", "flag", "os/exec", "unsafe", "math/rand"} {
				allowed := (p == "unsafe" && (strings.HasPrefix(s.dir, "tokenize/") || s.dir == "internal/jsonscan")) ||
					(p == "os/exec" && s.dir == "rollout/sandbox/internal/process") ||
					(p == "testing" && s.dir == "tokenize/internal/tokenizetest")
				if p == banned && !allowed {
					bad("library code never uses it")
				}
			}
		}
	}
}

// No package changes state when it is imported, and no library code ends the process.
func TestNoInit(t *testing.T) {
	fset, all := sources(t)
	for _, s := range all {
		if !s.library() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "init" && n.Recv == nil {
					t.Errorf("%s: func init in library code", fset.Position(n.Pos()))
				}
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
					if x, ok := sel.X.(*ast.Ident); ok && x.Name == "os" && sel.Sel.Name == "Exit" {
						t.Errorf("%s: os.Exit in library code", fset.Position(n.Pos()))
					}
				}
			}
			return true
		})
	}
}

// Every package and every exported name has a doc comment.
func TestDocs(t *testing.T) {
	fset, all := sources(t)
	documented := map[string]bool{}
	for _, s := range all {
		if !s.test {
			documented[s.dir] = documented[s.dir] || s.file.Doc != nil
		}
		if !s.library() || strings.Contains(s.dir, "/internal") {
			continue
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
					t.Errorf("%s: %s has no comment", fset.Position(d.Pos()), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if ts, ok := spec.(*ast.TypeSpec); ok && ts.Name.IsExported() && d.Doc == nil && ts.Doc == nil {
						t.Errorf("%s: type %s has no comment", fset.Position(ts.Pos()), ts.Name.Name)
					}
				}
			}
		}
	}
	for dir, ok := range documented {
		if !ok && dir != "internal/lint" {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if gen, ok := typ.(*ast.IndexExpr); ok {
		typ = gen.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}

// Every package of the library has a doc.go and an example.
func TestPackagesTeach(t *testing.T) {
	_, all := sources(t)
	type page struct{ doc, example bool }
	pages := map[string]*page{}
	for _, s := range all {
		if top(s.dir) == "examples" || strings.Contains("/"+s.dir, "/internal") {
			continue
		}
		p := pages[s.dir]
		if p == nil {
			p = &page{}
			pages[s.dir] = p
		}
		p.doc = p.doc || filepath.Base(s.path) == "doc.go" && s.file.Doc != nil
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test && strings.HasPrefix(f.Name.Name, "Example") {
				p.example = true
			}
		}
	}
	for dir, p := range pages {
		if !p.doc {
			t.Errorf("package %s has no doc.go with a package comment", dir)
		}
		if !p.example {
			t.Errorf("package %s has no Example", dir)
		}
	}
}

// Only package rollout builds a Sequence with columns.
func TestSequencesAreBuilt(t *testing.T) {
	fset, all := sources(t)
	for _, s := range all {
		if !s.library() || s.dir == "rollout" || strings.HasPrefix(s.dir, "export") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || len(lit.Elts) == 0 {
				return true
			}
			if sel, ok := lit.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Sequence" {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "rollout" {
					t.Errorf("%s: a rollout.Sequence literal; make it of rollout.Columns", fset.Position(lit.Pos()))
				}
			}
			return true
		})
	}
}

// Tests match errors by kind or detail, not by comparing text.
func TestNoStringErrors(t *testing.T) {
	fset, all := sources(t)
	for _, s := range all {
		if !s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			b, ok := n.(*ast.BinaryExpr)
			if !ok || (b.Op != token.EQL && b.Op != token.NEQ) {
				return true
			}
			for _, side := range []ast.Expr{b.X, b.Y} {
				if call, ok := side.(*ast.CallExpr); ok {
					if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Error" && len(call.Args) == 0 {
						t.Errorf("%s: compares an error's text; use errors.Is or errors.As", fset.Position(b.Pos()))
					}
				}
			}
			return true
		})
	}
}

// Files stay short enough to read in one sitting.
func TestFileSizes(t *testing.T) {
	const limit = 600
	_, all := sources(t)
	for _, s := range all {
		if s.test || strings.Contains(s.path, "tables") {
			continue
		}
		b, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(s.path)))
		require.NoError(t, err)
		if n := strings.Count(string(b), "\n"); n > limit {
			t.Errorf("%s has %d lines, the limit is %d: is it still one idea?", s.path, n, limit)
		}
	}
}
