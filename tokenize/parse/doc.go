// Package parse reads sampled text as it arrives: reasoning, content and tool calls.
//
//	p, err := parse.New("qwen3_coder", parse.Options{Tools: tools, InReasoning: true})
//	events := p.Push(text)   // deltas, for a client that streams
//	events, reply := p.Close()
//
// [Detect] names the family of a chat template. A parser holds no more than what it
// cannot decide on yet, takes time linear in the text, and gives the same deltas and
// the same [Reply] wherever the text is cut.
//
// # Malformed calls
//
// A call that is malformed, or cut off by the end of the reply, stays text where it
// stood, with a [Fault] that says why: what the advantages of malformed replies need
// (package reward/detect). Nothing but white space at edges and the marks themselves is
// left out of the message. With [Options.Stream] arguments are given as they are
// sampled, so a call that goes wrong after its name stays a call, with its fault.
//
// # Arguments
//
// Arguments written as JSON are kept verbatim. Families that write each parameter
// apart have no types: the schema of the tool gives them, in the order of vLLM. The
// page docs/parsers.md lists where vLLM and SGLang differ and what is done here.
package parse
