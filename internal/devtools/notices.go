//go:build ignore

// Notices writes the licences of what is linked: of the modules in a command, on every
// system it is built for, from the module cache; or of the Rust crates in libtokenizers.a,
// from cargo's registry on this machine:
//
//	go run internal/devtools/notices.go ./examples/turnpack FILE
//	go run internal/devtools/notices.go internal/libtokenizers/Cargo.lock FILE
//
// With -check before these it writes nothing, and fails if FILE differs from what it would
// write. If the crates are not on this machine, it checks only that each is named and says
// so.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
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

var (
	// Names of licence files.
	ofModules = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)([-._].*)?$`)
	ofCrates  = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|unlicense|patents|authors)([-._].*)?$`)
	locked    = regexp.MustCompile(`(?m)^\[\[package\]\]\nname = "(.*)"\nversion = "(.*)"\nsource = `)
	// elsewhere matches crates for systems that the engine is not built for.
	elsewhere = regexp.MustCompile(`^(windows[-_].*|wasm-.*|wasi|wit-bindgen|js-sys|web-time|bumpalo|r-efi|encode_unicode|zerocopy-derive) `)
	terms     = regexp.MustCompile(`(?m)^license(-file)? = "(.*)"$`)
)

func main() {
	check := flag.Bool("check", false, "compare instead of writing")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: notices [-check] PACKAGE|CARGO.LOCK FILE")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), *check); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

func run(source, file string, check bool) error {
	n := notices{of: map[string][]string{}}
	made := n.modules
	if strings.HasSuffix(source, ".lock") {
		made = n.crates
	}
	err := made(source)
	if !check {
		if err != nil {
			return err
		}
		return os.WriteFile(file, n.text(), 0o644)
	}
	have, readErr := os.ReadFile(file)
	switch {
	case readErr != nil:
		return readErr
	case errors.Is(err, fs.ErrNotExist) && n.names != nil:
		for _, c := range n.names {
			if !bytes.Contains(have, []byte("\n"+c+" (")) {
				return fmt.Errorf("%s has no terms of %s: run make notices", file, c)
			}
		}
		fmt.Fprintf(os.Stderr, "NOT CHECKED: THE LICENCE TEXTS OF THE RUST CRATES in %s, only that each crate is named: %v.\nWith cargo installed, make lib fetches them.\n", file, err)
		return nil
	case err != nil:
		return err
	case !bytes.Equal(have, n.text()):
		return fmt.Errorf("%s is not what %s makes of it: run make notices", file, source)
	}
	return nil
}

// notices holds what is linked and its terms.
type notices struct {
	head  string
	list  []string            // what is linked, a line each
	names []string            // of crates
	of    map[string][]string // who a licence text applies to
}

// text returns the list, and each licence text once with those it applies to, ordered by
// the first of them.
func (n *notices) text() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\n\n", n.head)
	for _, line := range n.list {
		fmt.Fprintln(&out, line)
	}
	texts := slices.SortedFunc(maps.Keys(n.of), func(a, b string) int {
		return cmp.Or(slices.Compare(n.of[a], n.of[b]), strings.Compare(a, b))
	})
	for _, text := range texts {
		fmt.Fprintf(&out, "\n%s\n", strings.Repeat("=", 80))
		for _, who := range n.of[text] {
			fmt.Fprintln(&out, who)
		}
		fmt.Fprintf(&out, "%s\n\n%s\n", strings.Repeat("-", 80), text)
	}
	return out.Bytes()
}

// add records that a text applies to who; line ends and outer blank lines do not matter.
func (n *notices) add(text, who string) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	if !slices.Contains(n.of[text], who) {
		n.of[text] = append(n.of[text], who)
		slices.Sort(n.of[text])
	}
}

// read adds the licence file of name that is in dir, at or below root.
func (n *notices) read(root, dir, file, name string) error {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return err
	}
	below, err := filepath.Rel(root, dir)
	if below != "." {
		name += ", " + filepath.ToSlash(below)
	}
	n.add(string(text), name)
	return err
}

