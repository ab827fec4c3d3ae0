// Package recovery rebuilds a crawl's state from its journal and the last checkpoint.
//
// It serves an engine that resumes, commands that inspect or verify a crawl, and nodes that take over the state of a
// dead node.
package recovery

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/cluster/member"
	"kumo/internal/content/cookies"
	"kumo/internal/content/traps"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store"
	"kumo/internal/state/transfer"
)

// A State is the state of a crawl, from its checkpoint and the rest of the journal. An engine can resume from it.
type State struct {
	Marks      []store.Mark // lengths of the record files
	Checkpoint []store.Mark // the same in the last checkpoint
	Stats      *stats.Counter

	Views   Views
	pending map[string]item.Item // URLs found since the checkpoint
	Guessed map[string]bool      // URLs in pending that were undecided when they were found
	// Unexplained contains URLs that are excluded, but were undecided when they were found, so that the reason was not
	// yet reported.
	Unexplained  map[string]entry.Candidate
	Refused      int                  // number of pending URLs that cannot be fetched
	ReportedURLs map[string]bool      // URLs that earlier runs reported as failed with their host
	SeedLists    []entry.SeedListMark // how much of each seed list was read, the latest last
	DeferredUpTo int64

	UndecidedURLs []string // URLs to be decided by the next merge of seen

	Links entry.Links // links for other nodes

	Tenures Tenures // of released hosts

	Cookies *cookies.Jar // set by servers

	Traps *traps.State // learned URL patterns; nil if there are none

	Unsettled transfer.Unsettled // transfers from other nodes
	abandoned abandoned
	lost      *LostRecords // pages of a dead node whose records are lost; nil if all records are available
}

type replay struct {
	*State
	// the current entry is older than the checkpoint: only seen and the digests may lack it
	beforeCheckpoint bool
	marks            map[string]int64
	foundAt          map[string]bool // hosts of URLs found during transfers; see retainFoundHosts
	at               time.Time       // time of the current entries
	chunkReader      *transfer.ChunkReader
	fault            error // why the current entry cannot be replayed
}

// Recover replays the part of the journal that the views lack.
func Recover(j journal.Journal, v Views) (*State, error) {
	return recoverBy(j, v, nil, func(*State, journal.Position) error { return nil })
}

// recoverBy calls after with the position after each batch.
func recoverBy(
	j journal.Journal,
	v Views,
	lost *LostRecords,
	after func(*State, journal.Position) error,
) (*State, error) {
	if v.Abandoned != nil {
		v.Abandoned.Slices = v.Frontier.Slices()
	}
	s := &State{Stats: stats.New(), Views: v, Links: entry.Links{}, pending: map[string]item.Item{},
		Guessed:     map[string]bool{},
		Unexplained: map[string]entry.Candidate{}, ReportedURLs: map[string]bool{}, Tenures: Tenures{},
		Cookies: cookies.NewJar(cookies.Config{}), lost: lost}
	s.abandoned.file = v.Abandoned
	to := &replay{State: s, marks: map[string]int64{}}
	at, err := to.readNote(v.Note)
	if err != nil {
		return nil, err
	}
	from, err := replayFrom(j.End(), at, v)
	if err != nil {
		return nil, err
	}
	err = j.Replay(from, func(batch []byte, end journal.Position) error {
		to.beforeCheckpoint = end <= at
		if end <= from { // not requested; a log that is not trimmed up to its checkpoint has such batches
			if lost == nil {
				return nil
			}
			return cmp.Or(lost.begin(batch), entry.Read(batch, lostReader{entry.NopReader(), to}), to.fault)
		}
		if err := cmp.Or(lost.begin(batch), entry.Read(batch, to), to.fault); err != nil {
			return err
		}
		return after(s, end)
	})
	to.Time(time.Time{})
	to.retainFoundHosts()
	if err == nil {
		err = s.abandoned.resolve(v.Frontier)
	}
	if err != nil {
		return nil, err
	}
	for name, length := range to.marks {
		s.Marks = append(s.Marks, store.Mark{Name: name, Length: length})
	}
	return s, nil
}

// ErrInconsistent reports a state whose parts do not belong to one crawl at one time: files were lost, or copied while
// the crawl ran.
var ErrInconsistent = errors.New("the parts of the crawl's state do not fit together")

