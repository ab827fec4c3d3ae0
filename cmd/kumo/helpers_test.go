package main

import (
	"context"
	"os/exec"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"kumo/internal/synthweb"
)

// servers holds each story's web by its work folder.
var servers = map[string]*synthweb.Server{}

func serverOf(ts *testscript.TestScript) *synthweb.Server {
	s := servers[ts.Getenv("WORK")]
	if s == nil {
		ts.Fatalf("no web is served: use the command web first")
	}
	return s
}

func contextOf(ts *testscript.TestScript) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	ts.Defer(cancel)
	return ctx
}

// kumoProgram is this test binary under the name by which it is the command.
func kumoProgram(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("kumo")
	if err != nil {
		t.Fatal(err)
	}
	return path
}
