// Package source finds files (in files, folders, globs and standard input) and returns
// their bytes, decompressed by content, archives member by member, within limits.
package source

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// Limits bounds decompressed sizes, members and folders.
type Limits struct {
	FileBytes int64 // decompressed bytes of one file or member
	// Ratio is the greatest decompressed size as a multiple of the compressed size, applied
	// after ratioFrom bytes. Dumps compress 5 to 60 times, bombs 1,000 times and more.
	Ratio   int64
	Members int // members of one archive
	Depth   int // depth of folders below a named one
}

const ratioFrom = 64 << 20

// Most returns how many bytes a file of the given size may decompress to.
func (w *Walker) Most(size int64) int64 {
	if size > w.Limits.FileBytes/w.Limits.Ratio {
		return w.Limits.FileBytes
	}
	return min(w.Limits.FileBytes, max(ratioFrom, size*w.Limits.Ratio))
}

// File is one readable file or member of an archive.
type File struct {
	Name  string // path as given; a member is "archive!member"
	Path  string // path of the file on disk, "" for standard input
	Rel   string // Name relative to the folder that the caller named, otherwise the last element of Name
	Named bool   // named by the caller, so it must be readable and of a known format
	open  func() (io.ReadCloser, error)
}

// Open returns the decompressed bytes of the file.
func (f *File) Open() (io.ReadCloser, error) { return f.open() }

// Ext returns the lower-case extension, ignoring extensions of compression.
func (f *File) Ext() string {
	name := strings.ToLower(f.Name)
	for _, z := range []string{".gz", ".zst", ".zstd"} {
		name = strings.TrimSuffix(name, z)
	}
	return filepath.Ext(name)
}

// Stdin is the path of standard input.
const Stdin = "-"

// known are the extensions that are read in folders.
var known = map[string]bool{".json": true, ".jsonl": true, ".ndjson": true, ".traj": true, ".eval": true, ".tpj": true, ".zip": true, ".parquet": true, ".arrow": true, ".pt": true, ".pkl": true}

// Walker enumerates files.
type Walker struct {
	Limits Limits
	Stdin  io.Reader
	Except string // absolute path of a file or folder in a folder that is left out; "" = none
	// Ignored is called for files and folders that are not read, with the reason.
	Ignored func(path, why string)

	taken map[[16]byte]struct{} // digests of the paths of files already yielded
	made  batches
}

// batches are the files of batches that turnpack convert has made below the folders that are
// walked: no input, though some, as slime's, have the form of dumps.
type batches map[string]bool

// maxRecord is far beyond the size of a record, whose lists are bounded.
const maxRecord = 64 << 20

// add adds the files that the record of a batch in dir names, if there is one.
func (b *batches) add(dir string) {
	var record struct{ Files []struct{ File string } }
	f, err := os.Open(filepath.Join(dir, ".turnpack.json"))
	if err != nil {
		return
	}
	defer f.Close()
	if json.NewDecoder(io.LimitReader(f, maxRecord)).Decode(&record) != nil {
		return
	}
	if *b == nil {
		*b = batches{}
	}
	for _, f := range record.Files {
		(*b)[filepath.Join(dir, filepath.FromSlash(f.File))] = true
	}
}

// Files yields the files that paths name, in the given order; folders are walked in lexical
// order. A file is yielded once, even if several paths or links lead to it. An error is
// about one path; the walk continues after it.
func (w *Walker) Files(paths []string) iter.Seq2[*File, error] {
	return func(yield func(*File, error) bool) {
		w.taken = map[[16]byte]struct{}{}
		for _, p := range paths {
			if !w.path(p, yield) {
				return
			}
		}
	}
}

// path yields the files that p names. It returns false if the whole walk must end.
func (w *Walker) path(p string, yield func(*File, error) bool) bool {
	if p == Stdin {
		return yield(w.Reader(Stdin, w.Stdin), nil)
	}
	info, err := os.Stat(p)
	if err == nil {
		return w.entry(p, info, true, yield)
	}
	if !errors.Is(err, fs.ErrNotExist) || !strings.ContainsAny(p, "*?[") {
		return yield(nil, ioError(p, err))
	}
	found, err := filepath.Glob(p)
	if err != nil || len(found) == 0 {
		return yield(nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: p}, "no file matches the pattern").WithFix("check the pattern"))
	}
	for _, q := range found {
		info, err := os.Stat(q)
		if err != nil && !yield(nil, ioError(q, err)) || err == nil && !w.entry(q, info, false, yield) {
			return false
		}
	}
	return true
}

