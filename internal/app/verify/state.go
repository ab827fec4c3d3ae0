package verify

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"kumo/internal/base/page"
	"kumo/internal/state/journal"
	"kumo/internal/state/seen"
)

// state checks the state folder.
func (v *verifier) state() error {
	v.recordTruncations()
	for _, part := range []struct {
		open bool
		read func() error
	}{
		{v.Journal != nil, v.readJournal}, {v.Seen != nil, v.readSeen}, {v.Digests != nil, v.readDigests},
		{v.State != nil, v.readFrontier}, {v.State != nil, v.readDeferred}, {v.State != nil, v.readRoots},
	} {
		if !part.open {
			continue
		}
		if err := part.read(); err != nil {
			return err
		}
	}
	return nil
}

// recordTruncations notes uncommitted data that the next start removes.
func (v *verifier) recordTruncations() {
	for _, c := range v.View.Truncations() {
		name, err := filepath.Rel(v.Dir, c.Name)
		if err != nil {
			continue
		}
		f := Fault{File: filepath.ToSlash(name), Offset: c.Length, What: fmt.Sprintf("%d bytes are %s", c.Lost, notCommitted)}
		switch {
		case strings.HasPrefix(f.File, "state/journal/"):
			f.Check, f.What = checkJournal, fmt.Sprintf("an incomplete batch of %d bytes: the next start removes it", c.Lost)
		case f.File == "state/deferred":
			f.Check = checkDeferred
		case f.File == "state/roots":
			f.Check = checkRoots
		default:
			continue
		}
		v.add(f)
	}
}

func (v *verifier) readJournal() error {
	var batches int64
	err := v.Journal.Replay(v.Journal.Start(), func(batch []byte, end journal.Position) error {
		batches++
		return v.progress(checkJournal, int64(end-v.Journal.Start()), int64(v.Journal.End()-v.Journal.Start()),
			int64(len(batch)))
	})
	if v.ctx.Err() != nil {
		return v.ctx.Err()
	}
	v.addCount(checkJournal, batches, "batches")
	v.broken(checkJournal, "state/journal", err)
	return nil
}

func (v *verifier) readSeen() error {
	err := v.Seen.Verify(v.ctx)
	if v.ctx.Err() != nil {
		return v.ctx.Err()
	}
	st := v.Seen.Stats()
	v.addCount(checkSeen, int64(st.Runs), "runs")
	v.addCount(checkSeen, v.Seen.Len(), "URLs")
	v.checkPosition(checkSeen, "state/seen/manifest", v.Seen.Position())
	v.broken(checkSeen, "state/seen", err)
	return nil
}

// remedy is the advice for permanently damaged files.
const remedy = "kumo repair rebuilds the crawl from the intact data"

func (v *verifier) checkPosition(check, file string, at uint64) {
	if v.Journal != nil && journal.Position(at) > v.Journal.End() {
		v.fault(Fault{Check: check, File: file, Offset: -1, What: fmt.Sprintf("it includes the journal up to %x, which "+
			"ends at %x", at, uint64(v.Journal.End())), Remedy: remedy})
	}
}

func (v *verifier) readDigests() error {
	err := v.Digests.Verify(v.ctx)
	if v.ctx.Err() != nil {
		return v.ctx.Err()
	}
	v.checkPosition(checkDigests, "state/digests/manifest", v.Digests.Position())
	v.broken(checkDigests, "state/digests", err)
	v.addCount(checkDigests, int64(v.Digests.Stats().Runs), "runs")
	if err != nil {
		return nil
	}
	return v.readRefs()
}

// readRefs adds claims for the records in the index of digests.
func (v *verifier) readRefs() error {
	var n int64
	err := v.Digests.Each(func(sum [20]byte, r seen.Ref) error {
		n++
		return asStop(v.claim(r.URL, kindReference, fact{File: -1, Time: r.Time.UnixMicro(), ID: hashOf(r.ID), Digest: sum,
			Flags: flagDigests}))
	})
	v.addCount(checkDigests, n, "digests")
	if err != nil && !errors.Is(err, errStop) {
		v.broken(checkDigests, "state/digests", err)
		return nil
	}
	return err
}

func (v *verifier) readFrontier() error {
	var n int64
	err := v.State.Each(func(url string, again bool) error {
		n++
		var f fact
		if again {
			f.Flags = flagRecrawl
		}
		return v.claim(url, kindPending, f)
	}, func(err error) { v.broken(checkFrontier, "state/frontier", err) })
	if err != nil {
		return err
	}
	for _, url := range v.State.PendingDedup() {
		if err := v.claim(url, kindPendingDedup, fact{}); err != nil {
			return err
		}
	}
	late, err := v.readLate()
	v.tally.waiting = n
	v.addCount(checkFrontier, n, "URLs waiting")
	v.addCount(checkFrontier, int64(len(v.State.PendingDedup()))+late, "undecided")
	return err
}

// readLate adds claims for URLs that wait in the URL database for the next merge.
func (v *verifier) readLate() (n int64, err error) {
	if v.Seen == nil {
		return 0, nil
	}
	for url, err := range v.Seen.Late() {
		if err != nil {
			return n, nil //nolint:nilerr // readSeen has told of it
		}
		n++
		if err := v.claim(url, kindPendingDedup, fact{}); err != nil {
			return n, err
		}
	}
	return n, nil
}

func (v *verifier) readDeferred() error {
	const name = "state/deferred"
	if _, err := v.committedLength(checkDeferred, name, true); err != nil {
		return err
	}
	var n, at int64
	err := v.State.EachDeferred(v.View, v.Dir, func(s *page.Skip, end int64) error {
		n++
		if err := sameHost(s.URL, s.Host); err != nil {
			v.fault(Fault{Check: checkDeferred, File: name, Offset: at, URL: s.URL, What: err.Error()})
		}
		err := v.claim(s.URL, kindDeferred, fact{At: at, Time: s.Time.UnixMicro()})
		at = end
		return err
	})
	v.addCount(checkDeferred, n, "URLs")
	if err != nil {
		v.fault(Fault{Check: checkDeferred, File: name, Offset: at, What: err.Error()})
	}
	return v.ctx.Err()
}

func (v *verifier) readRoots() error {
	const name = "state/roots"
	if _, err := v.committedLength(checkRoots, name, true); err != nil {
		return err
	}
	n, err := v.State.CountScopeSeeds(v.View, v.Dir)
	v.addCount(checkRoots, n, "seeds and their redirect targets")
	if err != nil {
		v.fault(Fault{Check: checkRoots, File: name, Offset: -1, What: err.Error(),
			Remedy: "start again with --fresh, or restore the file from a copy"})
	}
	return v.ctx.Err()
}
