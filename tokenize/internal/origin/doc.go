// Package origin identifies the places of a conversation that rendered bytes come from.
//
// A Field is one place: a string, number or constant of the input, or the key of a dict.
// chat.Result gives the Field of each run of its text; text without a Field is the template's own,
// scaffold. Within one chat.Conversation two bytes come from the same place exactly if their Field
// pointers are equal.
package origin
