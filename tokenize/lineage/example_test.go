package lineage_test

import (
	"fmt"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// The second call's prompt repeats the first call's ids; the third call is a retry of the second.
func ExampleMerge() {
	res, err := lineage.Merge([]lineage.Turn{
		{Prompt: rollout.PromptIDs{Add: []rollout.TokenID{1, 2, 3}}, Output: []rollout.TokenID{10, 11}},
		{Prompt: rollout.PromptIDs{Base: rollout.At(0), Keep: 5, Add: []rollout.TokenID{4}}, Output: []rollout.TokenID{12}},
		{Prompt: rollout.PromptIDs{Base: rollout.At(0), Keep: 5, Add: []rollout.TokenID{4}}, Output: []rollout.TokenID{13, 14}},
	}, lineage.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range res.Rows {
		fmt.Println(row.Break, row.AppendIDs(nil), row.AppendMask(nil))
	}
	fmt.Printf("trained %d of %d\n", res.Report.Trained, res.Report.Sampled)
	// Output:
	// root [1 2 3 10 11 4 12] [0 0 0 1 1 0 1]
	// sibling [1 2 3 10 11 4 13 14] [0 0 0 0 0 0 1 1]
	// trained 5 of 5
}

// The second prompt spells the word "retry" in one id where the model sampled two. With "splice"
// the row continues and declares the difference.
func ExampleMerge_splice() {
	vocabulary := map[rollout.TokenID]string{1: "<user>", 2: "<end>", 10: "re", 11: "try", 12: "retry", 13: "ok"}
	turns := []lineage.Turn{
		{Prompt: rollout.PromptIDs{Add: []rollout.TokenID{1}}, Output: []rollout.TokenID{10, 11, 2}},
		{Prompt: rollout.PromptIDs{Add: []rollout.TokenID{1, 12, 2, 1}}, Output: []rollout.TokenID{13, 2}},
	}
	res, err := lineage.Merge(turns, lineage.Options{
		Drift: "splice",
		Text:  func(id rollout.TokenID) string { return vocabulary[id] },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	row := res.Rows[0]
	fmt.Println(len(res.Rows), row.AppendIDs(nil), row.AppendMask(nil))
	fmt.Printf("%+v\n", row.Spans[1].Subs)
	// Output:
	// 1 [1 10 11 2 1 13 2] [0 1 1 1 0 1 1]
	// [{At:1 Len:2 EngineLen:1 Stop:false}]
}
