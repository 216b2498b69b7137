package syntax

// The cost of a statement is bounded only by the template, so its work is counted by the nodes of its expressions and
// targets, evaluated or not. A text that is compared or looked up counts as one node for each bytesANode bytes.
const bytesANode = 16

// Size returns the number of nodes that are evaluated each time s is reached. It excludes a loop's target and test
// and a macro's defaults, which are counted for each pass or call.
func Size(s Stmt) int {
	switch n := s.(type) {
	case *If:
		sum := Nodes(n.Test)
		for _, e := range n.Elifs {
			sum += Nodes(e.Test)
		}
		return sum
	case *For:
		return Nodes(n.Iter)
	case *Macro:
		return 0
	}
	exprs, _ := Parts(s)
	return Nodes(exprs...)
}

// Nodes returns the number of nodes of the expressions.
func Nodes(list ...Expr) (sum int) {
	for _, e := range list {
		Inspect(e, func(e Expr) bool {
			switch n := e.(type) {
			case *Const:
				sum += len(n.Str) / bytesANode
			case *Getattr:
				sum += len(n.Attr) / bytesANode
			case *Logic, *Not: // a long chain is evaluated by as many nested calls
				sum += 2
			}
			sum++
			return true
		})
	}
	return sum
}
