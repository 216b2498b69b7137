// Package exact lets a proxy render its own prompts as token ids. They contain earlier completions exactly as sampled
// (package tokenize/prompt), and the parser of the model's family reads the replies (package tokenize/parse).
//
//	x, err := exact.New(model, exact.Options{})
//	h, err := proxy.New(proxy.Options{Recorder: recorder, Engine: e, Open: recorder.Begin, Prompts: x})
//
// Linear rollouts then become one row, whatever the engine samples. Replies are learnt from the recorder, so a
// restart loses nothing.
package exact
