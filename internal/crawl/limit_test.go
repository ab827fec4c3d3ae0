package crawl

import "testing"

func TestQuota(t *testing.T) {
	q := newQuota(Config{Pages: 3, PagesPerHost: 2}, 0)
	steps := []struct {
		host string
		want room
	}{{"a", granted}, {"a", granted}, {"a", notNow}, {"b", granted}, {"b", notNow}}
	for i, s := range steps {
		if got := q.take(s.host); got != s.want {
			t.Errorf("step %d: %v, want %v", i, got, s.want)
		}
	}
	q.settle("a", false) // no answer: its page is given back
	if got := q.take("a"); got != granted {
		t.Errorf("after a page was given back: %v", got)
	}
	for _, host := range []string{"a", "a"} {
		q.settle(host, true)
	}
	if got := q.take("a"); got != hostUsed {
		t.Errorf("a host that has its pages: %v", got)
	}
	q.settle("b", true)
	if got := q.take("c"); got != used {
		t.Errorf("after all pages: %v", got)
	}
	q = newQuota(Config{PagesPerHost: 2}, 9)
	if q.before("a", 2); q.take("a") != hostUsed || q.take("b") != granted {
		t.Error("a host that had its pages in an earlier run has some left, or another has none")
	}
}
