package follow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/archive/sink"
	"kumo/internal/archive/sink/sinktest"
	"kumo/internal/base/advice"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
	"kumo/internal/state/store/jsonl"
	"kumo/internal/state/store/storetest"
)

// A crawl writes records as the engine does: several at once, with commits in between.
type crawl struct {
	t      *testing.T
	dir    string
	stores []store.Store
	n      int
}

func (c *crawl) open(f *Follower, marks []store.Mark) {
	lines, err := jsonl.Open(vfs.OS, jsonl.Config{Dir: c.dir}, marks)
	if err != nil {
		c.t.Fatal(err)
	}
	texts, err := jsonl.OpenTexts(vfs.OS, jsonl.Config{Dir: c.dir}, marks)
	if err != nil {
		c.t.Fatal(err)
	}
	fields, err := jsonl.OpenFields(vfs.OS, jsonl.Config{Dir: c.dir}, marks)
	if err != nil {
		c.t.Fatal(err)
	}
	c.stores = []store.Store{lines, texts, fields, f}
	if err := f.Begin(); err != nil {
		c.t.Fatal(err)
	}
}

// bases are prototypes of records, which are slow to build under the race detector.
var bases = sync.OnceValue(func() (all [20]*page.Record) {
	for i := range all {
		all[i] = storetest.Record(i)
	}
	return all
})

// rec returns the n-th record: some have a text, some have fields, some have no good response.
func rec(n int) *page.Record {
	all := bases()
	base := *all[n%len(all)]
	r := &base
	r.URL, r.Robots, r.Failure, r.Recrawl, r.Revisit = fmt.Sprintf("http://a.test/%d", n), false, page.None, page.First,
		nil
	r.Time = time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC)
	res := *r.Response
	res.Status = 200
	r.Response, r.Text, r.Fields = &res, nil, nil
	switch n % 5 {
	case 0, 1:
		r.Text = &page.MainText{Text: fmt.Sprintf("text of %d", n), Headline: "H", Kind: "article", Comments: "good"}
	case 2:
		r.Fields = []page.Fields{{Rule: "a", Values: []byte(fmt.Sprintf(`{"n":%d}`, n))}, {Rule: "b", Values: []byte(`{}`)}}
	case 3:
		res.Status = 503
	}
	return r
}

func (c *crawl) put(count int) {
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for n := c.n + w; n < c.n+count; n += 4 {
				r := rec(n)
				for _, s := range c.stores {
					if err := s.Put(r); err != nil {
						c.t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	c.n += count
}

func (c *crawl) commit() (marks []store.Mark) {
	for _, s := range c.stores {
		m, err := s.Mark()
		if err != nil {
			c.t.Fatal(err)
		}
		marks = append(marks, m...)
	}
	for _, s := range c.stores {
		if err := errors.Join(s.Sync(), s.Finalize()); err != nil {
			c.t.Fatal(err)
		}
	}
	return marks
}

func (c *crawl) close() {
	for _, s := range c.stores {
		if err := s.Close(); err != nil {
			c.t.Error(err)
		}
	}
}

func follower(dir string, to *sinktest.Memory) *Follower {
	return New(Config{Dir: dir, Disk: vfs.OS, Name: "memory://x", Now: time.Now, Wait: sink.Sleep, Patience: time.Minute,
		Open: func(context.Context) (sink.Sink, error) { return to, nil }})
}

// has checks that a sink has the first n records, complete.
func has(t *testing.T, m *sinktest.Memory, n int) {
	t.Helper()
	all := m.Records()
	for i := range n {
		r := rec(i)
		got, is := all[r.URL]
		text := ""
		if r.Text != nil {
			text = r.Text.Text
		}
		switch {
		case r.Response.Status == 503 && is:
			t.Errorf("%s is there, which was no good answer", r.URL)
		case r.Response.Status == 503:
		case !is:
			t.Errorf("%s is missing", r.URL)
		case got.Text != text || len(got.Fields) != len(r.Fields) || !got.Time.Equal(r.Time):
			t.Errorf("%s is %+v", r.URL, got)
		}
	}
	if want := n - (n+1)/5; n%5 == 0 && len(all) != want {
		t.Errorf("%d records, want %d", len(all), want)
	}
}

func TestAllIsSentWhileACrawlGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &sinktest.Memory{Fails: 3}
		c := &crawl{t: t, dir: t.TempDir()}
		f := follower(c.dir, m)
		c.open(f, nil)
		var ended error
		var run sync.WaitGroup
		run.Go(func() { ended = f.Run(t.Context()) })
		for range 10 {
			c.put(300)
			c.commit()
			time.Sleep(100 * time.Millisecond)
		}
		c.put(100) // not in the journal, so not sent
		time.Sleep(time.Minute)
		has(t, m, 3000)
		if s := f.Status(); s.Sent != 2400 || s.Waiting != 100 || s.Why != "" {
			t.Errorf("%+v", s)
		}
		c.commit()
		f.End()
		run.Wait()
		if has(t, m, 3100); ended != nil || m.Largest > sink.BatchRecords || f.Status().Waiting != 0 {
			t.Errorf("%v; %d at once; %+v", ended, m.Largest, f.Status())
		}
		c.close()
	})
}

func TestASinkThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &sinktest.Memory{Down: advice.With(errors.New("no route"), "look at the router")}
		c := &crawl{t: t, dir: t.TempDir()}
		f := follower(c.dir, m)
		failed, works := 0, 0
		f.cfg.OnFailure, f.cfg.OnRecovery = func(error) { failed++ }, func() { works++ }
		var refused, stored int64 // attempts, records
		f.cfg.OnAttempt = func(a *sink.Attempt) {
			switch {
			case a.Sink != f.Name() || len(a.Batch) == 0 || a.End.Before(a.Begin):
				t.Errorf("%+v", a)
			case a.Err != nil:
				refused++
			default:
				stored += int64(len(a.Batch))
			}
		}
		f.cfg.Now = func() time.Time { return time.Now().AddDate(30, 0, 0) } // after the records
		c.open(f, nil)
		var ended error
		var run sync.WaitGroup
		run.Go(func() { ended = f.Run(t.Context()) })
		c.put(1000)
		c.commit()
		time.Sleep(10 * time.Minute)
		if f.Acknowledged() != 0 || !f.CaughtUp() {
			t.Errorf("%d bytes are acknowledged, and after 10 minutes: %v", f.Acknowledged(), f.CaughtUp())
		}
		age := f.cfg.Now().Sub(rec(0).Time).Seconds()
		if s := f.Status(); s.Why != "no route" || s.Waiting != 1000 || failed != 1 || len(m.Records()) > 0 ||
			s.Failures < 10 || s.Retries < s.Failures-1 || s.Behind < age-1000 || s.Behind > age || s.Bytes != 0 {
			t.Errorf("%+v", s)
		}
		m.SetDown(nil)
		time.Sleep(time.Minute)
		if s := f.Status(); s.Bytes < s.Sent*500 || s.Behind != 0 || refused != s.Failures || stored != s.Sent {
			t.Errorf("%d attempts failed, %d records were stored; %+v", refused, stored, s)
		}
		if info, err := os.Stat(filepath.Join(c.dir, "pages.jsonl")); err != nil || f.Acknowledged() != info.Size() {
			t.Errorf("%d bytes are acknowledged (%v)", f.Acknowledged(), err)
		}
		if has(t, m, 1000); works != 1 || f.Status().Why != "" {
			t.Errorf("%+v", f.Status())
		}
		m.SetDown(advice.With(errors.New("no route"), "look at the router"))
		c.put(500)
		marks := c.commit()
		if f.CaughtUp() {
			t.Error("it has caught up, and 500 records wait")
		}
		f.End()
		begin := time.Now()
		run.Wait()
		behind, is := errors.AsType[*BacklogError](ended)
		if waited := time.Since(begin); !is || behind.Waiting != 500 || waited < 30*time.Second || waited > 2*time.Minute {
			t.Fatalf("%v after %v", ended, waited)
		}
		if do := advice.Of(Advise(ended, "c")); !strings.Contains(do, "the same command sends the rest") ||
			!strings.Contains(do, "router") {
			t.Error(do)
		}
		c.close()
		// The same command is run again.
		m.SetDown(nil)
		puts := m.Puts
		f = follower(c.dir, m)
		c.open(f, marks)
		c.commit()
		f.End()
		if err := f.Run(t.Context()); err != nil || m.Puts != puts+1 {
			t.Errorf("%v; %d puts for 500 records", err, m.Puts-puts)
		}
		has(t, m, 1500)
		c.close()
	})
}

// After a sink has lost its content, all records are sent again, and OnRestart is called first.
func TestASinkThatHasLostAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, losing, anew := &sinktest.Memory{}, &forgetful{}, 0
		losing.Memory, losing.after = m, 3
		c := &crawl{t: t, dir: t.TempDir()}
		f := follower(c.dir, m)
		f.cfg.Open = func(context.Context) (sink.Sink, error) { return losing, nil }
		f.cfg.PositionFile = filepath.Join(c.dir, "note.json")
		f.cfg.OnRestart = func() error { anew++; return nil }
		c.open(f, nil)
		c.put(2500)
		marks := c.commit()
		f.End()
		if err := f.Run(t.Context()); err != nil || anew != 2 || f.Status().Waiting != 0 {
			t.Errorf("%v, %d times anew, %+v", err, anew, f.Status())
		}
		has(t, m, 2500)
		c.close()
		f = follower(c.dir, m)
		f.cfg.PositionFile = filepath.Join(c.dir, "note.json")
		c.open(f, marks)
		c.commit()
		f.End()
		if err := f.Run(t.Context()); err != nil || f.Status().Sent != 0 {
			t.Errorf("%v, %+v", err, f.Status())
		}
		c.close()
	})
}

