package fetch

// IsSecret reports whether a header field's name says that its value is a secret.
func IsSecret(name string) bool { return isSecret(name) }
