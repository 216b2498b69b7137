// Package render writes the contexts of a rollout as its chat template does, and says of
// each byte which message it came from.
//
// A [Template] is a compiled chat template and what tells how it takes messages: as one
// text or as parts, tool arguments as objects or as text. A [Renderer] belongs to one
// rollout and renders what the model saw at a turn (Prompt), that with the reply after it
// (Answered), or the whole conversation (Document). Each gives a [Rendering]: the text and
// the fields of messages in it; every other byte is the template's own.
package render