func ioError(path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	e := rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "cannot be read: %w", err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return e.WithFix("check the name")
	case errors.Is(err, fs.ErrPermission):
		return e.WithFix("make it readable for you")
	}
	return e
}

func (w *Walker) entry(p string, info fs.FileInfo, named bool, yield func(*File, error) bool) bool {
	switch {
	case info.IsDir():
		return w.folder(p, p, 0, yield)
	case !info.Mode().IsRegular():
		return yield(nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: p}, "not a regular file (%s)", info.Mode().Type()))
	}
	return w.file(p, filepath.Base(p), named, yield)
}

func (w *Walker) folder(root, p string, depth int, yield func(*File, error) bool) bool {
	if depth > w.Limits.Depth {
		return yield(nil, rollout.Errorf(rollout.KindLimit, rollout.Where{File: p}, "folders nested deeper than %d", w.Limits.Depth))
	}
	entries, err := os.ReadDir(p)
	if err != nil {
		return yield(nil, ioError(p, err))
	}
	if depth > 0 {
		w.made.add(p)
	}
	for _, e := range entries {
		q := filepath.Join(p, e.Name())
		if abs, _ := filepath.Abs(q); w.made[q] || w.Except != "" && abs == w.Except {
			continue
		}
		if strings.HasPrefix(e.Name(), ".") {
			w.ignore(q, "hidden")
			continue
		}
		if e.Type().IsRegular() && filepath.Ext(q) == ".tpj" { // no os.Stat: a live journal may have removed it
			rel, _ := filepath.Rel(root, q) // q is below root
			if !w.again(q) && !yield(&File{Name: q, Path: q, Rel: filepath.ToSlash(rel)}, nil) {
				return false
			}
			continue
		}
		info, err := os.Stat(q)
		if err != nil {
			if !yield(nil, ioError(q, err)) {
				return false
			}
			continue
		}
		switch {
		case info.IsDir() && e.Type()&fs.ModeSymlink != 0:
			w.ignore(q, "a link to a folder is not followed")
		case info.IsDir():
			if !w.folder(root, q, depth+1, yield) {
				return false
			}
		case !info.Mode().IsRegular():
			w.ignore(q, "not a regular file")
		case !known[(&File{Name: q}).Ext()]:
			w.ignore(q, noDump(q))
		default:
			rel, err := filepath.Rel(root, q)
			if err != nil {
				rel = q
			}
			if !w.file(q, filepath.ToSlash(rel), false, yield) {
				return false
			}
		}
	}
	return true
}

func (w *Walker) ignore(path, why string) {
	if w.Ignored != nil {
		w.Ignored(path, why)
	}
}

// again reports whether the file was yielded before, under any name.
func (w *Walker) again(p string) bool {
	full, err := filepath.EvalSymlinks(p)
	if err != nil {
		full = p
	}
	if abs, err := filepath.Abs(full); err == nil {
		full = abs
	}
	sum := sha256.Sum256([]byte(full))
	key := [16]byte(sum[:])
	_, there := w.taken[key]
	w.taken[key] = struct{}{}
	return there
}

func (w *Walker) file(p, rel string, named bool, yield func(*File, error) bool) bool {
	if w.again(p) {
		w.ignore(p, "read before under another name")
		return true
	}
	isZip, err := zipMagic(p)
	if err != nil {
		return yield(nil, ioError(p, err))
	}
	f := &File{Name: p, Path: p, Rel: rel, Named: named}
	if isZip && f.Ext() != ".eval" && f.Ext() != ".pt" {
		return w.members(f, yield)
	}
	f.open = func() (io.ReadCloser, error) {
		file, err := os.Open(p)
		if err != nil {
			return nil, ioError(p, err)
		}
		if err := w.verify(file, func() (io.ReadCloser, error) { return w.plain(p, io.NopCloser(file), 0) }); err != nil {
			file.Close()
			return nil, err
		}
		return w.plain(p, file, 0)
	}
	return yield(f, nil)
}

// Reader returns a stream as a named file.
func (w *Walker) Reader(name string, r io.Reader) *File {
	return &File{Name: name, Rel: filepath.Base(name), Named: true, open: func() (io.ReadCloser, error) {
		return w.plain(name, io.NopCloser(r), 0)
	}}
}