// replayFrom returns the position at which to start the replay: the least of the positions of the views. A view must
// not be ahead of the journal's end. Otherwise it knows URLs that the journal lacks, and they would never be fetched.
func replayFrom(end, checkpoint journal.Position, v Views) (journal.Position, error) {
	ahead := func(what string, at journal.Position) error {
		if at <= end {
			return nil
		}
		return fmt.Errorf("%w: %s include the journal up to byte %d, but it ends at %d", ErrInconsistent, what, at, end)
	}
	from, err := checkpoint, ahead("the queues (state/frontier)", checkpoint)
	if db, ok := v.Seen.(*seen.DB); ok {
		from = min(from, journal.Position(db.Position()))
		err = errors.Join(err, ahead("the known URLs (state/seen)", journal.Position(db.Relies())))
	}
	if d, ok := v.Digests.(*seen.Digests); ok {
		from = min(from, journal.Position(d.Position()))
		err = errors.Join(err, ahead("the digests (state/digests)", journal.Position(d.Position())))
	}
	return from, err
}

// readNote applies the checkpoint's note and returns its position.
func (s *replay) readNote(text []byte) (journal.Position, error) {
	if len(text) == 0 {
		return 0, nil
	}
	var n Note
	if err := json.Unmarshal(text, &n); err != nil {
		return 0, fmt.Errorf("read the checkpoint: %w", err)
	}
	switch {
	case n.Version < NoteVersion:
		return 0, fmt.Errorf("the checkpoint has version %d: %w", n.Version, entry.ErrOlder)
	case n.Version > NoteVersion:
		return 0, fmt.Errorf("the checkpoint has version %d: a newer kumo wrote it, so use that version", n.Version)
	}
	if was, is := max(n.Slices, 1), s.slices().Count(); was != is {
		return 0, fmt.Errorf("the checkpoint has %d slices per host, but the settings have %d: the number cannot "+
			"change", was, is)
	}
	s.Stats = stats.From(n.Stats, n.Sums)
	s.SeedLists, s.DeferredUpTo = n.Lists, n.Asked
	if n.Arrivals != nil {
		s.Unsettled = *n.Arrivals
	}
	maps.Copy(s.Tenures, n.Tenures)
	if !s.Cookies.ImportAll(n.Cookies) {
		return 0, fmt.Errorf("%w: cookies in the checkpoint", entry.ErrShort)
	}
	s.Traps = n.Traps
	s.Checkpoint = n.Marks
	for _, m := range n.Marks {
		s.marks[m.Name] = m.Length
	}
	for _, url := range n.Settled {
		s.Views.Frontier.Suppress(url)
	}
	for _, url := range n.Told {
		s.ReportedURLs[url] = true
	}
	if s.Views.Abandoned != nil {
		s.Views.Abandoned.Begin(n.Shelved)
	}
	if n.Shelved.Length > 0 {
		if s.Views.Abandoned == nil {
			return 0, errors.New("the checkpoint needs the file of abandoned URLs")
		}
		s.abandoned.removals = map[string]int{}
	}
	return n.Position, nil
}

// EachAbandoned calls f with the content of the abandoned queue.
func (s *State) EachAbandoned(f func(it item.Item) error) error { return s.abandoned.each(f) }

// Pending returns the number of pending URLs.
func (s *State) Pending() int { return len(s.pending) + s.abandoned.n + s.Views.Frontier.Counts().URLs }

// Known returns the number of URLs in scope found so far.
func (s *State) Known() int { return int(s.Views.Seen.Len()) }

// IsAway reports whether the host of a URL, or its slice, was transferred to another node, which has the current data
// about it.
func (s *State) IsAway(url string) bool {
	info, met := s.Views.Frontier.Host(s.slices().Of(url))
	return met && info.Away
}

// WasReleased reports whether the host of a URL, or its slice, was released since the URL was admitted.
func (s *State) WasReleased(url string, tenure int) bool {
	return s.Tenures.Of(s.slices().Of(url)) > tenure
}

func (s *State) slices() *item.Slices { return s.Views.Frontier.Slices() }

func (s *State) sliceOf(it *item.Item) string { return s.slices().Of(it.URL) }

// IsNew reports whether the crawl has not begun: it has no seeds.
func (s *State) IsNew() bool {
	length, _ := store.FindMark(s.Marks, statefile.ScopeSeedsName)
	return length == 0
}

