package source

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// Print identifies the input read from a path.
type Print struct {
	Files  int
	Bytes  int64
	SHA256 string
}

// Fingerprint digests what Files would read from path: names relative to path, and
// contents, without decompression. The folder except is left out. Files named by beside
// count if they are beside a file that is read.
func Fingerprint(path, except string, beside []string) (Print, error) {
	found := []string{path}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, "*?[") {
		if found, err = filepath.Glob(path); err != nil {
			return Print{}, rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "not a pattern: %w", err)
		}
	}
	p := printer{sum: sha256.New(), except: except, beside: beside, folders: map[string]bool{}}
	for _, root := range found {
		if err := filepath.WalkDir(root, func(q string, e fs.DirEntry, err error) error { return p.entry(root, q, e, err) }); err != nil {
			return Print{}, err
		}
	}
	p.out.SHA256 = hex.EncodeToString(p.sum.Sum(nil))
	return p.out, nil
}

type printer struct {
	out     Print
	sum     hash.Hash
	except  string
	beside  []string
	folders map[string]bool // folders whose beside files are digested
	made    batches
}

func (p *printer) entry(root, path string, e fs.DirEntry, err error) error {
	if err != nil {
		return ioError(path, err)
	}
	hidden := path != root && strings.HasPrefix(e.Name(), ".")
	if e.IsDir() {
		if hidden || path == p.except {
			return fs.SkipDir
		}
		if path != root {
			p.made.add(path)
		}
		return nil
	}
	if hidden || p.made[path] || path != root && !known[(&File{Name: path}).Ext()] {
		return nil
	}
	name, err := filepath.Rel(filepath.Dir(root), path)
	if err != nil {
		name = path
	}
	n, err := p.add(filepath.ToSlash(name), path)
	if err != nil || n < 0 {
		return err
	}
	p.out.Files++
	p.out.Bytes += n
	folder := filepath.Dir(path)
	if p.folders[folder] {
		return nil
	}
	p.folders[folder] = true
	for _, name := range p.beside {
		if _, err := p.add(name, filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// add digests a file and returns its size, −1 if there is no such file.
func (p *printer) add(name, path string) (int64, error) {
	info, err := os.Stat(path) // follows links
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return -1, nil
	}
	if err != nil {
		return 0, ioError(path, err)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) { // a live journal has removed it
		return -1, nil
	}
	if err != nil {
		return 0, ioError(path, err)
	}
	defer f.Close()
	// Each length precedes its data, so that different inputs never give the same bytes.
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(name)))
	head = binary.LittleEndian.AppendUint64(append(head, name...), uint64(info.Size()))
	_, _ = p.sum.Write(head)
	n, err := io.Copy(p.sum, f)
	if err != nil {
		return 0, ioError(path, err)
	}
	return n, nil
}
