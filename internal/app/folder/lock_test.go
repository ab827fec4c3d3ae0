package folder

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"kumo/internal/base/vfs"
)

// lockable returns a function that returns a folder for locking by crawls and readers.
func lockable(t *testing.T) func() *Folder {
	dir := t.TempDir()
	f := At(dir, vfs.OS)
	if err := os.Mkdir(f.Path("state"), 0o755); err != nil {
		t.Fatal(err)
	}
	return func() *Folder { return At(dir, vfs.OS) }
}

func silent(error) {}

func TestACrawlWaitsForLooksAndNotForACrawl(t *testing.T) {
	newFolder := lockable(t)
	synctest.Test(t, func(t *testing.T) {
		looks := []*Folder{newFolder(), newFolder()}
		for _, l := range looks {
			if err := l.Share(os.O_CREATE); err != nil {
				t.Fatalf("looks beside each other: %v", err)
			}
		}
		if newFolder().WantedByCrawl() {
			t.Error("a crawl waits before there is one")
		}
		crawl, said, held := newFolder(), make(chan error, 10), make(chan error)
		go func() { held <- crawl.Lock(t.Context(), func(err error) { said <- err }) }()
		<-said
		if !newFolder().WantedByCrawl() {
			t.Error("no crawl waits")
		}
		if err := newFolder().Lock(t.Context(), silent); !errors.Is(err, ErrLocked) {
			t.Errorf("a second crawl: %v", err)
		}
		if err := newFolder().Share(0); !errors.Is(err, ErrLocked) {
			t.Errorf("a look that would overtake the crawl: %v", err)
		}
		for _, l := range looks {
			select {
			case err := <-held:
				t.Errorf("the crawl did not wait: %v", err)
			default:
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-held; err != nil || len(said) > 0 {
			t.Errorf("the looks have ended: %v; %d more words", err, len(said))
		}
		if err := newFolder().Share(0); !errors.Is(err, ErrLocked) {
			t.Errorf("a look beside the crawl: %v", err)
		}
		last := newFolder()
		if err := errors.Join(crawl.Close(), last.Share(0), last.Close()); err != nil {
			t.Errorf("a look after the crawl: %v", err)
		}
		if newFolder().WantedByCrawl() {
			t.Error("a crawl waits after its end")
		}
	})
}

func TestACrawlThatIsStoppedWhileItWaits(t *testing.T) {
	newFolder := lockable(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		look, second := newFolder(), newFolder()
		if err := look.Share(os.O_CREATE); err != nil {
			t.Fatal(err)
		}
		if err := newFolder().Lock(ctx, func(error) { cancel() }); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if err := errors.Join(look.Close(), second.Lock(t.Context(), silent), second.Close()); err != nil {
			t.Errorf("it is still in the way: %v", err)
		}
	})
}

// Readers come and go all the time; crawls still get the lock, and then there are no readers.
func TestCrawlsAmongLooks(t *testing.T) {
	newFolder := lockable(t)
	var looks, crawls, seen atomic.Int64
	var all sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				l := newFolder()
				err := l.Share(os.O_CREATE)
				if errors.Is(err, ErrLocked) {
					continue
				}
				looks.Add(1)
				if seen.Add(1); err != nil || crawls.Load() > 0 {
					t.Errorf("a look beside %d crawls: %v", crawls.Load(), err)
				}
				looks.Add(-1)
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 30 {
		c := newFolder()
		if err := c.Lock(t.Context(), silent); err != nil {
			t.Errorf("refused: %v", err)
		}
		if crawls.Add(1); looks.Load() > 0 {
			t.Errorf("a crawl beside %d looks", looks.Load())
		}
		crawls.Add(-1)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	close(done)
	all.Wait()
	t.Logf("%d looks", seen.Load())
}

// Of several crawls that start at the same time as a reader, one gets the lock.
func TestOneOfManyCrawlsIsIn(t *testing.T) {
	newFolder := lockable(t)
	for range 100 {
		var in, out atomic.Int64
		var all sync.WaitGroup
		look, crawls := newFolder(), [3]*Folder{newFolder(), newFolder(), newFolder()}
		all.Go(func() {
			if err := look.Share(os.O_CREATE); err != nil && !errors.Is(err, ErrLocked) {
				t.Error(err)
			} else if err := look.Close(); err != nil {
				t.Error(err)
			}
		})
		for _, c := range crawls {
			all.Go(func() {
				switch err := c.Lock(t.Context(), silent); {
				case err == nil:
					in.Add(1)
				case errors.Is(err, ErrLocked):
					out.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if in.Load() != 1 || out.Load() != 2 {
			t.Errorf("%d are in, %d were refused", in.Load(), out.Load())
		}
		for _, c := range crawls {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
