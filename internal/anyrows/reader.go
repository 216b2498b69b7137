package anyrows

import "github.com/turnpack/turnpack/export"

// Reader reads the rows of one file, of this module's schema or from any other writer. It must
// not be used concurrently.
type Reader struct {
	src   source
	shape string
	read  int
}

// Shape returns a description of the file's format, as text.
func (r *Reader) Shape() string { return r.shape }

// Info returns the description of a file of this module's schema; ok is false for other files.
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
