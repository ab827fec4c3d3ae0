package main

import (
	"context"
	"os/exec"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"kumo/internal/lab/synthweb"
)

// servers holds each story's web by its work folder.
var servers sync.Map // string → *synthweb.Server

func serverOf(ts *testscript.TestScript) *synthweb.Server {
	s, ok := servers.Load(ts.Getenv("WORK"))
	if !ok {
		ts.Fatalf("no web is served: use the command web first")
	}
	return s.(*synthweb.Server)
}

func contextOf(ts *testscript.TestScript) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	ts.Defer(cancel)
	return ctx
}

// kumoProgram returns the path of this test binary under the name with which it runs as the command.
func kumoProgram(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("kumo")
	if err != nil {
		t.Fatal(err)
	}
	return path
}
