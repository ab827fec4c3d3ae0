package plan

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"
)

// Assumptions are the inputs of an estimate other than the plan: sizes and times of pages, and the crawl's settings.
type Assumptions struct {
	PageBytes int64         `json:"page_bytes"` // per page, over the wire
	DiskBytes int64         `json:"disk_bytes"` // per page, all files together
	BytesFrom string        `json:"from"`       // source of these two numbers
	Answer    time.Duration `json:"-"`          // time of an answer, for hosts that have given none

	Hosts     int           `json:"-"` // visited at once
	PerHost   int           `json:"-"`
	AddrDelay time.Duration `json:"-"`
	Rate      float64       `json:"-"` // requests per second; 0: unlimited
	Bandwidth int64         `json:"-"` // bytes per second; 0: unlimited
	Pages     int64         `json:"-"` // limits; 0: unlimited
	Bytes     int64         `json:"-"`
	Time      time.Duration `json:"-"`
}

// Defaults without an earlier crawl. Pages of the web at large have some 30 kB as transferred, compressed, and take as
// much in a WARC file, which stores them as transferred. Lines in logs, lists and the index, and the crawl's state,
// take 2 kB more.
const (
	DefaultPageBytes = 30_000
	DefaultDiskBytes = 32_000
	DefaultAnswer    = 300 * time.Millisecond
)

// A Sum is the total of a plan.
type Sum struct {
	Hosts     int `json:"hosts"`
	Reached   int `json:"reached"`   // of these, hosts that have answered
	Forbidden int `json:"forbidden"` // hosts that do not allow any seed
	Unknown   int `json:"unknown"`   // hosts with an unknown number of pages

	Pages   int64   `json:"pages"` // of hosts with a known number, within the limits
	Bytes   int64   `json:"bytes"`
	Disk    int64   `json:"disk_bytes"`
	Seconds float64 `json:"seconds"` // lower bound
	By      string  `json:"by"`      // host or setting that determines the duration
	Limit   string  `json:"limit,omitempty"`

	// number of concurrent hosts with which no host waits for another
	Concurrency int         `json:"concurrency_enough"`
	Assumed     Assumptions `json:"assumed"`
}

// Estimate estimates the duration of each host and the totals, and sorts the hosts by duration, the longest first.
func (p *Plan) Estimate(a Assumptions) {
	a.PageBytes, a.DiskBytes = cmp.Or(a.PageBytes, DefaultPageBytes), cmp.Or(a.DiskBytes, DefaultDiskBytes)
	a.Answer, a.Hosts, a.PerHost = cmp.Or(a.Answer, DefaultAnswer), max(a.Hosts, 1), max(a.PerHost, 1)
	s := Sum{Hosts: len(p.Hosts), Assumed: a}
	for i := range p.Hosts {
		h := &p.Hosts[i]
		if h.Answer == 0 {
			h.Answer = a.Answer.Seconds()
		}
		switch h.Allowed {
		case No:
			s.Forbidden++
			s.Reached++
		case NoReply:
		default:
			s.Reached++
		}
		if h.Pages == nil {
			s.Unknown++
			continue
		}
		seconds := float64(*h.Pages) * h.each(a.PerHost)
		h.Bytes, h.Seconds = *h.Pages*a.PageBytes, &seconds
		s.Pages += *h.Pages
	}
	slices.SortStableFunc(p.Hosts, slowerFirst)
	s.limit(p.Hosts, a)
	s.Bytes, s.Disk = s.Pages*a.PageBytes, s.Pages*a.DiskBytes
	s.Concurrency = concurrencyFor(p.Hosts, a)
	p.Sum = s
}

// each returns how many seconds of the host's time a page takes. The delay begins at the end of an answer, or, with
// several connections, at the beginning of a request.
func (h *Host) each(perHost int) float64 {
	if perHost > 1 {
		return max(h.Delay, h.Answer/float64(perHost))
	}
	return h.Delay + h.Answer
}

// slowerFirst orders hosts by duration, the longest first. Hosts of unknown duration are before those that take no
// time.
func slowerFirst(a, b Host) int {
	rank := func(h *Host) float64 {
		if h.Seconds == nil {
			return 0.5e-9
		}
		return *h.Seconds
	}
	return cmp.Or(cmp.Compare(rank(&b), rank(&a)), cmp.Compare(a.Host, b.Host))
}

