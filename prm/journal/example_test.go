package journal_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/turnpack/turnpack/prm/journal"
)

func Example() {
	dir, err := os.MkdirTemp("", "votes")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "votes.journal")

	j, _ := journal.Open(path)
	key := journal.Key{Rollout: "django-1#0", Step: 4, Vote: 0, Prompt: "d41d8cd9"}
	_ = j.Append(journal.Record{Key: key, Text: `Sound. \boxed{1}`})
	_ = j.Close()

	j, _ = journal.Open(path)
	vote, found, _ := j.Lookup(key)
	fmt.Println(found, vote.Text, j.Stats().Votes)
	_ = j.Close()
	// Output: true Sound. \boxed{1} 1
}
