// Package render renders the contexts of a rollout with its chat template, and says for each byte
// which message it came from.
//
// A [Template] is a compiled chat template with the form in which it takes messages: as one text or
// as parts, tool arguments as objects or as text. A [Renderer] belongs to one rollout and renders
// what the model saw at a turn (Prompt), the same with the reply after it (Answered), or the whole
// conversation (Document). Each returns a [Rendering]: the text and the fields of messages in it;
// every other byte is the template's own.
package render
