// Package origin names the places of a conversation that rendered bytes come from.
//
// A Field is one place: a string, number or constant of the input, or the key of a
// dict. chat.Result says for each run of its text which Field it comes from; text
// without one is the template's own, scaffold. Within one chat.Conversation two bytes
// come from the same place exactly when their Field pointers are equal.
package origin
