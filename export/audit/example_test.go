package audit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/turnpack/turnpack/export/audit"
)

func ExampleRun() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // an example
	path := filepath.Join(dir, "rows.jsonl")
	if err := os.WriteFile(path, []byte(`{"input_ids":[9,10,11],"loss_mask":[1,1,0]}`), 0o600); err != nil {
		panic(err)
	}
	r, err := audit.Run(context.Background(), []string{path}, audit.Options{})
	if err != nil {
		panic(err)
	}
	for _, g := range r.Findings {
		fmt.Println(g.Severity, g.Rule, g.Examples[0].Where(), "-", g.Examples[0].Text)
	}
	// Output:
	// error first-token-trained row 0 token 0 - mask 1 on token 0
	// warn tail-untrained row 0 token 2 - 1 tokens after the last trained one
}
