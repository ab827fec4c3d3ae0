package main

import (
	"strings"
	"testing"
)

// A printed command reaches the same cluster as the command that printed it.
func TestWhatIsPrintedHasTheSecret(t *testing.T) {
	var out strings.Builder
	c := &clusterFlags{crawl: "commons", join: []string{"127.0.0.81:7270"}, secretFile: "sm"}
	if err := c.printDone(&out, "started"); err != nil {
		t.Fatal(err)
	}
	const want = "commons: started; see: kumo status --crawl commons --join 127.0.0.81:7270 --secret-file sm\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
