package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/state/seen"
)

// A kumo is kumo's URL database with two goroutines, one for merges and one for compactions.
type kumo struct {
	cfg     config
	db      *seen.DB
	urls    []seen.URL
	news    []seen.News
	counts  [4]int // by result
	late    int    // results delivered by merges
	pos     uint64
	frozen  chan bool // to the merging goroutine
	merged  chan error
	grown   chan bool // to the compacting goroutine
	compact chan error
	working atomic.Int32
	waited  time.Duration
}

func openKumo(cfg config) (database, error) {
	db, err := seen.Open(vfs.OS, cfg.dir, seen.Config{Memory: cfg.memory, Ratio: cfg.ratio, Share: cfg.share})
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

// freeze waits for the last merge and starts another.
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
	return errors.Join(k.db.DecideAll(context.Background(), k.hear), k.merge(), <-k.compact)
}

// merge writes the entries of the last decisions.
func (k *kumo) merge() error {
	k.db.Freeze(k.pos)
	return k.db.Merge(context.Background(), k.hear)
}

func (k *kumo) report() error {
	st := k.db.Stats()
	known := float64(k.db.Len())
	fmt.Printf("known                     %d; at once %d fresh, %d repeats; later %d, %d of them fresh\n",
		k.db.Len(), k.counts[seen.Fresh], k.counts[seen.Nothing], k.counts[seen.Undecided], k.late)
	fmt.Printf("on disk                   %.1f bytes a URL, %d files, %d merges, waited %.1f s for them\n",
		float64(st.Disk)/known, st.Runs, st.Merges, k.waited.Seconds())
	fmt.Printf("memory beyond the budget  %.2f bytes a URL for filters and indexes\n", float64(st.Memory)/known)
	if k.cfg.fetched {
		return k.fetch()
	}
	return nil
}

// fetch records a visit for each URL, in parts that fit into memory, and then merges as far as the tiers require.
func (k *kumo) fetch() error {
	dice, n := rand.New(rand.NewPCG(k.cfg.seed, 2)), 0
	for e, err := range k.db.Scan("") {
		if err != nil {
			return err
		}
		k.db.UpdateMeta(e.URL, visit(dice, n))
		if n++; k.db.Full() {
			if err := k.merge(); err != nil {
				return err
			}
			if err := k.tidy(); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(k.merge(), k.tidy()); err != nil {
		return err
	}
	st := k.db.Stats()
	fmt.Printf("on disk, fetched          %.1f bytes a URL, %d files, %.2f entries a URL\n",
		float64(st.Disk)/float64(n), st.Runs, float64(st.Entries)/float64(n))
	return nil
}

func (k *kumo) tidy() (err error) {
	for more := true; more && err == nil; {
		more, err = k.db.Compact(context.Background())
	}
	return err
}

// visit returns the data of the n-th visit, ten visits per second. Digests and ETags do not compress; half of the pages
// have an ETag, half a date, nine in ten have status 200.
func visit(dice *rand.Rand, n int) seen.Meta {
	now := time.Now().Add(time.Duration(n) * time.Second / 10)
	m := seen.Meta{Fetched: now, Due: now.Add(time.Duration(dice.IntN(1e6)) * time.Second), Status: 200,
		Changes: dice.IntN(3)}
	for i := range m.Digest {
		m.Digest[i] = byte(dice.Uint32())
	}
	if dice.IntN(10) == 0 {
		m.Status = 404
	}
	if dice.IntN(2) == 0 {
		m.ETag = fmt.Sprintf(`"%x-%x"`, dice.Uint32N(1<<18), dice.Uint64N(1<<52))
	}
	if dice.IntN(2) == 0 {
		m.Modified = now.Add(-time.Duration(dice.IntN(1e8)) * time.Second)
	}
	return m
}

func (k *kumo) close() error { return k.db.Close() }
