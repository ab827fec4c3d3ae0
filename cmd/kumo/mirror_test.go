package main

import (
	"path/filepath"
	"testing"
)

// The folder of a mirror is named after its host, readably for an IPv6 address, too.
func TestMirrorPlace(t *testing.T) {
	for url, want := range map[string]string{"https://example.com:81/x": "example.com",
		"http://[2001:db8::1]:81/": "ipv6-2001-db8-0-1"} {
		if _, dir, err := mirrorPlace([]string{url}); err != nil || dir != filepath.Join("mirrors", want) {
			t.Errorf("%s: %q, %v", url, dir, err)
		}
	}
}
