package netlab

import (
	"os"
	"testing"
)

// ForTest makes a lab that ends with the test. Where none can be made the test is skipped, with the reason; in CI it
// fails.
func ForTest(t testing.TB, seed uint64) *Lab {
	t.Helper()
	l, err := Open(seed)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("no network of namespaces can be made here: %v", err)
		}
		t.Skipf("SKIPPED: no network of namespaces can be made here; it needs Linux, root, ip and tc: %v", err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// Add adds a host with one address.
func (l *Lab) Add(t testing.TB, name string) *Host {
	t.Helper()
	h, err := l.Host(name, 1)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