// CheckVersion returns ErrOlder for a crawl that was started without a file of its seeds.
func (s *State) CheckVersion() error {
	if _, known := store.FindMark(s.Marks, statefile.ScopeSeedsName); !known && len(s.Marks) > 0 {
		return entry.ErrOlder
	}
	return nil
}

func (s *replay) Time(t time.Time) {
	s.at = t
	if db, ok := s.Views.Seen.(*seen.DB); ok {
		db.Replay(t)
	}
}

func (s *replay) Found(it item.Item) {
	if s.refuses(&it) {
		return
	}
	s.insertKnown(it.URL, it.Depth, seen.Known)
	delete(s.Unexplained, it.URL)
	if s.beforeCheckpoint {
		s.dropGuess(it.URL) // it was decided: the frontier's checkpoint has it, or it is done
		return
	}
	s.enqueue(it)
}

func (s *replay) Cookie(c cookies.Cookie) {
	if !s.beforeCheckpoint {
		s.Cookies.Import(c)
	}
}

// enqueue makes a URL pending that was found by this node.
func (s *replay) enqueue(it item.Item) {
	s.pending[it.URL] = it
	delete(s.Guessed, it.URL)
	if len(s.Unsettled.Coming) == 0 {
		return
	}
	if s.foundAt == nil {
		s.foundAt = map[string]bool{}
	}
	s.foundAt[s.sliceOf(&it)] = true
}

// retainFoundHosts keeps the hosts of incoming transfers at which a URL was found. The engine did so at once.
func (s *replay) retainFoundHosts() {
	if len(s.foundAt) > 0 {
		s.Unsettled.Keep(slices.Sorted(maps.Keys(s.foundAt)))
		s.foundAt = nil
	}
}

// dropGuess removes a URL from the guessed ones, because it was decided.
func (s *State) dropGuess(url string) {
	if s.Guessed[url] {
		delete(s.pending, url)
		delete(s.Guessed, url)
	}
}

// Undecided offers a candidate to seen again. A merge has yet to decide it, or its decision is in later entries. The
// merge may have been interrupted after these, even repeatedly, and then seen is behind the frontier's checkpoint.
func (s *replay) Undecided(payload string) {
	d := entry.NewDecoder([]byte(payload))
	c := d.Candidate()
	if d.Bad || s.refuses(&c.Item) {
		return // a complete entry has a complete candidate
	}
	u := []seen.URL{{URL: c.Item.URL, Depth: c.Item.Depth, State: entry.StateFor(c.Verdict), Payload: []byte(payload)}}
	switch news := s.Views.Seen.Offer(u, nil); {
	case news[0] == seen.Undecided:
		s.UndecidedURLs = append(s.UndecidedURLs, c.Item.URL)
	case news[0] == seen.Fresh && c.Rule != "":
		s.Unexplained[c.Item.URL] = c
	case news[0] == seen.Fresh: // it was undecided, so no checkpoint of the frontier has it
		if _, shelved := s.pending[c.Item.URL]; shelved {
			return
		}
		s.pending[c.Item.URL] = c.WithHop()
		s.Guessed[c.Item.URL] = true
	}
}

func (s *State) insertKnown(url string, depth int32, state seen.State) {
	s.Views.Seen.InsertKnown([]seen.URL{{URL: url, Depth: depth, State: state}})
}

// dequeue removes a URL from the pending ones, whether it is in the frontier's checkpoint or was found after it.
func (s *replay) dequeue(url string) {
	if s.beforeCheckpoint {
		s.dropGuess(url) // it was decided, and is done
		return
	}
	if _, ok := s.pending[url]; ok {
		delete(s.pending, url)
		return
	}
	if s.abandoned.removals != nil {
		s.abandoned.removals[url]++
		return
	}
	s.Views.Frontier.Suppress(url)
}

func (s *replay) Done(v entry.Done) {
	if s.checkLost(&v) {
		return
	}
	if v.Ref.ID != "" {
		s.Views.Digests.Put(v.Meta.Digest, seen.Ref(v.Ref))
	}
	if db, ok := s.Views.Seen.(*seen.DB); ok {
		db.UpdateMeta(v.URL, v.Meta)
	}
	if s.dequeue(v.URL); !s.beforeCheckpoint {
		s.Stats.Visited(v.Visit)
	}
}

