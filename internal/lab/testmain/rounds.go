package testmain

import (
	"math/rand/v2"
	"os"
	"testing"
)

// Rounds returns how many times a test repeats its random part, or the size of its input: long if KUMO_TEST_LONG is
// set, as in .ci/long, and short otherwise.
func Rounds(short, long int) int {
	if os.Getenv("KUMO_TEST_LONG") != "" {
		return long
	}
	return short
}

// Seeds returns the range [first, end) of seeds for a test: 0 to long if KUMO_TEST_LONG is set, and otherwise short
// consecutive ones of them, different in each run.
func Seeds(short, long uint64) (first, end uint64) {
	if os.Getenv("KUMO_TEST_LONG") != "" {
		return 0, long
	}
	first = rand.Uint64N(long - short + 1)
	return first, first + short
}

// Slow skips a test unless KUMO_TEST_SLOW or KUMO_TEST_LONG is set. .ci/run sets the first. Tests call Slow if they
// take more than ten seconds, or more than two seconds of CPU. Without them, go test ./... takes about four minutes on
// two processors.
func Slow(t testing.TB) {
	t.Helper()
	if !IsSlow() {
		t.Skip("SKIPPED: takes long; set KUMO_TEST_SLOW=1, as .ci/run does")
	}
}

// IsSlow reports whether slow tests run.
func IsSlow() bool { return os.Getenv("KUMO_TEST_SLOW") != "" || os.Getenv("KUMO_TEST_LONG") != "" }
