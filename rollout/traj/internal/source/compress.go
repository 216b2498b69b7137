package source

import (
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/turnpack/turnpack/rollout"
)

var (
	magicGzip = []byte{0x1f, 0x8b}
	magicZstd = []byte{0x28, 0xb5, 0x2f, 0xfd}
	magicZip  = []byte("PK\x03\x04")
	magicNone = []byte("PK\x05\x06") // an archive without members
)

func zipMagic(p string) (bool, error) {
	f, err := os.Open(p)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var head [4]byte
	n, err := io.ReadFull(f, head[:])
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return bytes.Equal(head[:n], magicZip) || bytes.Equal(head[:n], magicNone), nil
}

// begin returns the bytes from the first read of a stream, enough to detect its kind. It
// does not wait for more.
func begin(r *bufio.Reader) ([]byte, error) {
	_, err := r.Peek(len(magicZip))
	head, _ := r.Peek(r.Buffered())
	return head, err
}

// noDump returns why a file in a folder is not read, judged by its name, or "".
func noDump(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".db", ".sqlite", ".sqlite3", ".vscdb":
		return "a store that is a database: docs/formats.md has the command that exports what it holds"
	}
	return "not a file name of a dump"
}

// otherFile returns an error if the file starts like another common kind of data file.
func otherFile(name string, head []byte) error {
	for _, k := range []struct {
		at               int
		magic, what, fix string
	}{
		{0, "PAR1", "a Parquet file", "save it as a file by itself, not compressed, and name that"},
		{0, "ARROW1", "an Arrow file", "save it as a file by itself, not compressed, and name that"},
		{0, "\xff\xff\xff\xff", "an Arrow stream", "save it as a file by itself, not compressed, and name that"},
		{0, "SQLite format 3\x00", "a SQLite database", "export what it holds and name that: opencode export ID, goose session export --session-id ID --format json; docs/formats.md has the command for each store"},
		{257, "ustar", "a tar archive", "unpack it, and name the folder"},
		{0, "\xfd7zXZ\x00", "an xz file", "decompress it, or compress it as gzip or zstd"},
		{0, "BZh", "a bzip2 file", "decompress it, or compress it as gzip or zstd"},
		{0, "\xff\xfe", "text in UTF-16", "save it as UTF-8"},
	} {
		if len(head) > k.at && bytes.HasPrefix(head[k.at:], []byte(k.magic)) {
			return rollout.Errorf(rollout.KindFormat, rollout.Where{File: name}, "found %s, expected JSON", k.what).WithFix("%s", k.fix)
		}
	}
	return nil
}

// plain decompresses one layer of gzip or zstd, detected by content, within limits. It owns
// r.
func (w *Walker) plain(name string, r io.ReadCloser, layer int) (io.ReadCloser, error) {
	in := &counter{r: r}
	br := bufio.NewReaderSize(in, 64<<10)
	head, err := begin(br)
	if err != nil && err != io.EOF {
		r.Close()
		return nil, ioError(name, err)
	}
	bound := &bounded{name: name, in: in, lim: w.Limits, close: r.Close}
	switch {
	case bytes.HasPrefix(head, magicGzip):
		z, err := gzip.NewReader(br)
		if err != nil {
			r.Close()
			return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{File: name}, "not a gzip stream: %w", err)
		}
		bound.r, bound.packed = z, "gzip"
	case bytes.HasPrefix(head, magicZstd):
		z, err := zstd.NewReader(br, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20), zstd.WithDecoderLowmem(true))
		if err != nil {
			r.Close()
			return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{File: name}, "not a zstd stream: %w", err)
		}
		bound.r, bound.packed = z, "zstd"
		bound.close = func() error { z.Close(); return r.Close() }
	case bytes.HasPrefix(head, magicZip) && (layer > 0 || name == Stdin):
		r.Close()
		return nil, rollout.Errorf(rollout.KindLimit, rollout.Where{File: name}, "an archive inside another stream is not unpacked").WithFix("unpack it into a file first")
	default:
		if err := otherFile(name, head); err != nil {
			r.Close()
			return nil, err
		}
		bound.r = br
		return bound, nil
	}
	if layer > 0 {
		return bound, nil
	}
	inner := bufio.NewReaderSize(bound, 64<<10)
	head, _ = begin(inner) // the first read returns the error again
	if bytes.HasPrefix(head, magicGzip) || bytes.HasPrefix(head, magicZstd) || bytes.HasPrefix(head, magicZip) {
		bound.Close()
		return nil, rollout.Errorf(rollout.KindLimit, rollout.Where{File: name}, "compressed more than once").WithFix("undo the outer layer first")
	}
	if err := otherFile(name, head); err != nil {
		bound.Close()
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{inner, bound}, nil
}

