package mesh

import (
	"bytes"
	"testing"
)

// However many nodes there are, their reports fit into a message.
func TestReportsAreBounded(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 10, 500, MaxReportBytes} {
		var sum Tally
		for range 300 {
			sum.add(Tally{Nodes: 1, Reports: [][]byte{make([]byte, size)}})
		}
		want := MaxReports
		if size > 0 {
			want = min(want, MaxReportBytes/size)
		}
		if n := len(bytes.Join(sum.Reports, nil)); sum.Nodes != 300 || len(sum.Reports) != want || n > MaxReportBytes {
			t.Errorf("of 300 reports of %d bytes there are %d, of %d bytes, want %d", size, len(sum.Reports), n, want)
		}
	}
}
