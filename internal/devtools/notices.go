//go:build ignore

// Notices writes the licences of the modules linked into a command, on every system it is
// built for, from the module cache:
//
//	go run internal/devtools/notices.go ./examples/turnpack FILE
//	go run internal/devtools/notices.go -check ./examples/turnpack FILE
//
// With -check it writes nothing, and fails if FILE differs from what it would write.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// builds are the platforms and tags for which the command is built.
var builds = []struct{ os, arch, tags string }{
	{"linux", "amd64", ""}, {"linux", "arm64", ""}, {"darwin", "arm64", ""}, {"windows", "amd64", ""}, {"linux", "amd64", "turnpack_hf"},
}

// legal matches the names of licence files.
var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)([-._].*)?$`)

type listed struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
	}
}

func main() {
	check := flag.Bool("check", false, "compare instead of writing")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: notices [-check] PACKAGE FILE")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), *check); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

func run(pkg, file string, check bool) error {
	want, err := notices(pkg)
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(file, want, 0o644)
	}
	have, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, want) {
		return errors.New(file + " is not what the modules in go.mod make of it: run make notices")
	}
	return nil
}

// notices returns the modules, and each licence text once with its modules.
func notices(pkg string) ([]byte, error) {
	modules := map[string]bool{} // path and version
	of := map[string][]string{}  // modules by licence text
	for _, b := range builds {
		if err := collect(pkg, b.os, b.arch, b.tags, modules, of); err != nil {
			return nil, err
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "LICENSE"))
	if err != nil {
		return nil, err
	}
	add(of, string(text), "the Go standard library")

	var out bytes.Buffer
	fmt.Fprintf(&out, "The turnpack command is made of the modules below and of the Go standard library.\nTheir terms follow, each text once.\n\n")
	for _, m := range slices.Sorted(maps.Keys(modules)) {
		fmt.Fprintln(&out, m)
	}
	// Texts are ordered by their first module.
	texts := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		if c := slices.Compare(of[a], of[b]); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	for _, text := range texts {
		fmt.Fprintf(&out, "\n%s\n", strings.Repeat("=", 80))
		for _, m := range of[text] {
			fmt.Fprintln(&out, m)
		}
		fmt.Fprintf(&out, "%s\n\n%s", strings.Repeat("-", 80), text)
	}
	return out.Bytes(), nil
}

// collect adds the modules of one build. A licence text in a folder below the module's
// belongs to code vendored there.
func collect(pkg, system, arch, tags string, modules map[string]bool, of map[string][]string) error {
	cmd := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Module", "-tags", tags, pkg)
	cgo := "0"
	if tags != "" {
		cgo = "1"
	}
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED="+cgo, "GOFLAGS=")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list for %s/%s: %w", system, arch, err)
	}
	licensed, roots := map[string]bool{}, map[string]string{}
	seen := map[string]bool{} // folders
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		name := p.Module.Path + " " + p.Module.Version
		modules[name] = true
		licensed[name], roots[name] = licensed[name], p.Module.Dir
		for dir := p.Dir; ; dir = filepath.Dir(dir) {
			if !seen[dir] {
				seen[dir] = true
				n, err := read(dir, p.Module.Dir, name, of)
				if err != nil {
					return err
				}
				if n > 0 && dir == p.Module.Dir {
					licensed[name] = true
				}
			}
			if dir == p.Module.Dir {
				break
			}
			if !strings.HasPrefix(dir, p.Module.Dir) {
				return fmt.Errorf("%s is outside of %s", p.Dir, p.Module.Dir)
			}
		}
	}
	for name, ok := range licensed {
		if !ok && !inReadme(roots[name], name, of) {
			return errors.New(name + " comes without terms: it cannot be passed on")
		}
	}
	return nil
}

// read adds the licence texts in one folder and returns their number.
func read(dir, module, name string, of map[string][]string) (n int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !legal.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return n, err
		}
		who := name
		if dir != module {
			below, err := filepath.Rel(module, dir)
			if err != nil {
				return n, err
			}
			who += ", " + filepath.ToSlash(below)
		}
		add(of, string(text), who)
		n++
	}
	return n, nil
}

var heading = regexp.MustCompile(`(?im)^[#* ]*([\w-]+ )?licen[cs]e[* ]*$`)

// inReadme reads the licence from the README of a module without a licence file: the text
// after the heading, if it grants anything.
func inReadme(dir, name string, of map[string][]string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		return false
	}
	at := heading.FindIndex(text)
	if at == nil || !bytes.Contains(text[at[0]:], []byte("Permission is hereby granted")) {
		return false
	}
	add(of, string(text[at[0]:]), name)
	return true
}

// add records that a text applies to who; line ends and outer blank lines do not matter.
func add(of map[string][]string, text, who string) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) + "\n"
	if !slices.Contains(of[text], who) {
		of[text] = append(of[text], who)
		slices.Sort(of[text])
	}
}
