package hostlease

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// Config configures a Keeper.
type Config struct {
	Name   string // of the node, unique in the cluster
	Timing Timing

	// Entries is the registry of processes, which can be watched. Records is that of hosts.
	Entries, Records bus.Registry
	// Connect returns the messenger of an identity, which the Keeper closes.
	Connect func(strategy.Node) (bus.Messenger, error)
	// Log logs an event, or with an error, a failure that is retried.
	Log func(text string, err error)
}

// A Keeper runs a Machine for a process. Its methods are safe for concurrent use.
type Keeper struct {
	cfg  Config
	wake chan struct{}

	mu      sync.Mutex // guards the fields below
	machine *Machine
	id      strategy.Node
	net     bus.Messenger // nil before Run
	work    []Action      // to be executed by the workers
	more    *sync.Cond    // for work, and for the end
	ended   bool
	expired map[string]func() // by crawl: called when the process's lease has ended
}

// NewKeeper returns a keeper, which works while Run does.
func NewKeeper(cfg Config) *Keeper {
	k := &Keeper{cfg: cfg, wake: make(chan struct{}, 1), expired: map[string]func(){}}
	k.more = sync.NewCond(&k.mu)
	k.id = k.newIdentity()
	k.machine = New(string(k.id), cfg.Timing)
	return k
}

func (k *Keeper) newIdentity() strategy.Node {
	return strategy.Node(fmt.Sprintf("%s~%08x", k.cfg.Name, rand.Uint32()))
}

// Acquire is Machine.Acquire.
func (k *Keeper) Acquire(crawl, host string, delay time.Duration) (Lease, time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l, retry := k.machine.Acquire(time.Now(), crawl, host, delay)
	k.collect()
	return l, retry
}

// End is Machine.End.
func (k *Keeper) End(l Lease, wait time.Duration, requested bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.machine.End(time.Now(), l, wait, requested)
	k.collect()
}

// Activate adds a crawl. expired is called, in a goroutine of its own, when the process's lease has ended: requests
// under way must be canceled.
func (k *Keeper) Activate(crawl string, expired func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expired[crawl] = expired
	k.machine.Activate(time.Now(), crawl)
	k.collect()
}

// Deactivate removes a crawl without visits under way.
func (k *Keeper) Deactivate(crawl string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.expired, crawl)
	k.machine.Deactivate(time.Now(), crawl)
	k.collect()
}

// Frontiers returns the number of frontiers in all processes: one for each process and crawl.
func (k *Keeper) Frontiers() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.machine.Frontiers()
}

// Counters returns the counts since the start.
func (k *Keeper) Counters() Counters {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.machine.Counters()
}

// collect moves the machine's actions to the workers. k.mu is held.
func (k *Keeper) collect() {
	if out := k.machine.Actions(); len(out) > 0 {
		k.work = enqueue(k.work, out)
		k.more.Broadcast()
	}
	if k.machine.Lost() {
		wait.Wake(k.wake)
	}
}

// enqueue adds actions. A renewal of the process's own lease goes first: the lease would end while the records of many
// hosts are written. There is at most one renewal at a time.
func enqueue(work, more []Action) []Action {
	for _, a := range more {
		if _, renews := a.(PutEntry); renews {
			work = slices.Insert(work, 0, a)
		} else {
			work = append(work, a)
		}
	}
	return work
}

func (k *Keeper) step(e Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.machine.Step(time.Now(), e)
	k.collect()
}

const (
	tickInterval = 200 * time.Millisecond
	workers      = 32 // concurrent requests to the registries
	endPatience  = 2 * time.Second
)

// Run keeps the leases until ctx ends. Visits must be over by then.
func (k *Keeper) Run(ctx context.Context) error {
	for {
		lost, err := k.runIdentity(ctx)
		if !lost {
			return err
		}
		k.cfg.Log("host leases expired: this node did not renew its lease in time; it acquires new ones", nil)
		k.mu.Lock()
		k.id = k.newIdentity()
		k.machine.Restart(string(k.id))
		k.work = nil
		k.mu.Unlock()
	}
}

// runIdentity runs the machine under one identity. It reports whether the process's entry was deleted.
func (k *Keeper) runIdentity(ctx context.Context) (lost bool, err error) {
	net, err := k.cfg.Connect(k.id)
	if err != nil {
		return false, err
	}
	k.mu.Lock()
	k.net, k.ended = net, false
	k.mu.Unlock()
	during, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { k.watch(during) })
	all.Go(func() { k.receive(during, net) })
	for range workers {
		all.Go(func() { k.execute(during) })
	}
	lost = k.tick(during)
	stop()
	k.mu.Lock()
	k.ended = true
	k.more.Broadcast()
	k.mu.Unlock()
	all.Wait()
	if !lost {
		k.withdraw(context.WithoutCancel(ctx))
	}
	return lost, net.Close()
}

