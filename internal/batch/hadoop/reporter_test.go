package hadoop

import (
	"fmt"
	"strings"
	"testing"

	"kumo/internal/batch"
)

// Hadoop fails a job that counts more than 120 things.
func TestHadoopIsToldFewCounters(t *testing.T) {
	var said strings.Builder
	r := newReporter(&said)
	var counters batch.Counters
	for i := range 50 {
		for j := range 50 {
			counters.Add(fmt.Sprintf("group %d, odd\n", i), fmt.Sprint(j), 2)
		}
	}
	r.counters(&counters)
	r.counters(&counters) // nothing is new
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if len(lines) != maxGroups {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "reporter:counter:kumo,group ") || strings.Count(line, ",") != 2 ||
			!strings.HasSuffix(line, ",100") {
			t.Errorf("%q", line)
		}
	}
	said.Reset()
	r.status("two\nlines " + strings.Repeat("x", 1000))
	if text := said.String(); !strings.HasPrefix(text, "reporter:status:two lines x") || strings.Count(text,
		"\n") != 1 || len(text) > 400 {
		t.Errorf("%q", text)
	}
}
