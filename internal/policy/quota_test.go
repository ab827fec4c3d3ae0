package policy

import "testing"

func TestQuota(t *testing.T) {
	q := NewQuota(3, 2, 0, nil)
	steps := []struct {
		host string
		want Grant
	}{{"a", Granted}, {"a", Granted}, {"a", NotNow}, {"b", Granted}, {"b", NotNow}}
	for i, s := range steps {
		if got := q.Take(s.host); got != s.want {
			t.Errorf("step %d: %v, want %v", i, got, s.want)
		}
	}
	q.Settle("a", false) // no answer: its page is given back
	if got := q.Take("a"); got != Granted {
		t.Errorf("after a page was given back: %v", got)
	}
	for _, host := range []string{"a", "a"} {
		q.Settle(host, true)
	}
	if got := q.Take("a"); got != HostIsFull {
		t.Errorf("a host that has its pages: %v", got)
	}
	q.Settle("b", true)
	if got := q.Take("c"); got != CrawlIsFull {
		t.Errorf("after all pages: %v", got)
	}
	q = NewQuota(0, 2, 9, nil)
	if q.AddEarlier("a", 2); q.Take("a") != HostIsFull || q.Take("b") != Granted {
		t.Error("a host that had its pages in an earlier run has some left, or another has none")
	}
}
