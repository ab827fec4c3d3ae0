package main

import (
	"kumo/internal/app/setting"
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "500ms": 500 * time.Millisecond, "1h30m": 90 * time.Minute, "1d": 24 * time.Hour, "7d": 7 * 24 * time.Hour,
		"2w": 14 * 24 * time.Hour, "1.5d": 36 * time.Hour, "1d12h": 36 * time.Hour, "1w1d": 8 * 24 * time.Hour,
		"-1s": -time.Second,
	} {
		if got, err := setting.ParseDuration(text); got != want || err != nil {
			t.Errorf("%s is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1", "d", "1 d", "1day", "1dd", "99999999999999d", "1000000w", "x7d", "1e3d"} {
		if got, err := setting.ParseDuration(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}
