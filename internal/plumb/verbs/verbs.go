package verbs

// verbs lists the plumbing commands; each entry has its own file.
func verbs() []verb {
	return []verb{
		importVerb(),
		encodeVerb(),
		mergeVerb(),
		windowVerb(),
		votesVerb(),
		caseVerb("advantage", "group advantages of rewards under a named estimator", advantageLine),
		caseVerb("grade", "grade a test log against an instance's test lists", gradeLine),
		lineVerb("pivot", "score one step against the reference trajectory's step", pivotLine),
		idsVerb(),
		decodeVerb(),
		judgePromptVerb(),
		caseVerb("weights", "weight of every token under a loss aggregation", weightsLine),
		caseVerb("shape", "length and truncation shaping, overrides, off-policy weights", shapeLine),
		caseVerb("filter", "which groups each system's filter keeps", filterLine),
		lineVerb("ssr", "self-play SWE-RL: rewards, their expectation, artifact checks", ssrLine),
		renderVerb(),
		seedParityVerb(),
	}
}
