// Package parse parses sampled text as it arrives into reasoning, content and tool calls.
//
//	p, err := parse.New("qwen3_coder", parse.Options{Tools: tools, InReasoning: true})
//	events := p.Push(text)   // deltas, for a client that streams
//	events, reply := p.Close()
//
// [Detect] returns the family of a chat template. A parser holds back only text that it cannot
// decide on yet, takes time linear in the text, and gives the same deltas and the same [Reply]
// wherever the text is cut.
//
// # Malformed calls
//
// A call that is malformed, or truncated by the end of the reply, stays text in its place, with a
// [Fault] that says why, as the advantages of malformed replies need (package reward/detect). Only
// white space at edges and the marks themselves are left out of the message. With [Options.Stream]
// arguments are returned as they are sampled, so a call that goes wrong after its name stays a
// call, with its fault.
//
// # Arguments
//
// Arguments written as JSON are kept verbatim. In families that write each parameter separately,
// values have no types: the schema of the tool gives them, in the order of vLLM. docs/parsers.md
// lists the differences between vLLM and SGLang and what this package does.
package parse
