package patch_test

import (
	"fmt"

	"github.com/turnpack/turnpack/reward/patch"
)

func ExamplePatch_Apply() {
	tree := patch.Tree{"calc.py": {Content: "def add(a, b):\n    return a - b\n"}}
	p, _ := patch.Parse(`--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
`)
	after, err := p.Apply(tree)
	fmt.Println(p.Touched(), err)
	fmt.Print(after["calc.py"].Content)
	// Output:
	// [calc.py] <nil>
	// def add(a, b):
	//     return a + b
}

func ExamplePatch_Reverse() {
	p, _ := patch.Parse("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n")
	back, _ := p.Reverse()
	tree, _ := back.Apply(patch.Tree{"x": {Content: "new\n"}})
	fmt.Printf("%q\n", tree["x"].Content)
	// Output: "old\n"
}
