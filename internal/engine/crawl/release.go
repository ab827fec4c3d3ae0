package crawl

import (
	"context"
	"sync"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/content/cookies"
)

// ReleaseHosts gives up hosts that are not this node's any more, and drops their pending URLs. It calls given for each
// host, with the delay that it asks for and the rest of its current delay, once no visit to it is under way, its
// finished URLs are reported (Parts.Finished), the links of its pages are claimed, and all this is durable. It needs a
// Run to commit.
func (ds *Dispatches) ReleaseHosts(ctx context.Context, hosts []string,
	given func(host string, asked, wait time.Duration)) error {
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	ds.workers.release(hosts)
	busy := ds.workers.busy(hosts)
	settled := make(chan string, len(hosts))
	var ready []string
	for _, host := range hosts {
		if busy[host] == nil && !ds.claims.hasUnreported(host) {
			ready = append(ready, host)
			continue
		}
		waiting.Go(func() {
			if ds.awaitIdle(ctx, host, busy[host]) == nil {
				settled <- host
			}
		})
	}
	for left := len(hosts); left > 0; {
		for len(ready) == 0 || len(settled) > 0 {
			select {
			case host := <-settled:
				ready = append(ready, host)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := ds.releaseIdle(ctx, ready, given); err != nil {
			return err
		}
		left, ready = left-len(ready), ready[:0]
	}
	return nil
}

// awaitIdle waits until no visit to a host is under way and its finished URLs are reported. over is the end of a visit,
// nil if there is none.
func (ds *Dispatches) awaitIdle(ctx context.Context, host string, over <-chan struct{}) error {
	for over != nil {
		select {
		case <-over:
		case <-ctx.Done():
			return ctx.Err()
		}
		over = ds.workers.busy([]string{host})[host] // a visit to its robots.txt may run beside it
	}
	return ds.claims.awaitReported(ctx, host)
}

// releaseIdle releases hosts without visits under way.
func (ds *Dispatches) releaseIdle(ctx context.Context, hosts []string,
	given func(host string, asked, wait time.Duration)) error {
	type owed struct{ asked, wait time.Duration }
	owes := make([]owed, len(hosts))
	ds.claims.tenureLock.Lock()
	defer ds.claims.tenureLock.Unlock()
	for k, host := range hosts {
		if i, met := ds.frontier.Host(host); met {
			owes[k] = owed{i.RequestedDelay, i.Next.Sub(ds.cfg.Now())}
		}
	}
	err := ds.transfer.Release(ctx, hosts, func(part []string) {
		for _, host := range part {
			ds.claims.tenures.End(host)
		}
	})
	if err == nil {
		for k, host := range hosts {
			given(host, owes[k].asked, owes[k].wait)
		}
	}
	return err
}

// ImportDelay applies the delays of a host that another node has released: it is not visited for wait, and asked is the
// delay that it asks for. Neither makes the host's current delays shorter.
func (ds *Dispatches) ImportDelay(host string, asked, wait time.Duration) {
	i, _ := ds.frontier.Host(host)
	ds.frontier.Import(host, max(asked, i.RequestedDelay), wait)
}

// HostCookies returns the cookies that servers have set for a host or slice, for AddCookies of another node's engine:
// all or some, up to most bytes. Those of logins and configured ones are not among them.
func (ds *Dispatches) HostCookies(host string, most int) []byte {
	return ds.cookies.AppendHost(nil, hostnameOf(host), most, ds.cfg.Now())
}

// AddCookies adds the HostCookies of another node, which are not trusted. It may wait for the journal, to which the next
// commit writes them.
func (ds *Dispatches) AddCookies(host string, data []byte) error {
	return ds.cookies.ImportHost(data, hostnameOf(host), ds.cfg.Now())
}

func hostnameOf(slice string) string { return cookies.HostOf(item.HostOfSlice(slice)) }

// QueuedHosts calls f with each host that has URLs to fetch. It is called before Run.
func (ds *Dispatches) QueuedHosts(f func(host string) error) error {
	all := ds.frontier.Iterate(func(string) bool { return true })
	defer all.Close()
	for {
		host, err := all.Next()
		if host == nil || err != nil {
			return err
		}
		it, err := host.Next() // nil if there is only another host's robots.txt
		if it != nil && err == nil {
			err = f(host.Key)
		}
		if err != nil {
			return err
		}
	}
}

// HasWork reports whether a host has URLs that are pending, under way, or fetched and not reported.
func (ds *Dispatches) HasWork(host string) bool {
	i, _ := ds.frontier.Host(host)
	return i.Pending > 0 || i.Active > 0 || ds.claims.hasUnreported(host)
}
