// Package pivot scores one step of an agent against the step of a reference trajectory at the same
// point. These are the rewards of pivot training, in which a policy generates a single turn in the
// middle of a recorded trajectory.
//
// The package reproduces two verifiers of NVIDIA NeMo Gym (revision 07d6b0d07), rule by rule:
//
//   - [Comparator] is single_step_tool_use_with_argument_comparison: the tool
//     and the structure of its arguments must be the expected ones, strings are
//     compared as bags of words, several calls are matched as a set.
//   - [SWE] is swe_pivot: tool category, target (file, command, view range),
//     similarity of the edit or command, and a penalty on long edits.
//
// Both are pure functions of two actions and run no commands:
//
//	result, err := pivot.Comparator{}.Compare(expected, pivot.ActionOf(output))
//	score := pivot.SWE{}.Verify(expectedCall, actualCall)
//
// [Candidates] lists the turns of a demonstration that can serve as pivots, whether their calls are
// native or written in text ([WithTextCalls]); [Data.Row] makes NeMo-Gym data rows of them, and
// [Selection.Select] keeps those whose sampled answers differ in reward, since only these carry a
// group-relative learning signal.
//
// Arguments are read as by Python's json module (NaN and Infinity are numbers, integers have any size,
// the last of two equal keys wins), because the reference compares the values that this module
// returns.
package pivot