// tick passes time until the entry is lost or ctx ends.
func (k *Keeper) tick(ctx context.Context) (lost bool) {
	tick := time.NewTicker(tickInterval)
	defer tick.Stop()
	leased := false
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		case <-k.wake:
		}
		k.step(Tick{})
		k.mu.Lock()
		is := k.machine.own.leased(time.Now())
		if leased && !is {
			for _, f := range k.expired {
				go f()
			}
		}
		leased, lost = is, k.machine.Lost()
		k.mu.Unlock()
		if lost {
			return true
		}
	}
}

const entriesPrefix = "processes/"

func (k *Keeper) watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := k.cfg.Entries.Watch(ctx, entriesPrefix, func(e bus.Entry) {
			if e.Key == "" {
				k.step(EntrySeen{})
				return
			}
			seen := EntrySeen{Process: strings.TrimPrefix(e.Key, entriesPrefix), Rev: e.Revision}
			if e.Value != nil {
				seen.Entry = new(Entry)
				if err := json.Unmarshal(e.Value, seen.Entry); err != nil {
					k.cfg.Log("cannot read the lease entry "+e.Key, err)
					return
				}
			}
			k.step(seen)
		})
		if ctx.Err() == nil && errors.Is(err, bus.ErrClosed) {
			return
		}
		_ = wait.For(ctx, k.cfg.Timing.Retry)
	}
}

func (k *Keeper) receive(ctx context.Context, net bus.Messenger) {
	err := net.Receive(ctx, func(from strategy.Node, data []byte) {
		e := Received{From: string(from)}
		if json.Unmarshal(data, &e.Message) == nil {
			k.step(e)
		}
	})
	if ctx.Err() == nil {
		k.cfg.Log("cannot receive requests for host leases", err)
	}
}

// execute executes actions until ctx ends.
func (k *Keeper) execute(ctx context.Context) {
	for {
		k.mu.Lock()
		for len(k.work) == 0 && !k.ended {
			k.more.Wait()
		}
		if k.ended {
			k.mu.Unlock()
			return
		}
		a := k.work[0]
		k.work[0] = nil
		k.work = k.work[1:]
		id, net := k.id, k.net
		k.mu.Unlock()
		if e := k.do(ctx, a, id, net); e != nil && ctx.Err() == nil {
			k.step(e)
		}
	}
}

// do executes an action, and returns its result.
func (k *Keeper) do(ctx context.Context, a Action, id strategy.Node, net bus.Messenger) Event {
	switch a := a.(type) {
	case PutEntry:
		value, err := json.Marshal(a.Entry)
		if err != nil {
			return PutEntryDone{Err: err}
		}
		one, cancel := context.WithTimeout(ctx, max(k.cfg.Timing.Beat, time.Second))
		defer cancel()
		rev, err := k.cfg.Entries.Put(one, entriesPrefix+string(id), value, a.Rev)
		return PutEntryDone{rev, asStale(err)}
	case DeleteEntry:
		if err := k.cfg.Entries.Delete(ctx, entriesPrefix+a.Process, a.Rev); err == nil {
			k.cfg.Log("host leases of node "+a.Process+" expired", nil)
		}
	case ReadRecord:
		e, err := k.cfg.Records.Get(ctx, recordKey(a.Host))
		done := ReadRecordDone{Host: a.Host, Rev: e.Revision, Err: err}
		if err == nil && e.Value != nil {
			done.Err = json.Unmarshal(e.Value, &done.Record)
		}
		return done
	case CheckEntry:
		e, err := k.cfg.Entries.Get(ctx, entriesPrefix+a.Process)
		return CheckEntryDone{a.Host, e.Value != nil, err}
	case PutRecord:
		value, err := json.Marshal(a.Record)
		if err != nil {
			return PutRecordDone{Record: a.Record, Err: err}
		}
		rev, err := k.cfg.Records.Put(ctx, recordKey(a.Record.Host), value, a.Rev)
		return PutRecordDone{a.Record, rev, asStale(err)}
	case Send:
		value, err := json.Marshal(a.Message)
		if err == nil {
			err = net.Send(strategy.Node(a.To), value)
		}
		if err != nil { // a lost message is sent again
			k.cfg.Log("cannot send a message about a host lease", err)
		}
	}
	return nil
}

func asStale(err error) error {
	if errors.Is(err, bus.ErrStale) {
		return ErrStale
	}
	return err
}

// recordKey returns the key of a host's record. Hosts contain characters that keys may not.
func recordKey(host string) string {
	sum := sha256.Sum256([]byte(host))
	return fmt.Sprintf("h/%x", sum[:16])
}

// withdraw deletes the process's entry, so that others need not wait until it expires. If waits after visits without a
// lease are not over, the entry expires.
func (k *Keeper) withdraw(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	for range wait.Ticks(ctx, tickInterval) {
		k.mu.Lock()
		quiescent, rev, id := k.machine.IsQuiescent(time.Now()), k.machine.Revision(), k.id
		k.mu.Unlock()
		if !quiescent {
			continue
		}
		if err := k.cfg.Entries.Delete(ctx, entriesPrefix+string(id), rev); err != nil && rev > 0 {
			k.cfg.Log("cannot delete this node's lease entry", err)
		}
		return
	}
}
