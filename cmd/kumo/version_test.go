package main

import (
	"runtime"
	"runtime/debug"
	"testing"

	"kumo/internal/app/job"
)

func TestVersionLine(t *testing.T) {
	rest := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
	built := func(settings ...debug.BuildSetting) *debug.BuildInfo { return &debug.BuildInfo{Settings: settings} }
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	day := debug.BuildSetting{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}
	for _, c := range []struct {
		info *debug.BuildInfo
		want string
	}{
		{nil, ""},
		{built(), ""},
		{built(revision, day), "commit 0123456789ab of 2026-01-02, "},
		{built(revision, day, debug.BuildSetting{Key: "vcs.modified", Value: "true"}),
			"commit 0123456789ab of 2026-01-02 with changes, "},
	} {
		if got, want := versionLine(c.info), "kumo "+job.Version+" (protocol 3, "+c.want+rest; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
