package crawl

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/outage"
)

// A checker reaches some hosts, and takes its time for each.
type checker struct {
	Checker
	reaches func(url string) bool
	takes   time.Duration
	asked   atomic.Int32
}

func (c *checker) Check(ctx context.Context, url string) error {
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

// A few hosts are tried first; the crawl is cut off only if none at all is reached, and that is known about as soon as
// that the first are not.
func TestAllHostsAreTriedBeforeTheCrawlIsCutOff(t *testing.T) {
	var targets []string
	for n := range outage.MaxWorked {
		targets = append(targets, siteOrigin(n))
	}
	for _, c := range []struct {
		alive  int // the one host that is reached; -1: none
		takes  time.Duration
		within time.Duration
		asked  int32
	}{
		{alive: 5, takes: 100 * time.Millisecond, within: 100 * time.Millisecond, asked: firstTried},
		{alive: 60, takes: 100 * time.Millisecond, within: 200 * time.Millisecond, asked: outage.MaxWorked},
		{alive: 60, takes: 10 * time.Second, within: 11 * time.Second, asked: outage.MaxWorked},
		{alive: -1, takes: time.Millisecond, within: 2 * time.Millisecond, asked: outage.MaxWorked},
		{alive: -1, takes: 10 * time.Second, within: 11 * time.Second, asked: outage.MaxWorked},
	} {
		t.Run(fmt.Sprintf("%d after %v", c.alive, c.takes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				check := &checker{takes: c.takes, reaches: func(url string) bool {
					return c.alive >= 0 &&
						url == siteOrigin(c.alive)+"/"
				}}
				began := time.Now()
				err := (&line{check: check}).reachAny(t.Context(), targets, outage.ByConnection, false)
				if took := time.Since(began); (err == nil) != (c.alive >= 0) || took != c.within || check.asked.Load() != c.asked {
					t.Errorf("%v after %v, %d were tried; want %v, %d", err, took, check.asked.Load(), c.within, c.asked)
				}
			})
		})
	}
}

func siteOrigin(n int) string { return fmt.Sprintf("http://site%d.example", n) }