// limit computes the pages of the crawl within its limits, the least time that they take, and what determines it.
func (s *Sum) limit(hosts []Host, a Assumptions) {
	s.Seconds, s.By = longest(hosts, s.Pages, a)
	most, name := int64(math.MaxInt64), ""
	if a.Pages > 0 {
		most, name = a.Pages, "--limit"
	}
	if n := a.Bytes / a.PageBytes; a.Bytes > 0 && n < most {
		most, name = max(n, 1), "--size-limit"
	}
	if name != "" && (s.Pages > most || s.Unknown > 0) {
		if s.Unknown > 0 && s.Pages < most {
			s.Limit = fmt.Sprintf("%s, if the hosts of unknown size have as many", name)
		} else {
			s.Limit = name
		}
		s.Pages = most
		s.Seconds, s.By = untilPages(hosts, most, a), s.Limit
	}
	if limit := a.Time.Seconds(); a.Time > 0 && (limit < s.Seconds || s.Unknown > 0 && name == "") {
		s.Pages = min(s.Pages, int64(pagesWithin(hosts, limit, a)))
		s.Seconds, s.By, s.Limit = limit, "--time-limit", "--time-limit"
	}
}

// longest returns the least time for the given pages, and what determines it.
func longest(hosts []Host, pages int64, a Assumptions) (seconds float64, by string) {
	consider := func(t float64, what string) {
		if t > seconds {
			seconds, by = t, what
		}
	}
	work := 0.0
	addresses := map[netip.Addr]int64{}
	sharing := map[netip.Addr]int{}
	for i := range hosts {
		h := &hosts[i]
		if h.Pages == nil || *h.Pages == 0 {
			continue
		}
		consider(*h.Seconds, h.Host)
		work += float64(*h.Pages) * h.Answer
		if h.addr.IsValid() {
			addresses[h.addr] += *h.Pages
			sharing[h.addr]++
		}
	}
	for addr, n := range addresses {
		if sharing[addr] > 1 {
			consider(float64(n)*a.AddrDelay.Seconds(),
				fmt.Sprintf("%d hosts at %s (--ip-delay)", sharing[addr], addr))
		}
	}
	consider(work/float64(a.Hosts*a.PerHost), "--concurrency")
	if a.Rate > 0 {
		consider(float64(pages)/a.Rate, "--max-rate")
	}
	if a.Bandwidth > 0 {
		consider(float64(pages*a.PageBytes)/float64(a.Bandwidth), "--bandwidth")
	}
	return seconds, by
}

// pagesWithin returns how many pages can be fetched in a time; hosts of unknown size are taken to have enough.
func pagesWithin(hosts []Host, seconds float64, a Assumptions) float64 {
	n, work := 0.0, 0.0
	for i := range hosts {
		h := &hosts[i]
		most := math.Inf(1)
		if h.Pages != nil {
			most = float64(*h.Pages)
		}
		have := most
		if each := h.each(a.PerHost); each > 0 {
			have = min(most, seconds/each)
		}
		n += have
		work += have * h.Answer
	}
	if room := seconds * float64(a.Hosts*a.PerHost); work > room && work > 0 {
		n *= room / work
	}
	if a.Rate > 0 {
		n = min(n, seconds*a.Rate)
	}
	if a.Bandwidth > 0 {
		n = min(n, seconds*float64(a.Bandwidth)/float64(a.PageBytes))
	}
	return n
}

// untilPages returns the least time until the given number of pages is fetched.
func untilPages(hosts []Host, pages int64, a Assumptions) float64 {
	low, high := 0.0, 1.0
	for pagesWithin(hosts, high, a) < float64(pages) && high < 1e12 {
		high *= 2
	}
	for range 60 {
		if middle := (low + high) / 2; pagesWithin(hosts, middle, a) < float64(pages) {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// concurrencyFor returns how many hosts have a request under way at once while all have pages left, plus a quarter.
func concurrencyFor(hosts []Host, a Assumptions) int {
	n := 0.0
	for i := range hosts {
		h := &hosts[i]
		if h.Pages != nil && *h.Pages == 0 {
			continue
		}
		if each := h.each(a.PerHost); each > 0 {
			n += min(1, h.Answer/each)
		}
	}
	return max(1, int(math.Ceil(n*1.25)))
}