// verify reads a compressed file to its end before any of it is used, and returns to its
// start: a wrong checksum is only detected after the last record.
func (w *Walker) verify(file *os.File, open func() (io.ReadCloser, error)) error {
	var head [4]byte
	n, _ := file.ReadAt(head[:], 0)
	if !bytes.HasPrefix(head[:n], magicGzip) && !bytes.HasPrefix(head[:n], magicZstd) {
		return nil
	}
	if err := findCorruption(open); err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return ioError(file.Name(), err)
	}
	return nil
}

// findCorruption reads a compressed stream and returns an error if its bytes are corrupt. A
// truncated stream is no error here: its bytes are correct, and reading it reports the
// truncation.
func findCorruption(open func() (io.ReadCloser, error)) error {
	r, err := open()
	if err != nil {
		return nil // reading it gives the same error
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	e, ok := errors.AsType[*rollout.Error](err)
	if !ok || e.Kind != rollout.KindFormat || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return e.WithFix("fetch or write the file again; nothing of it was read")
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// bounded reads r and stops with an error if the stream exceeds the limits.
type bounded struct {
	name   string
	r      io.Reader
	in     *counter
	lim    Limits
	packed string
	out    int64
	whole  *archiveSize // of the archive that contains this member
	close  func() error
}

// archiveSize compares the decompressed size of all members of an archive with its size on
// disk: members can share bytes and lie about their sizes.
type archiveSize struct {
	name      string
	disk, out int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.out += int64(n)
	if w := b.whole; w != nil {
		if w.out += int64(n); w.out > ratioFrom && w.out/b.lim.Ratio > w.disk {
			return 0, rollout.Errorf(rollout.KindLimit, rollout.Where{File: w.name}, "the members of an archive of %d bytes unfold into more than %d times as many", w.disk, b.lim.Ratio).WithFix("unpack it yourself if you trust it, or raise Limits.Ratio")
		}
	}
	switch {
	case b.out > b.lim.FileBytes:
		return 0, rollout.Errorf(rollout.KindLimit, rollout.Where{File: b.name}, "more than %d bytes", b.lim.FileBytes)
	case b.packed != "" && b.out > ratioFrom && b.out/b.lim.Ratio > b.in.n:
		return 0, rollout.Errorf(rollout.KindLimit, rollout.Where{File: b.name}, "%d bytes of %s unfold into more than %d times as many", b.in.n, b.packed, b.lim.Ratio).WithFix("unpack it yourself if you trust it, or raise Limits.Ratio")
	case err != nil && err != io.EOF && b.packed != "":
		if b.packed == "zip" && errors.Is(err, io.ErrUnexpectedEOF) { // the directory at the end was read: not cut off
			err = errors.New("a member ends before its size, or beyond it")
		}
		if _, ok := errors.AsType[*rollout.Error](err); !ok {
			return n, rollout.Errorf(rollout.KindFormat, rollout.Where{File: b.name}, "the %s stream is broken: %w", b.packed, err)
		}
	}
	return n, err
}

func (b *bounded) Close() error { return b.close() }

// members yields the members of a zip archive in lexical order. Names that point outside
// the archive are errors, although nothing is written to disk: an archive with such a name
// is not trustworthy.
func (w *Walker) members(f *File, yield func(*File, error) bool) bool {
	a, err := w.OpenArchive(f)
	if err != nil {
		return yield(nil, err)
	}
	defer a.Close()
	for _, m := range a.files {
		name := f.Name + "!" + m.Name
		if why := badName(m.Name); why != "" {
			if !yield(nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: name}, "%s", why)) {
				return false
			}
			continue
		}
		if !known[(&File{Name: m.Name}).Ext()] || strings.HasPrefix(path.Base(m.Name), ".") {
			w.ignore(name, "not a file name of a dump")
			continue
		}
		file := &File{Name: name, Path: f.Path, Rel: f.Rel + "!" + m.Name, open: func() (io.ReadCloser, error) { return w.member(name, m, a.size) }}
		if !yield(file, nil) {
			return false
		}
	}
	return true
}

