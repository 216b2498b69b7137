package lint

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The exported names and signatures of the library packages equal a golden file, so that
// every change of the API shows in review. UPDATE_GOLDEN=1 writes the file.
func TestAPI(t *testing.T) {
	_, all := sources(t)
	fset := token.NewFileSet()
	var lines []string
	add := func(dir string, node any) {
		var b bytes.Buffer
		require.NoError(t, printer.Fprint(&b, fset, node))
		lines = append(lines, dir+": "+strings.Join(strings.Fields(b.String()), " "))
	}
	for _, s := range all {
		if s.test || top(s.dir) == "examples" || top(s.dir) == "internal" || strings.Contains(s.dir, "/internal") {
			continue
		}
		file, err := parser.ParseFile(fset, filepath.Join("..", "..", s.path), nil, 0) // the syntax tree is modified below
		require.NoError(t, err)
		if !ast.FileExports(file) {
			continue
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if exportedReceiver(d) {
					d.Body = nil
					add(s.dir, d)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						add(s.dir, &ast.GenDecl{Tok: d.Tok, Specs: []ast.Spec{spec}})
					case *ast.ValueSpec:
						for _, n := range spec.Names {
							lines = append(lines, s.dir+": "+d.Tok.String()+" "+n.Name)
						}
					}
				}
			}
		}
	}
	slices.Sort(lines)
	got := strings.Join(slices.Compact(lines), "\n") + "\n"
	golden := filepath.Join("testdata", "api.txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	had, has := map[string]bool{}, map[string]bool{}
	for _, l := range strings.Split(string(want), "\n") {
		had[l] = true
	}
	for _, l := range strings.Split(got, "\n") {
		if has[l] = true; !had[l] {
			t.Errorf("new: %s", l)
		}
	}
	for l := range had {
		if !has[l] {
			t.Errorf("gone: %s", l)
		}
	}
	if t.Failed() {
		t.Log("if this is meant: UPDATE_GOLDEN=1 go test ./internal/lint -run TestAPI, and a line in CHANGELOG.md")
	}
}
