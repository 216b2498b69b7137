package cli

import (
	"os"
	"path/filepath"
)

// RecordName is the file beside a batch that says what made it. It is hidden, so
// that neither trainers nor dump readers take it for theirs.
const RecordName = ".turnpack.json"

// RecordOf reads the record of the batch that file belongs to; nil without one.
func RecordOf(file string) []byte {
	dir := filepath.Dir(file)
	for range 3 { // a file of a set lies in a folder of the batch
		if text, err := os.ReadFile(filepath.Join(dir, RecordName)); err == nil {
			return text
		}
		dir = filepath.Dir(dir)
	}
	return nil
}
