package syntax

import "math/big"

// Pos is a byte offset in the template source after newline normalisation.
type Pos int32

// Expr is an expression node.
type Expr interface{ At() Pos }

// Stmt is a statement node.
type Stmt interface{ At() Pos }

type node struct{ Pos Pos }

// At returns where the node starts.
func (n node) At() Pos { return n.Pos }

// The expression nodes.
type (
	// Data is literal template text.
	Data struct {
		node
		Text string
	}
	// Name reads, stores or declares (as a parameter) a variable.
	Name struct {
		node
		Name  string
		Store bool
	}
	// NSRef is the assignment target ns.attr.
	NSRef struct {
		node
		Name, Attr string
	}
	// Const is None, True, False, a number or a string. Kind selects the field that holds the value.
	Const struct {
		node
		Kind  ConstKind
		Str   string
		Int   *big.Int
		Float float64
	}
	// Tuple, List and Dict are displays, as Python calls them.
	Tuple struct {
		node
		Items []Expr
	}
	List struct {
		node
		Items []Expr
	}
	Dict struct {
		node
		Keys, Values []Expr
	}
	// Cond is "Then if Test else Else"; Else may be nil.
	Cond struct {
		node
		Test, Then, Else Expr
	}
	// Binary is an arithmetic operator: + - * / // % **.
	Binary struct {
		node
		Op          string
		Left, Right Expr
	}
	// Logic is "and" or "or".
	Logic struct {
		node
		Or          bool
		Left, Right Expr
	}
	// Unary is + or -.
	Unary struct {
		node
		Op string
		X  Expr
	}
	Not struct {
		node
		X Expr
	}
	// Compare is a chain: X Ops[0] Rest[0] Ops[1] Rest[1] …
	Compare struct {
		node
		X    Expr
		Ops  []string // == != < <= > >= in notin
		Rest []Expr
	}
	// Concat is the ~ operator.
	Concat struct {
		node
		Items []Expr
	}
	Getattr struct {
		node
		X    Expr
		Attr string
	}
	Getitem struct {
		node
		X, Index Expr
	}
	// Slice occurs only as the Index of a Getitem. Start, Stop and Step may be nil.
	Slice struct {
		node
		Start, Stop, Step Expr
	}
	Call struct {
		node
		Fn Expr
		Args
	}
	Filter struct {
		node
		X    Expr // nil inside a filter block or a filtered set block
		Name string
		Args
	}
	Test struct {
		node
		X    Expr
		Name string
		Args
	}
)

// ConstKind is the kind of a Const.
type ConstKind uint8

// The kinds of constants.
const (
	ConstNone ConstKind = iota
	ConstTrue
	ConstFalse
	ConstStr
	ConstInt
	ConstFloat
)

// Args are the arguments of a call, filter or test.
type Args struct {
	List        []Expr
	Kw          []Keyword
	Star, Star2 Expr // *args and **kwargs, may be nil
}

// None reports whether there are no arguments.
func (a *Args) None() bool { return len(a.List) == 0 && !a.Named() }

// Named reports whether there are keyword, *args or **kwargs arguments.
func (a *Args) Named() bool { return len(a.Kw) > 0 || a.Star != nil || a.Star2 != nil }

// Keyword is one name=value argument.
type Keyword struct {
	Name  string
	Value Expr
}

// The statement nodes.
type (
	// Output prints its nodes one after another.
	Output struct {
		node
		Nodes []Expr
	}
	For struct {
		node
		Target    Expr
		Iter      Expr
		Test      Expr // may be nil
		Recursive bool
		Body      []Stmt
		Else      []Stmt
	}
	// If is an if statement with all its branches. Elifs have neither Elifs nor Else.
	If struct {
		node
		Test  Expr
		Body  []Stmt
		Elifs []*If
		Else  []Stmt
	}
	// Signature is the parameter list of a macro or call block; Defaults belong to the last parameters.
	Signature struct {
		Params   []*Name
		Defaults []Expr
	}
	Macro struct {
		node
		Name string
		Signature
		Body []Stmt
	}
	CallBlock struct {
		node
		Signature
		Call *Call
		Body []Stmt
	}
	// Generation is the {% generation %} block of transformers.
	Generation struct {
		node
		Body []Stmt
	}
	FilterBlock struct {
		node
		Filter *Filter
		Body   []Stmt
	}
	With struct {
		node
		Targets []Expr
		Values  []Expr
		Body    []Stmt
	}
	Set struct {
		node
		Target, Value Expr
	}
	SetBlock struct {
		node
		Target Expr
		Filter *Filter // may be nil
		Body   []Stmt
	}
	// Scope is an {% autoescape %} block.
	Scope struct {
		node
		Autoescape Expr
		Body       []Stmt
	}
	Block struct {
		node
		Name   string
		Scoped bool
		Body   []Stmt
	}
	// Load is an extends, include, import or from statement. Chat templates have no loader, so it fails when it is
	// reached. Names are the variables that it would assign.
	Load struct {
		node
		Tag           string
		Template      Expr
		Names         []string
		IgnoreMissing bool
	}
	Break    struct{ node }
	Continue struct{ node }
)
