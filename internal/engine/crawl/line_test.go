package crawl

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/state/outage"
)

// A checker reaches some hosts, each after some time.
type checker struct {
	Checker
	reaches func(url string) bool
	fixed   string       // the hostname that needs no look-up
	known   string       // the hostname that was looked up
	found   atomic.Int64 // Unix nanoseconds
	takes   time.Duration
	asked   atomic.Int32
}

func (c *checker) CheckHost(ctx context.Context, url string) error {
	c.asked.Add(1)
	select {
	case <-time.After(c.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.reaches(url) {
		return nil
	}
	return errors.New("refused")
}

func (c *checker) CheckName(ctx context.Context, hostname string) error {
	return c.CheckHost(ctx, hostname)
}

func (c *checker) Route(url string) (looksUp, proxied bool) {
	return item.HostnameOf(item.HostOf(url)) != c.fixed, false
}

func (c *checker) IsNameCached(hostname string) bool { return hostname == c.known }

func (c *checker) LastFound() time.Time { return time.Unix(0, c.found.Load()) }

func (*checker) ForgetFailures() {}

func (*checker) Exhaustion() (times int64, last string) { return 0, "" }

// offline returns an engine whose checks reach nothing, in an outage of a layer.
func offline(t *testing.T, check *checker, by outage.Layer) *Engine {
	t.Helper()
	check.reaches = func(string) bool { return false }
	e := &Engine{outages: &outageMonitor{cfg: &Config{Now: time.Now}, listener: Tee(Listener{}, Listener{}), check: check,
		wake: make(chan struct{}, 1)}}
	for n := range 3 {
		e.outages.worked(time.Now(), siteOrigin(n), uint64(n))
	}
	time.Sleep(time.Minute)
	for n := range 3 {
		e.outages.failed(&outage.FailedVisit{At: time.Now(), Origin: e.outages.origin(siteOrigin(n), uint64(n)), Layer: by, AnsweredBefore: true})
	}
	if _, held := e.outages.blocks(siteOrigin(0) + "/"); held || e.outages.shut() {
		t.Error("a host is held back by a mere doubt")
	}
	go e.outages.keepChecking(t.Context())
	time.Sleep(3 * time.Second)
	if !e.Outage().Offline {
		t.Fatal("no outage")
	}
	return e
}

// During an outage a few visits are made after each check. Any answer ends the outage, even from a host that the checks
// do not use.
func TestAVisitCanEndAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := offline(t, &checker{}, outage.LayerConnection)
		const alive = 40 // the visit that is answered
		began, visits := time.Now(), 0
		for n := 100; e.Outage().Offline && time.Since(began) < time.Hour; n++ {
			e.outages.await(t.Context())
			origin := siteOrigin(n)
			if _, held := e.outages.blocks(origin + "/"); held {
				continue
			}
			if visits++; visits == alive {
				e.outages.worked(time.Now(), origin, uint64(n))
				break
			}
			if _, off := e.outages.failed(&outage.FailedVisit{At: time.Now(), Origin: e.outages.origin(origin, uint64(n)),
				Layer: outage.LayerConnection}); !off {
				t.Fatal("a failure during an outage counts")
			}
		}
		synctest.Wait()
		o := e.Outage()
		if took := time.Since(began); o.Offline || visits != alive || took < alive/probeVisits*time.Second ||
			took > alive/probeVisits*30*time.Second || o.Times != 1 || o.Total < took {
			t.Errorf("after %v and %d visits: %+v", time.Since(began), visits, o)
		}
		if e.outages.shut() {
			t.Error("it is over, and no visit is made")
		}
	})
}

func TestHostsThatNeedNoLookUpAreVisitedWhileNamesAreNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check := &checker{fixed: "fixed.example", known: "known.example"}
		e := offline(t, check, outage.LayerDNS)
		for range 2 * probeVisits { // let the permitted visits through
			e.outages.blocks(siteOrigin(9) + "/")
		}
		for host, want := range map[string]bool{"fixed.example": false, "known.example": false, "site9.example": true} {
			wait, held := e.outages.blocks("http://" + host + "/page")
			if held != want || held && (wait < time.Second || wait > 30*time.Second) {
				t.Errorf("%s is held back: %v, for %v", host, held, wait)
			}
		}
		if e.outages.shut() {
			t.Error("no visit is made at all")
		}
		time.Sleep(time.Second)
		e.outages.worked(time.Now(), "http://fixed.example", 7)
		if !e.Outage().Offline {
			t.Error("a host that needs no look-up proves that names are found")
		}
		check.found.Store(time.Now().UnixNano())
		e.outages.worked(time.Now(), "http://fixed.example", 7)
		if e.Outage().Offline {
			t.Error("a name was found")
		}
	})
}

// A few hosts are tried first. The crawl is offline only if no host at all is reached, and this is found out about as
// fast as for the first hosts alone.
func TestAllHostsAreTriedBeforeTheCrawlIsCutOff(t *testing.T) {
	var targets []string
	for n := range outage.MaxTargets {
		targets = append(targets, siteOrigin(n))
	}
	for _, c := range []struct {
		alive  int // the reachable host; -1: none
		takes  time.Duration
		within time.Duration
		asked  int32
	}{
		{alive: 5, takes: 100 * time.Millisecond, within: 100 * time.Millisecond, asked: firstProbed},
		{alive: 70, takes: 100 * time.Millisecond, within: 200 * time.Millisecond, asked: outage.MaxTargets},
		{alive: 70, takes: 10 * time.Second, within: 11 * time.Second, asked: outage.MaxTargets},
		{alive: -1, takes: time.Millisecond, within: 2 * time.Millisecond, asked: outage.MaxTargets},
		{alive: -1, takes: 10 * time.Second, within: 11 * time.Second, asked: outage.MaxTargets},
	} {
		t.Run(fmt.Sprintf("%d after %v", c.alive, c.takes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				check := &checker{takes: c.takes, reaches: func(url string) bool {
					return c.alive >= 0 &&
						url == siteOrigin(c.alive)+"/"
				}}
				began := time.Now()
				err := (&outageMonitor{check: check}).reachAny(t.Context(), targets, outage.LayerConnection, false)
				if took := time.Since(began); (err == nil) != (c.alive >= 0) || took != c.within || check.asked.Load() != c.asked {
					t.Errorf("%v after %v, %d were tried; want %v, %d", err, took, check.asked.Load(), c.within, c.asked)
				}
			})
		})
	}
}

func siteOrigin(n int) string { return fmt.Sprintf("http://site%d.example", n) }
