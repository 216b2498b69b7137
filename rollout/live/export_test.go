package live

import "github.com/turnpack/turnpack/rollout/live/internal/log"

// OpenFaulty opens a journal that calls fault before it opens, writes and fsyncs a file.
func OpenFaulty(dir string, o JournalOptions, fault func(op string) error) (*Journal, error) {
	open := o.withDefaults().open
	o.open = func(path string) (log.File, error) {
		if err := fault("open"); err != nil {
			return nil, err
		}
		f, err := open(path)
		return faulty{f, fault}, err
	}
	return OpenJournal(dir, o)
}

type faulty struct {
	log.File
	fault func(op string) error
}

func (f faulty) WriteAt(b []byte, at int64) (int, error) {
	if err := f.fault("write"); err != nil {
		n, _ := f.File.WriteAt(b[:len(b)/2], at) // as a full disk does
		return n, err
	}
	return f.File.WriteAt(b, at)
}

func (f faulty) Sync() error {
	if err := f.fault("sync"); err != nil {
		return err
	}
	return f.File.Sync()
}
