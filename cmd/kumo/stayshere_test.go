package main

import "testing"

func TestStaysHere(t *testing.T) {
	for seeds, want := range map[string]bool{
		"http://127.0.0.1:8080/": true, "http://localhost/a": true, "http://x.localhost/": true, "http://[::1]:80/": true,
		"http://127.9.9.9/":   true,
		"http://example.com/": false, "http://10.0.0.1/": false, "http://localhost.example.com/": false, "": false,
	} {
		o := &options{}
		if seeds != "" {
			o.Job.Seeds = []string{seeds}
		}
		if got := o.isLoopbackOnly(); got != want {
			t.Errorf("%q: %v", seeds, got)
		}
	}
	o := &options{}
	if o.Job.Seeds = []string{"http://localhost/", "http://example.com/"}; o.isLoopbackOnly() {
		t.Error("one of two seeds is elsewhere")
	}
}