// modules adds the modules of a command, and the Go standard library.
func (n *notices) modules(pkg string) error {
	n.head = "The turnpack command is made of the modules below and of the Go standard library.\nTheir terms follow, each text once."
	modules := map[string]bool{} // path and version
	for _, b := range builds {
		if err := n.build(pkg, b.os, b.arch, b.tags, modules); err != nil {
			return err
		}
	}
	n.list = slices.Sorted(maps.Keys(modules))
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "LICENSE"))
	n.add(string(text), "the Go standard library")
	return err
}

// build adds the modules of one build. A licence text in a folder below the module's
// belongs to code vendored there.
func (n *notices) build(pkg, system, arch, tags string, modules map[string]bool) error {
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
		var p struct {
			Dir      string
			Standard bool
			Module   *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		root, name := p.Module.Dir, p.Module.Path+" "+p.Module.Version
		modules[name] = true
		licensed[name], roots[name] = licensed[name], root
		for dir := p.Dir; ; dir = filepath.Dir(dir) {
			if !strings.HasPrefix(dir, root) {
				return fmt.Errorf("%s is outside of %s", p.Dir, root)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if seen[dir] || !e.Type().IsRegular() || !ofModules.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
					continue
				}
				if err := n.read(root, dir, e.Name(), name); err != nil {
					return err
				}
				licensed[name] = licensed[name] || dir == root
			}
			if seen[dir] = true; dir == root {
				break
			}
		}
	}
	for name, ok := range licensed {
		if !ok && !n.readme(roots[name], name) {
			return errors.New(name + " comes without terms: it cannot be passed on")
		}
	}
	return nil
}

var heading = regexp.MustCompile(`(?im)^[#* ]*([\w-]+ )?licen[cs]e[* ]*$`)

// readme reads the licence from the README of a module without a licence file: the text
// after the heading, if it grants anything.
func (n *notices) readme(dir, name string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		return false
	}
	at := heading.FindIndex(text)
	if at == nil || !bytes.Contains(text[at[0]:], []byte("Permission is hereby granted")) {
		return false
	}
	n.add(string(text[at[0]:]), name)
	return true
}

// crates adds the crates of a lock file, with the licence texts of code that they bundle.
func (n *notices) crates(lock string) error {
	n.head = "The static library libtokenizers.a, which the hf engine links, is built from the crates below\nand the Rust standard library (MIT OR Apache-2.0). Their terms follow, each text once."
	data, err := os.ReadFile(lock)
	if err != nil {
		return err
	}
	for _, m := range locked.FindAllStringSubmatch(string(data), -1) {
		if name := m[1] + " " + m[2]; !elsewhere.MatchString(name) {
			n.names = append(n.names, name)
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	registry := filepath.Join(cmp.Or(os.Getenv("CARGO_HOME"), filepath.Join(home, ".cargo")), "registry", "src")
	for _, c := range n.names {
		found, err := filepath.Glob(filepath.Join(registry, "*", strings.Replace(c, " ", "-", 1)))
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("the source of %s is not below %s: %w", c, registry, fs.ErrNotExist)
		}
		root := found[0]
		manifest, err := os.ReadFile(filepath.Join(root, "Cargo.toml"))
		if err != nil {
			return err
		}
		stated := terms.FindSubmatch(manifest)
		if stated == nil {
			return errors.New(c + " states no licence: it cannot be passed on")
		}
		beside := ", without a text of its own"
		err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || !ofCrates.MatchString(e.Name()) {
				return err
			}
			beside = ""
			return n.read(root, filepath.Dir(path), e.Name(), c)
		})
		if err != nil {
			return err
		}
		n.list = append(n.list, fmt.Sprintf("%s (%s%s)", c, stated[2], beside))
	}
	return nil
}
