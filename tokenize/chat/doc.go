// Package chat renders Hugging Face chat templates byte for byte as transformers does, and records for every byte of
// the result which part of the conversation it came from.
//
//	tmpl, err := chat.Compile(source, chat.Options{Name: "Qwen3-8B"})
//	conv, err := chat.NewConversation(messages, tools, chat.Null(), chat.ConversationOptions{})
//	res, err := tmpl.Render(ctx, conv, chat.Input{AddGenerationPrompt: true})
//
// res.Text is what apply_chat_template(tokenize=False) returns; res.Spans covers every byte of it once, in order.
// Package tokenize finds the sampled text in it. A Template and a Conversation are immutable and safe for concurrent
// use.
//
// # The language
//
// Templates are Jinja programs. The package has one lexer and parser (internal/syntax), one evaluator (internal/eval)
// and one table for each kind of builtin (internal/builtin, internal/object). It implements the language as
// transformers configures it: trim_blocks and lstrip_blocks on, the immutable sandbox, loop controls, generation
// blocks, tojson as json.dumps without HTML escapes, raise_exception, strftime_now. Values print, compare and compute
// as in Python. Where Jinja differs from Python, the package follows Jinja: the variable that a name means is decided
// per scope, as Jinja's compiler decides it (internal/scope gives the rules).
//
// Not implemented: complex numbers, set operations on dict views, \N{name} escapes, the filters and globals with
// random results (they are errors), and the visible effects of Jinja's constant folding (a bad slice of a constant
// prints nothing, a constant infinity is an error). An empty conversation is rendered; apply_chat_template refuses it
// before it looks at the template.
//
// # Values and origins
//
// internal/value defines a small closed set of types: None, Bool, Int (any size), Float, Str, List (also tuples),
// Dict (in insertion order), Range, dict views, one-shot iterators, Undefined. Each scalar of the input carries its
// [Field], the place in {messages, tools, documents} that it was read from. A string is its text together with runs
// of (field, byte range); literals of the template have no field: they are scaffold.
//
// Operations keep the origin. A slice, a strip or a split shares the text and narrows the range; concatenation, join,
// replace, and capture by a macro, call, set or filter block put runs one after the other. Text derived from field
// bytes but not equal to them (a changed case, an HTML escape, a number) keeps the field with Exact unset. A number
// computed from recorded numbers has the field of the first of them. Lengths, counts, positions and the outcomes of
// comparisons and tests are scaffold, and so is template text that is repeated as often as the data says. A string
// inside tojson has a span for each escape and for each piece between escapes; with ensure_ascii, escapes in a row
// share one. Keyword arguments such as bos_token are scaffold.
//
// One rule goes further: a template may fetch a function name through tool_call_id from the call that a tool message
// answers. If the tool message holds the same name, the bytes count as the tool message's own: the model reads them
// there and did not sample them.
//
// # Sampled text
//
// tokenize.FindReplies finds the sampled text from the origin of the bytes, without generation marks. On the training
// templates of trl it agrees with their marks but for listed differences.
//
// # Errors and limits
//
// Every failure is a *rollout.Error of KindTemplate (or KindLimit) with line and column, and wraps an [*Error] with
// Python's class of error and the offending text; the message of raise_exception is exact. [Limits] bounds everything
// a template can use, before memory is allocated, so a hostile template can neither hang nor exhaust a job. A
// template sees only its inputs.
//
// # Adding a builtin
//
// A filter is one entry in the table of internal/builtin/filters.go, a test one in tests.go, a global in globals.go,
// a method of str one in internal/object/strmethods.go:
//
//	"shout": rt.Def("shout(mark=)", func(x *rt.Context, v value.Value, p rt.Params) value.Value {
//		mark := value.Lit("!")
//		if p[0] != nil { // parameters in order; nil if not given
//			mark = x.SoftStr(p[0])
//		}
//		return value.Concat(x.Lim, py.Upper(x.SoftStr(v), x.Lim), mark)
//	}),
//
// The signature binds arguments as Python does. The first failure is kept in x and stops the run at the next
// statement, so a builtin may return anything after a failure. Build strings with value.Text or the functions of
// internal/py, which carry origins; account for memory and work with x.Make and x.Spend before using them, and count
// items with x.Step. Then add a case to internal/eval/testdata: internal/oracle/language_cases.py --write asks jinja2
// for the expected result.
package chat
