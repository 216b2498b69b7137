package journal

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// OpenAs is Open with other bounds on the time until a vote's fsync.
var OpenAs = open

// Two callers that wait for the same votes mark only those as synced.
func TestSyncsAtOnceVouchForNoLaterVote(t *testing.T) {
	j, err := open(filepath.Join(t.TempDir(), "votes"), 1<<30, 1<<60)
	require.NoError(t, err)
	defer j.Close()
	begun, end := make(chan bool), make(chan bool)
	j.fsync = func() error { begun <- true; <-end; return j.file.Sync() }
	require.NoError(t, j.Append(Record{Key: Key{Vote: 1}}, Record{Key: Key{Vote: 2}}))
	done := make(chan error)
	for range 2 {
		go func() { done <- j.Sync() }()
	}
	<-begun
	<-begun
	require.NoError(t, j.Append(Record{Key: Key{Vote: 3}}))
	for range 2 {
		end <- true
		require.NoError(t, <-done)
	}
	require.Equal(t, 1, j.appended-j.synced)
	j.fsync = j.file.Sync
}
