//go:build linux

package main

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// TestSieges is the long form of TestSiege: each attack from 150 hosts at once, then all together, with and without
// main texts. KUMO_TEST_SIEGE=1 runs it, and KUMO_TEST_SIEGE=NAME one attack of it.
func TestSieges(t *testing.T) {
	which := os.Getenv("KUMO_TEST_SIEGE")
	if which == "" {
		t.Skip("KUMO_TEST_SIEGE is not set")
	}
	span := 20 * time.Second
	if d, err := time.ParseDuration(os.Getenv("KUMO_TEST_SPAN")); err == nil {
		span = d
	}
	for _, a := range attacks {
		if which == "1" || which == a.name {
			t.Run(a.name, func(t *testing.T) {
				for _, c := range []struct {
					memory int64
					flags  []string
				}{{256, nil}, {64, []string{"--text"}}} {
					if only := os.Getenv("KUMO_TEST_MEMORY"); only != "" && only != fmt.Sprint(c.memory) {
						continue
					}
					judge(t, besiege(t, serveHostile(t, 150, false, a), fmt.Sprint(c.memory, "MB"), 200, span, c.flags...), c.memory)
				}
			})
		}
	}
	if which == "1" || which == "all" {
		for _, secure := range []bool{false, true} {
			for _, memory := range []int64{256, 64} {
				for _, flags := range [][]string{nil, {"--text"}} {
					t.Run(fmt.Sprintf("all/TLS %v/%d MB %v", secure, memory, flags), func(t *testing.T) {
						web := serveHostile(t, 6, secure, attacks...)
						judge(t, besiege(t, web, fmt.Sprint(memory, "MB"), 200, 3*span, flags...), memory)
					})
				}
			}
		}
	}
}

func judge(t *testing.T, s siege, memory int64) {
	t.Helper()
	if most := bound(memory); s.peak > most {
		t.Errorf("--memory %dMB: peak %d MB, want %d at most", memory, s.peak, most)
	}
}
