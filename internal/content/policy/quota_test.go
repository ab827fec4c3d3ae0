package policy

import "testing"

func TestQuota(t *testing.T) {
	q := NewQuota(Limits{Pages: 3, PerHost: 2}, 0)
	steps := []struct {
		host string
		want Grant
	}{{"a", Granted}, {"a", Granted}, {"a", NotNow}, {"b", Granted}, {"b", NotNow}}
	for i, s := range steps {
		if got := q.Acquire(s.host, ""); got != s.want {
			t.Errorf("step %d: %v, want %v", i, got, s.want)
		}
	}
	q.Finish("a", "", false) // no response: the page is returned
	if got := q.Acquire("a", ""); got != Granted {
		t.Errorf("after a page was given back: %v", got)
	}
	for _, host := range []string{"a", "a"} {
		q.Finish(host, "", true)
	}
	if got := q.Acquire("a", ""); got != HostIsFull {
		t.Errorf("a host that has its pages: %v", got)
	}
	q.Finish("b", "", true)
	if got := q.Acquire("c", ""); got != CrawlIsFull {
		t.Errorf("after all pages: %v", got)
	}
	q = NewQuota(Limits{PerHost: 2}, 9)
	if q.AddEarlier("a", 2); q.Acquire("a", "") != HostIsFull || q.Acquire("b", "") != Granted {
		t.Error("a host that had its pages in an earlier run has some left, or another has none")
	}
}

// A node that has used its share fetches nothing until it gets more, or a page is returned.
func TestQuotaOfOneNode(t *testing.T) {
	q := NewQuota(Limits{}, 5)
	if q.Acquire("a", "") != Granted || q.ShareUsed() || q.Done() != 5 {
		t.Error("a node without a limit has a share")
	}
	if ceiling := q.SetShare(3); ceiling != 6 || !q.ShareUsed() || q.Acquire("a", "") != ShareIsUsed {
		t.Errorf("a share below what is done and in progress: up to %d pages", ceiling)
	}
	q.Finish("a", "", false)
	if q.ShareUsed() || q.Acquire("a", "") != Granted {
		t.Error("a returned page cannot be fetched")
	}
	q.Finish("a", "", true)
	if ceiling := q.SetShare(7); ceiling != 7 || q.Done() != 6 || q.Acquire("a", "") != Granted || !q.ShareUsed() {
		t.Errorf("a higher share: up to %d pages, %d done", ceiling, q.Done())
	}
	if q.SetShare(-1) >= 0 || q.ShareUsed() {
		t.Error("the limit was removed, but not the share")
	}
}

// The hosts of a registered domain share its pages; a domain without a name has no limit.
func TestQuotaOfDomains(t *testing.T) {
	q := NewQuota(Limits{PerDomain: 2}, 0)
	for _, host := range []string{"a.example.com", "b.example.com"} {
		if got := q.Acquire(host, "example.com"); got != Granted {
			t.Errorf("%s: %v", host, got)
		}
	}
	if got := q.Acquire("c.example.com", "example.com"); got != NotNow {
		t.Errorf("with all under way: %v", got)
	}
	q.Finish("a.example.com", "example.com", false)
	q.Finish("b.example.com", "example.com", true)
	q.AddEarlierOfDomain("example.com", 1)
	if got := q.Acquire("c.example.com", "example.com"); got != DomainIsFull {
		t.Errorf("a domain that has its pages: %v", got)
	}
	for range 3 {
		if got := q.Acquire("c.example.com", ""); got != Granted {
			t.Errorf("without a limit: %v", got)
		}
		q.Finish("c.example.com", "", true)
	}
}
