package audit

// Rules returns the ids of all rules.
var Rules = rules
