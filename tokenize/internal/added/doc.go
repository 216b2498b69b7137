// Package added finds the added tokens of a vocabulary in a text, for engines that pass the text between them to a
// model.
//
//	m := added.New(vocab.Added(), nil)
//	spans := m.Append(nil, []byte(text), nil)
package added
