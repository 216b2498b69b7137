package verbs

// verbs lists the plumbing commands; each entry has its own file.
func verbs() []verb {
	return []verb{
		importVerb(),
		encodeVerb(),
		mergeVerb(),
		windowVerb(),
		votesVerb(),
		advantageVerb(),
		gradeVerb(),
		pivotVerb(),
		idsVerb(),
		decodeVerb(),
		judgePromptVerb(),
		weightsVerb(),
		shapeVerb(),
		filterVerb(),
		ssrVerb(),
		renderVerb(),
		seedParityVerb(),
	}
}