// A follower that starts after the crawl has put records sends all of them and reports that.
func TestBegunLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &sinktest.Memory{}
		c := &crawl{t: t, dir: t.TempDir()}
		f := follower(c.dir, m)
		c.open(f, nil)
		c.put(10)
		c.commit()
		if err := f.Begin(); err != nil {
			t.Fatal(err)
		}
		c.put(10)
		c.commit()
		f.End()
		if err := f.Run(t.Context()); err != nil || f.Status().Waiting != 0 || f.Status().Sent != 16 {
			t.Errorf("%v, %+v", err, f.Status())
		}
		has(t, m, 20)
		c.close()
	})
}

// A position is valid only for the same sink: another one, or a recreated one, gets all records.
func TestNoteOfAnotherSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, id := &sinktest.Memory{}, "a"
		c := &crawl{t: t, dir: t.TempDir()}
		var marks []store.Mark
		for _, step := range []struct {
			begun, reached string
			all            bool
		}{{"a", "a", true}, {"a", "a", false}, {"b", "b", true}, {"", "c", true}, {"c", "d", true}, {"d", "d", false}} {
			f := follower(c.dir, m)
			id = step.begun
			f.cfg.ID = func() (string, error) { return id, nil }
			f.cfg.Open = func(context.Context) (sink.Sink, error) {
				id = step.reached
				return m, nil
			}
			if step.all {
				*m = sinktest.Memory{}
			}
			c.open(f, marks)
			c.put(500)
			marks = c.commit()
			f.End()
			if err := f.Run(t.Context()); err != nil || f.Status().Waiting != 0 {
				t.Errorf("%+v: %v, %+v", step, err, f.Status())
			}
			if sent := f.Status().Sent; (sent == 400) == step.all && c.n > 500 {
				t.Errorf("%+v: %d were sent", step, sent)
			}
			has(t, m, c.n)
			c.close()
		}
	})
}

// forgetful is a sink that loses its content once.
type forgetful struct {
	*sinktest.Memory
	after int
}

func (f *forgetful) Put(ctx context.Context, batch []sink.Record) error {
	if f.after--; f.after == 0 {
		*f.Memory = sinktest.Memory{}
		return fmt.Errorf("no disk: %w", sink.ErrDataLost)
	}
	return f.Memory.Put(ctx, batch)
}

// A process that ends at any time sends the rest after a restart.
func TestCrashes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	m := &sinktest.Memory{}
	c := &crawl{t: t, dir: t.TempDir()}
	var marks []store.Mark
	for range 4 {
		synctest.Test(t, func(t *testing.T) {
			c.t = t
			f := follower(c.dir, m)
			c.open(f, marks)
			ctx, crash := context.WithCancel(t.Context())
			var run sync.WaitGroup
			run.Go(func() { _ = f.Run(ctx) }) // interrupted
			for range 1 + dice.IntN(4) {
				c.put(5 * (1 + dice.IntN(120)))
				marks = c.commit()
				time.Sleep(time.Duration(dice.IntN(2000)) * time.Millisecond)
			}
			whole := c.n
			c.put(5 * dice.IntN(100)) // lost in the crash
			crash()
			run.Wait()
			c.close()
			c.n = whole
			if dice.IntN(3) == 0 { // the position may also be an old one
				_ = os.RemoveAll(filepath.Join(c.dir, "state"))
			}
		})
	}
	f := follower(c.dir, m)
	c.open(f, marks)
	c.commit()
	f.End()
	if err := f.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	has(t, m, c.n)
	c.close()
}

// A crawl that starts over is sent from its beginning, although there is a position of the previous one.
func TestAnotherCrawl(t *testing.T) {
	m := &sinktest.Memory{}
	c := &crawl{t: t, dir: t.TempDir()}
	for n, first := range []int{0, 5000} {
		f := follower(c.dir, m)
		c.n = first
		c.open(f, nil)
		c.put(100 * (n + 1))
		c.commit()
		f.End()
		if err := f.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.close()
	}
	if n := len(m.Records()); n != 80+160 {
		t.Errorf("%d records", n)
	}
}

func TestLinesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	c := &crawl{t: t, dir: dir}
	f := follower(dir, &sinktest.Memory{})
	c.open(f, nil)
	c.put(5)
	c.commit()
	c.close()
	if err := os.WriteFile(filepath.Join(dir, "pages.jsonl"), []byte("{\"url\":}\n"+strings.Repeat("x", 5000)),
		0o666); err != nil {
		t.Fatal(err)
	}
	f.End()
	if err := f.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "pages.jsonl at byte 0") {
		t.Error(err)
	}
}

