package crawllog

import (
	"bytes"
	"testing"

	"kumo/internal/state/store/storetest"
)

func TestLinesComeBack(t *testing.T) {
	for n := range 20 {
		rec := storetest.Record(n)
		line := bytes.TrimSuffix(appendRecord(nil, rec), []byte("\n"))
		e, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if e.URL != rec.URL || e.Seed != rec.Seed || e.Via != rec.From || e.Status != int(status(rec)) ||
			e.Begin.UnixMilli() != rec.Time.UnixMilli() {
			t.Errorf("%s came back as %+v", line, e)
		}
		for i := range line {
			if _, err := Parse(line[:i]); err == nil && i < len(line)-1 && line[i] == ' ' {
				t.Errorf("%q is taken for a line", line[:i])
			}
		}
	}
}
