package anyrows

import "github.com/turnpack/turnpack/export"

// Reader gives the rows of one file, of this module's schema or by anyone. It
// must not be used concurrently.
type Reader struct {
	src   source
	shape string
	read  int
}

// Shape says in words what the file is.
func (r *Reader) Shape() string { return r.shape }

// Info is what a file of this module's schema says about itself; ok is false
// for files by others.
func (r *Reader) Info() (info export.Info, ok bool) {
	s, ok := r.src.(*schemaSource)
	if !ok {
		return export.Info{}, false
	}
	return s.r.Info(), true
}

// Read returns the next row, or io.EOF after the last.
func (r *Reader) Read() (*Row, error) {
	row, err := r.src.next()
	if err != nil {
		return nil, err
	}
	row.Index = r.read
	r.read++
	return row, nil
}

// Close closes the file.
func (r *Reader) Close() error {
	return r.src.close()
}