// Texts of pages sent before, which a position may begin with, do not replace those of later pages.
func TestTextsOfPagesThatWereSentHideNone(t *testing.T) {
	const orphans, all = 10, 4 * sink.BatchRecords
	dir, at := t.TempDir(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var lines, text strings.Builder
	for n := -orphans; n < all; n++ {
		head := fmt.Sprintf(`{"url":"http://a.test/%d","time":%q,`, n,
			at.Add(time.Duration(n)*time.Second).Format(time.RFC3339))
		fmt.Fprintf(&text, `%s"text":"text of %d"}`+"\n", head, n)
		if n >= 0 {
			lines.WriteString(head + `"status":200,"type":"text/html"}` + "\n")
		}
	}
	for name, s := range map[string]string{names[pages]: lines.String(), names[texts]: text.String(), names[fields]: ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	upTo := lengths{pages: int64(lines.Len()), texts: int64(text.Len())}
	var from position
	for got := 0; got < all; {
		r := newReader(vfs.OS, dir, nil) // as after a restart
		r.ahead[texts].limit = sink.BatchRecords + 5*orphans
		r.resumeAt(from)
		batch, next, _, err := r.read(upTo)
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range batch {
			if want := fmt.Sprintf("text of %d", got); rec.Text != want {
				t.Fatalf("%s has the text %q, want %q", rec.URL, rec.Text, want)
			}
			got++
		}
		r.at.Lengths[pages] = next
		r.commit()
		if from, err = r.position(); err != nil {
			t.Fatal(err)
		}
		if err := r.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// If texts are enabled later, the crawl first creates them for all its pages, in order. Then all records are sent again
// with their texts, as in an export.
func TestTextsThatCameLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sent, all = 3000, 5000
		m := &sinktest.Memory{}
		dir := t.TempDir()
		put := func(s store.Store, from, to int) {
			for n := from; n < to; n++ {
				if err := s.Put(rec(n)); err != nil {
					t.Fatal(err)
				}
			}
		}
		// marks commits the stores.
		marks := func(stores ...store.Store) (all []store.Mark) {
			for _, s := range stores {
				m, err := s.Mark()
				if err := errors.Join(err, s.Sync(), s.Finalize()); err != nil {
					t.Fatal(err)
				}
				all = append(all, m...)
			}
			return all
		}
		run := func(f *Follower, patience time.Duration) error {
			f.cfg.Patience = patience
			f.End()
			return f.Run(t.Context())
		}
		lines, err := jsonl.Open(vfs.OS, jsonl.Config{Dir: dir}, nil)
		if err != nil {
			t.Fatal(err)
		}
		first := follower(dir, m)
		if err := first.Begin(); err != nil {
			t.Fatal(err)
		}
		put(lines, 0, sent)
		marks(lines, first)
		if err := run(first, time.Minute); err != nil || m.Records()[rec(0).URL].Text != "" {
			t.Fatalf("%v; %+v", err, m.Records()[rec(0).URL])
		}
		// The sink is down while the crawl continues and texts and fields are enabled.
		m.SetDown(errors.New("no route"))
		second := follower(dir, m)
		if err := second.Begin(); err != nil {
			t.Fatal(err)
		}
		put(lines, sent, all)
		kept := marks(lines, second)
		if run(second, time.Second) == nil {
			t.Error("it takes records")
		}
		if err := lines.Close(); err != nil {
			t.Fatal(err)
		}
		m.SetDown(nil)
		texts, err := jsonl.OpenTexts(vfs.OS, jsonl.Config{Dir: dir}, kept)
		if err != nil {
			t.Fatal(err)
		}
		values, err := jsonl.OpenFields(vfs.OS, jsonl.Config{Dir: dir}, kept)
		if err != nil {
			t.Fatal(err)
		}
		put(texts, 0, all)
		put(values, 0, all)
		marks(texts, values)
		third := follower(dir, m)
		if err := third.Begin(); err != nil {
			t.Fatal(err)
		}
		marks(third)
		if s := third.Status(); s.Waiting != all {
			t.Errorf("%d of %d records wait", s.Waiting, all)
		}
		if err := run(third, time.Minute); err != nil {
			t.Fatal(err)
		}
		has(t, m, all)
		fourth := follower(dir, m)
		if err := fourth.Begin(); err != nil || fourth.Status().Waiting != 0 {
			t.Errorf("%v; it is sent once more: %+v", err, fourth.Status())
		}
		if err := errors.Join(texts.Close(), values.Close(), run(fourth, 0)); err != nil {
			t.Error(err)
		}
	})
}
