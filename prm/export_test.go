package prm

var VerdictFor, DefaultEscapes = verdictFor, defaultEscapes
