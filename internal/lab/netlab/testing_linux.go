package netlab

import (
	"os"
	"testing"
)

// ForTest creates a lab that ends with the test. If that is not possible, the test is skipped with the reason; in CI it
// fails.
func ForTest(t testing.TB, seed uint64) *Lab {
	t.Helper()
	l, err := Open(seed)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("cannot create a network of namespaces: %v", err)
		}
		t.Skipf("SKIPPED: cannot create a network of namespaces; it needs Linux, root, ip and tc: %v", err)
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
