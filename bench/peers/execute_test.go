package main

import (
	"testing"
	"time"
)

func TestExecute(t *testing.T) {
	dir := t.TempDir()
	u, stopped, err := execute(t.Context(), []string{"sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"}, dir,
		nil, time.Minute)
	if err != nil || stopped || u.cpu <= 0 || u.wall < u.cpu/2 || u.rss < 100_000 {
		t.Errorf("%+v, stopped %v, %v", u, stopped, err)
	}
	if _, stopped, err = execute(t.Context(), []string{"sleep", "100"}, dir, nil, 20*time.Millisecond); !stopped ||
		err != nil {
		t.Errorf("what takes too long: stopped %v, %v", stopped, err)
	}
	_, stopped, err = execute(t.Context(), []string{"sh", "-c", "echo no luck >&2; exit 3"}, dir, nil, 0)
	if err == nil || stopped || err.Error() != "exit status 3\nno luck" {
		t.Errorf("what fails: stopped %v, %v", stopped, err)
	}
}
