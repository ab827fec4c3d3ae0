package yaml

// CountTokens is for tests.
var CountTokens = countTokens
