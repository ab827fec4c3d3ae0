package testmain

import "os"

// Rounds returns how many times a test repeats what it does with random choices, or how large it makes its input: long
// if KUMO_TEST_LONG is set, as .ci/long sets it, and short otherwise.
func Rounds(short, long int) int {
	if os.Getenv("KUMO_TEST_LONG") != "" {
		return long
	}
	return short
}
