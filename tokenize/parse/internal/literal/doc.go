// Package literal converts values as models write them to JSON: JSON as it arrives ([Scan],
// [Object]), literals of Python ([Python]) and Gemma ([Gemma]), and text typed by a tool's schema
// ([Types]).
//
//	schemas := literal.NewSchemas(tools)
//	schemas.Of("sleep", "seconds").Value("2.5") // 2.5, or "2.5" where text is expected
package literal
