//go:build ignore

// Crates writes the licences of the Rust crates linked into libtokenizers.a, from cargo's
// registry on this machine:
//
//	go run internal/devtools/crates.go internal/libtokenizers/Cargo.lock FILE
//	go run internal/devtools/crates.go -check internal/libtokenizers/Cargo.lock FILE
//
// With -check it writes nothing, and fails if FILE differs from what it would write. If the
// crates are not on this machine, it checks only the list of crates and says so.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	legal  = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|unlicense|patents|authors)([-._].*)?$`)
	locked = regexp.MustCompile(`(?m)^\[\[package\]\]\nname = "(.*)"\nversion = "(.*)"\nsource = `)
	// elsewhere matches crates for systems that the engine is not built for.
	elsewhere = regexp.MustCompile(`^(windows[-_].*|wasm-.*|wasi|wit-bindgen|js-sys|web-time|bumpalo|r-efi|encode_unicode|zerocopy-derive) `)
	terms     = regexp.MustCompile(`(?m)^license(-file)? = "(.*)"$`)
)

func main() {
	check := flag.Bool("check", false, "compare instead of writing")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: crates [-check] CARGO.LOCK FILE")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), *check); err != nil {
		fmt.Fprintln(os.Stderr, "crates:", err)
		os.Exit(1)
	}
}

func run(lock, file string, check bool) error {
	data, err := os.ReadFile(lock)
	if err != nil {
		return err
	}
	var crates []string
	for _, m := range locked.FindAllStringSubmatch(string(data), -1) {
		if name := m[1] + " " + m[2]; !elsewhere.MatchString(name) {
			crates = append(crates, name)
		}
	}
	want, err := notices(crates)
	if !check {
		if err != nil {
			return err
		}
		return os.WriteFile(file, want, 0o644)
	}
	have, readErr := os.ReadFile(file)
	if readErr != nil {
		return readErr
	}
	for _, c := range crates {
		if !bytes.Contains(have, []byte("\n"+c+" (")) {
			return fmt.Errorf("%s has no terms of %s: run make notices", file, c)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(os.Stderr, "NOT CHECKED: THE LICENCE TEXTS OF THE RUST CRATES in %s, only that each crate is named: %v.\nWith cargo installed, make lib fetches them.\n", file, err)
		return nil
	}
	if err != nil {
		return err
	}
	if !bytes.Equal(have, want) {
		return errors.New(file + " is not what the crates in " + lock + " make of it: run make notices")
	}
	return nil
}

// notices returns the crates, and each licence text once with its crates.
func notices(crates []string) ([]byte, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	registry := filepath.Join(cmp.Or(os.Getenv("CARGO_HOME"), filepath.Join(home, ".cargo")), "registry", "src")
	var out bytes.Buffer
	fmt.Fprintf(&out, "The static library libtokenizers.a, which the hf engine links, is built from the crates below\nand the Rust standard library (MIT OR Apache-2.0). Their terms follow, each text once.\n\n")
	of := map[string][]string{} // crates by licence text
	for _, c := range crates {
		found, err := filepath.Glob(filepath.Join(registry, "*", strings.Replace(c, " ", "-", 1)))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("the source of %s is not below %s: %w", c, registry, fs.ErrNotExist)
		}
		manifest, err := os.ReadFile(filepath.Join(found[0], "Cargo.toml"))
		if err != nil {
			return nil, err
		}
		stated := terms.FindSubmatch(manifest)
		if stated == nil {
			return nil, errors.New(c + " states no licence: it cannot be passed on")
		}
		n, err := read(found[0], c, of)
		if err != nil {
			return nil, err
		}
		beside := ""
		if n == 0 {
			beside = ", without a text of its own"
		}
		fmt.Fprintf(&out, "%s (%s%s)\n", c, stated[2], beside)
	}
	texts := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(slices.Compare(of[a], of[b]), strings.Compare(a, b))
	})
	for _, text := range texts {
		fmt.Fprintf(&out, "\n%s\n", strings.Repeat("=", 80))
		for _, c := range of[text] {
			fmt.Fprintln(&out, c)
		}
		fmt.Fprintf(&out, "%s\n\n%s\n", strings.Repeat("-", 80), text)
	}
	return out.Bytes(), nil
}

// read adds the licence texts of one crate, including those of bundled code, and returns
// their number.
func read(dir, crate string, of map[string][]string) (n int, err error) {
	return n, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || !legal.MatchString(e.Name()) {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n++
		who := crate
		if below, err := filepath.Rel(dir, filepath.Dir(path)); err == nil && below != "." {
			who += ", " + filepath.ToSlash(below)
		}
		text := strings.TrimSpace(strings.ReplaceAll(string(data), "\r\n", "\n"))
		if !slices.Contains(of[text], who) {
			of[text] = append(of[text], who)
		}
		return nil
	})
}