func (s *replay) Skip(k page.Skip) {
	s.insertKnown(k.URL, int32(k.Depth), seen.Known)
	delete(s.Unexplained, k.URL)
	s.dequeue(k.URL)
	if !s.beforeCheckpoint {
		s.Stats.Skipped(k.Rule)
	}
}

// Recrawl queues a URL again that was visited before.
func (s *replay) Recrawl(queued time.Time, it item.Item) {
	if s.refuses(&it) {
		return
	}
	s.Due(it.URL, seen.Meta{Queued: queued})
	s.recordRequeued(&it)
	if !s.beforeCheckpoint {
		s.enqueue(it)
	}
}

func (s *replay) Due(url string, m seen.Meta) {
	if db, ok := s.Views.Seen.(*seen.DB); ok {
		db.UpdateMeta(url, m)
	}
}

// Reported marks a URL as failed with its host. It stays pending.
func (s *replay) Reported(url string) {
	if it, ok := s.pending[url]; ok {
		it.Reported = true
		s.pending[url] = it
	} else if !s.beforeCheckpoint {
		s.ReportedURLs[url] = true
	}
}

// SkippedNew does not change the pending URLs, because another link may have admitted the URL at the same time.
func (s *replay) SkippedNew(k page.Skip) {
	s.Deferred(k)
	if !s.beforeCheckpoint {
		s.Stats.Skipped(k.Rule)
	}
}

func (s *replay) SkippedPending(k page.Skip) {
	s.dequeue(k.URL)
	s.SkippedNew(k)
}

func (s *replay) Nearer(url string, depth int32) { s.insertKnown(url, depth, seen.Known) }

func (s *replay) Counters(n stats.Sums) {
	if !s.beforeCheckpoint {
		s.Stats.Restore(n)
	}
}

func (s *replay) Deferred(k page.Skip) {
	s.insertKnown(k.URL, int32(k.Depth), seen.Deferred)
	delete(s.Unexplained, k.URL)
}

func (s *replay) DeferredRead(upTo int64) {
	if !s.beforeCheckpoint {
		s.DeferredUpTo = upTo
	}
}

func (s *replay) Mark(m store.Mark) {
	if !s.beforeCheckpoint {
		s.marks[m.Name] = m.Length
	}
}

func (s *replay) OffHost(host string, n int64) {
	if !s.beforeCheckpoint {
		s.Stats.OffHost(host, n)
	}
}

// Queue returns the pending URLs found since the checkpoint, in a deterministic order.
func (s *State) Queue() []item.Item {
	all := make([]item.Item, 0, len(s.pending))
	for _, it := range s.pending {
		all = append(all, it)
	}
	slices.SortFunc(all, func(a, b item.Item) int {
		return cmp.Or(cmp.Compare(a.Depth, b.Depth), strings.Compare(a.URL, b.URL))
	})
	return all
}

func (s *replay) TransfersDone(all []member.Transfer) {
	if !s.beforeCheckpoint {
		s.Unsettled.Went = append(s.Unsettled.Went, all...)
	}
}

// Went returns the transfers completed by Forget since the last settled epoch.
func (s *State) Went() []member.Transfer { return slices.Clone(s.Unsettled.Went) }

// Outgoing adds a link to the outbox. If a checkpoint had links in the outbox, they are journalled again after it.
func (s *replay) Outgoing(number uint64, link string) {
	if !s.beforeCheckpoint {
		s.Links[number] = link
	}
}

func (s *replay) Delivered(first, last uint64) {
	if !s.beforeCheckpoint {
		s.Links.Delivered(first, last)
	}
}

// SeedList replays how much of a seed list was read.
func (s *replay) SeedList(m entry.SeedListMark) {
	if !s.beforeCheckpoint {
		s.SeedLists = entry.UpdateMarks(s.SeedLists, m)
	}
}

// refuses reports whether an item of the journal must not be fetched, and counts it.
func (s *replay) refuses(it *item.Item) bool {
	if frontier.Belongs(it.Host(), it.URL) {
		return false
	}
	if !s.beforeCheckpoint {
		s.Refused++
	}
	return true
}

// ReleaseMemory releases large data after an engine has taken it over, because the state itself may stay in use.
func (s *State) ReleaseMemory() {
	s.pending, s.Guessed, s.Unexplained, s.UndecidedURLs, s.Links, s.abandoned = nil, nil, nil, nil, nil, abandoned{}
}
