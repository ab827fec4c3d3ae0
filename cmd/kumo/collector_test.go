package main

import "testing"

func TestGarbageFor(t *testing.T) {
	for live, want := range map[uint64]int{0: 30, 128 << 20: 30, 320 << 20: 65, 512 << 20: 100, 1 << 40: 100} {
		if got := garbageFor(live); got != want {
			t.Errorf("of %d bytes that live: %d %%, want %d", live, got, want)
		}
	}
}
