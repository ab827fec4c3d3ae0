package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestBaselineIsHeld(t *testing.T) {
	recorded := baseline{Ratio: 0.6}
	for _, c := range []struct {
		ratio float64
		fails bool
	}{{0.6, false}, {0.74, false}, {0.3, false}, {0.76, true}, {6, true}} {
		err := baseline{Ratio: c.ratio}.against(recorded)
		if (err != nil) != c.fails {
			t.Errorf("%v: %v", c.ratio, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "0.600") || !strings.Contains(err.Error(), "-renew")) {
			t.Errorf("%v: it does not say what is recorded and what to do: %v", c.ratio, err)
		}
	}
}

func TestBaselineIsReadAsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), baselineName)
	if err := (baseline{Ratio: 0.625}).write(path); err != nil {
		t.Fatal(err)
	}
	if got, err := readBaseline(path); err != nil || got.Ratio != 0.625 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "{}", `{"kumo_by_loop": -1}`} {
		if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readBaseline(path); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if _, err := readBaseline(baselineName); err != nil {
		t.Errorf("the one that is kept: %v", err)
	}
}

func TestRunsThatDidLessAreNoMeasure(t *testing.T) {
	run := func(covered int) result {
		r := result{used: used{cpu: time.Second}}
		r.score.Covered, r.score.Truth = covered, 100
		return r
	}
	if err := wantAll(&duel{kumo: []result{run(100)}, runs: []result{run(100)}}); err != nil {
		t.Error(err)
	}
	if err := wantAll(&duel{kumo: []result{run(100), run(99)}, runs: []result{run(100), run(100)}}); err == nil {
		t.Error("99 of 100 pages are enough")
	}
}