func badName(name string) string {
	switch {
	case strings.HasPrefix(name, "/") || strings.Contains(name, `\`) || strings.Contains(name, ":"):
		return "the member name is not a relative path"
	case path.Clean(name) != name || strings.HasPrefix(name, "../") || name == "..":
		return "the member name points outside the archive"
	case strings.ContainsRune(name, 0):
		return "the member name holds a NUL byte"
	}
	return ""
}

func (w *Walker) member(name string, m *zip.File, size *archiveSize) (io.ReadCloser, error) {
	once := *size // a copy, so that bytes are not counted twice
	if err := findCorruption(func() (io.ReadCloser, error) { return w.unpack(name, m, &once) }); err != nil {
		return nil, err
	}
	return w.unpack(name, m, size)
}

func (w *Walker) unpack(name string, m *zip.File, size *archiveSize) (io.ReadCloser, error) {
	r, err := m.Open()
	if err != nil {
		return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{File: name}, "the member cannot be read: %w", err)
	}
	in := &counter{n: int64(m.CompressedSize64)}
	b := &bounded{name: name, r: r, in: in, lim: w.Limits, packed: "zip", whole: size, close: r.Close}
	return w.plain(name, b, 1)
}

// Archive is an open zip file whose members are read by name.
type Archive struct {
	w     *Walker
	name  string
	z     *zip.ReadCloser
	files []*zip.File
	size  *archiveSize
}

// OpenArchive opens the zip file in f.
func (w *Walker) OpenArchive(f *File) (*Archive, error) {
	p := f.Path
	info, err := os.Stat(p)
	if err != nil {
		return nil, ioError(p, err)
	}
	z, err := zip.OpenReader(p)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{File: p}, "not a zip archive: %w", err).
			WithFix("fetch it again, whole: the list of members is at its end")
	}
	// Members may be compressed with zstd, as in newer evaluation logs.
	z.RegisterDecompressor(zstd.ZipMethodWinZip, zstd.ZipDecompressor(zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20), zstd.WithDecoderLowmem(true)))
	if len(z.File) > w.Limits.Members {
		z.Close()
		return nil, rollout.Errorf(rollout.KindLimit, rollout.Where{File: p}, "%d members, at most %d are read", len(z.File), w.Limits.Members)
	}
	// A rewritten member has two entries; the last one is valid.
	latest := make(map[string]*zip.File, len(z.File))
	for _, m := range z.File {
		if strings.HasSuffix(m.Name, "/") {
			continue
		}
		if latest[m.Name] != nil {
			w.ignore(p+"!"+m.Name, "the archive holds a later member of that name")
		}
		latest[m.Name] = m
	}
	files := slices.SortedFunc(maps.Values(latest), func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	return &Archive{w: w, name: f.Name, z: z, files: files, size: &archiveSize{name: p, disk: info.Size()}}, nil
}

// Names returns the member names in lexical order.
func (a *Archive) Names() []string {
	out := make([]string, len(a.files))
	for i, f := range a.files {
		out[i] = f.Name
	}
	return out
}

// Open opens a member by its index in Names. Names are not checked: they contain the sample
// names of a data set.
func (a *Archive) Open(i int) (io.ReadCloser, error) {
	m := a.files[i]
	return a.w.member(a.name+"!"+m.Name, m, a.size)
}

// Close closes the archive.
func (a *Archive) Close() error { return a.z.Close() }
