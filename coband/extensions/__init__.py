"""Extensions: folders that can be deleted. Each imports `coband` and `coband.extending`, and nothing imports it."""
