package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"kumo/internal/seen"
	"kumo/internal/vfs"
)

// A kumo is the URL database with one goroutine that merges and one that compacts.
type kumo struct {
	cfg     config
	db      *seen.DB
	urls    []seen.URL
	news    []seen.News
	counts  [4]int // of each news
	late    int    // news told by merges
	pos     uint64
	frozen  chan bool // to the one who merges
	merged  chan error
	grown   chan bool // to the one who compacts
	compact chan error
	working atomic.Int32
	waited  time.Duration
}

func openKumo(cfg config) (database, error) {
	db, err := seen.Open(vfs.OS, cfg.dir, seen.Config{Memory: cfg.memory, Ratio: cfg.ratio})
	if err != nil {
		return nil, err
	}
	k := &kumo{cfg: cfg, db: db, urls: make([]seen.URL, cfg.batch), frozen: make(chan bool), merged: make(chan error, 1),
		grown: make(chan bool, 1), compact: make(chan error, 1)}
	k.merged <- nil
	go k.merging()
	go k.compacting()
	return k, nil
}

func (k *kumo) offer(urls []string) error {
	for i, u := range urls {
		k.urls[i] = seen.URL{URL: u, State: seen.Known, Payload: k.urls[i].Payload}
		if k.cfg.payload > len(k.urls[i].Payload) {
			k.urls[i].Payload = make([]byte, k.cfg.payload)
		}
	}
	k.news = k.db.Offer(k.urls, k.news[:0])
	for _, n := range k.news {
		k.counts[n]++
	}
	return nil
}

func (k *kumo) tend() error {
	if k.db.Full() {
		return k.freeze()
	}
	return nil
}

// freeze waits for the merge before and begins another.
func (k *kumo) freeze() error {
	begin := time.Now()
	if err := <-k.merged; err != nil {
		return err
	}
	k.waited += time.Since(begin)
	k.pos++
	k.db.Freeze(k.pos)
	k.working.Add(1)
	k.frozen <- true
	return nil
}

func (k *kumo) merging() {
	for range k.frozen {
		err := k.db.Merge(context.Background(), k.hear)
		k.working.Add(-1)
		select {
		case k.grown <- true:
		default:
		}
		k.merged <- err
	}
	close(k.grown)
}

func (k *kumo) hear(all []seen.Decided) error {
	k.late += len(all)
	return nil
}

func (k *kumo) compacting() {
	var err error
	for range k.grown {
		k.working.Add(1)
		for more := true; more && err == nil; {
			more, err = k.db.Compact(context.Background())
		}
		k.working.Add(-1)
	}
	k.compact <- err
}

func (k *kumo) busy() bool { return k.working.Load() > 0 }

func (k *kumo) finish() error {
	if err := k.freeze(); err != nil {
		return err
	}
	if err := <-k.merged; err != nil {
		return err
	}
	close(k.frozen)
	return errors.Join(k.db.Settle(context.Background(), k.hear), k.merge(), <-k.compact)
}

// merge writes what the last decisions have brought.
func (k *kumo) merge() error {
	k.db.Freeze(k.pos)
	return k.db.Merge(context.Background(), k.hear)
}

func (k *kumo) report() error {
	st := k.db.Stats()
	known := float64(k.db.Len())
	fmt.Printf("known                     %d; at once %d fresh, %d repeats; later %d, %d of them fresh\n",
		k.db.Len(), k.counts[seen.Fresh], k.counts[seen.Nothing], k.counts[seen.Later], k.late)
	fmt.Printf("on disk                   %.1f bytes a URL, %d files, %d merges, waited %.1f s for them\n",
		float64(st.Disk)/known, st.Runs, st.Merges, k.waited.Seconds())
	fmt.Printf("memory beyond the budget  %.2f bytes a URL for filters and indexes\n", float64(st.Memory)/known)
	return nil
}

func (k *kumo) close() error { return k.db.Close() }
