package sandbox_test

import (
	"fmt"

	"github.com/turnpack/turnpack/rollout/sandbox"
)

// A blocklist answers in place of the sandbox, with text that the model can act on.
func ExampleBlocklist() {
	list := sandbox.DefaultBlocklist()
	for _, command := range []string{"git diff", "cd src && vim parser.py"} {
		if answer, ok := list.Check(command); !ok {
			fmt.Println(answer)
			continue
		}
		fmt.Println("run:", command)
	}
	// Output:
	// run: git diff
	// The command was not run: "vim" is of the class interactive. Nobody is there to type: use commands that end by themselves, such as sed or python -c.
}
