package meshnode

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/base/item"
	"kumo/internal/base/varint"
	"kumo/internal/base/vfs"
	"kumo/internal/base/wait"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/strategy"
)

// Lists of pages at risk, of this node and of the nodes for which it is a keeper, are files: atrisk/NODE.HASH in the
// node's folder, where HASH is derived from the record file's name. A file consists of frames: a length, a checksum,
// and the body. The first frame has the name and storage location of the record file, each other frame an item. The
// state machine of package mesh only knows the lengths.

// An AtRisk is a fetched page whose record is in a file that is not uploaded yet.
type AtRisk struct {
	Item item.Item
	File string
	// The record refers to an earlier record of this node, in any file.
	Refers bool
}

// Places gives access to the storage locations to which nodes upload their record files.
type Places struct {
	Own string // URL of this node's location; "": it has none
	// Has reports whether a record file of this node is uploaded.
	Has func(file string) bool
	// Pending returns the names of this node's record files that are not uploaded yet, including open ones.
	Pending func() []string
	// ReadPlace returns which files are in another node's location.
	ReadPlace func(ctx context.Context, place string) (has func(file string) bool, err error)
	Timeout   time.Duration // for a location that cannot be read, before it counts as empty
	// Items decodes a batch of links.
	Items func(data []byte) ([]item.Item, error)
	// Valid reports whether nodes accept the item as a link. Lists come from other nodes, so items may be invalid.
	Valid func(*item.Item) bool
}

const (
	riskDir           = "atrisk"
	placePollInterval = 2 * time.Second // between checks for uploaded files
	maxOwnLists       = 1000            // lists; pages in further record files are not listed
	maxOfferBatch     = 500             // URLs offered at once
	maxOutbox         = 20_000          // links in the outbox above which offers wait
	maxListed         = 1 << 16         // pages known to be listed
	maxFrame          = 1 << 20
	placeTimeout      = 2 * time.Minute // for one attempt to read a lost node's location
)

type riskLists struct {
	disk vfs.FS
	dir  string // "": no lists
	self strategy.Node

	mu      sync.Mutex // guards below
	jobs    []func() error
	signal  chan struct{}
	waiters map[uint64]chan struct{}
	last    uint64
	own     map[string]int64
	listed  *bounded.Recent[uint64, struct{}] // pages that this process has listed, and that keepers know
	seed    maphash.Seed
}

// openRisks opens the existing lists. It truncates incomplete frames after a crash; the keepers do the same.
func openRisks(disk vfs.FS, dir string, self strategy.Node) (*riskLists, map[strategy.Node]map[string]int64, error) {
	r := &riskLists{disk: disk, self: self, signal: make(chan struct{}, 1), waiters: map[uint64]chan struct{}{},
		own: map[string]int64{}, listed: bounded.NewRecent[uint64, struct{}](maxListed), seed: maphash.MakeSeed()}
	if dir == "" {
		return r, nil, nil
	}
	r.dir = filepath.Join(dir, riskDir)
	all := map[strategy.Node]map[string]int64{}
	names, err := disk.List(r.dir)
	for _, name := range names {
		path := filepath.Join(r.dir, name)
		file, size, wrong := trimRiskList(disk, path)
		at := strings.LastIndexByte(name, '.')
		switch node := strategy.Node(name[:max(at, 0)]); {
		case wrong != nil:
			err = errors.Join(err, wrong)
		case at < 0 || r.path(node, file) != path: // it has no complete frame
			err = errors.Join(err, disk.Remove(path))
		default:
			if all[node] == nil {
				all[node] = map[string]int64{}
			}
			all[node][file] = size
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read lists of pages at risk: %w", err)
	}
	maps.Copy(r.own, all[self])
	return r, all, nil
}

func (r *riskLists) path(node strategy.Node, file string) string {
	id := xor.Of("at risk", file)
	return filepath.Join(r.dir, string(node)+"."+hex.EncodeToString(id[:16]))
}

func (r *riskLists) of(node strategy.Node) (paths []string, err error) {
	names, err := r.disk.List(r.dir)
	for _, name := range names {
		if at := strings.LastIndexByte(name, '.'); at >= 0 && name[:at] == string(node) {
			paths = append(paths, filepath.Join(r.dir, name))
		}
	}
	return paths, err
}

// trimRiskList truncates a list after its last complete frame, and returns the name of its record file and its length.
func trimRiskList(disk vfs.FS, path string) (file string, size int64, err error) {
	data, err := readFile(disk, path)
	if err != nil {
		return "", 0, err
	}
	rest := data
	for first := true; ; first = false {
		body, next, ok := cutFrame(rest)
		if !ok {
			break
		}
		if first {
			file, _ = readHead(body)
		}
		rest = next
	}
	size = int64(len(data) - len(rest))
	if len(rest) > 0 {
		err = vfs.TruncateTo(disk, path, size)
	}
	return file, size, err
}

func appendFrame(b, body []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(body)))
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(body))
	return append(b, body...)
}

func cutFrame(b []byte) (body, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > maxFrame || uint64(len(b)-size) < n+4 {
		return nil, b, false
	}
	sum, body := binary.LittleEndian.Uint32(b[size:]), b[size+4:][:n]
	return body, b[size+4+int(n):], crc32.ChecksumIEEE(body) == sum
}

func headOf(file, place string) []byte {
	var w varint.Writer
	w.String(file)
	w.String(place)
	return w
}

func readHead(body []byte) (file, place string) {
	in := varint.Reader{Rest: body}
	file, place = in.String(), in.String()
	if !in.Complete() {
		return "", ""
	}
	return file, place
}

func (r *riskLists) enqueue(f func() error) {
	r.mu.Lock()
	r.jobs = append(r.jobs, f)
	r.mu.Unlock()
	wait.Wake(r.signal)
}

func (r *riskLists) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.signal:
		}
		r.mu.Lock()
		jobs := r.jobs
		r.jobs = nil
		r.mu.Unlock()
		for _, f := range jobs {
			if err := f(); err != nil {
				return fmt.Errorf("write lists of pages at risk: %w", err)
			}
		}
	}
}

func (r *riskLists) append(path string, data []byte) error {
	if err := r.disk.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := r.disk.Append(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (r *riskLists) drop(node strategy.Node, file string) error {
	if file != "" {
		return missingIsFine(r.disk.Remove(r.path(node, file)))
	}
	paths, err := r.of(node)
	for _, path := range paths {
		err = errors.Join(err, missingIsFine(r.disk.Remove(path)))
	}
	return err
}

func missingIsFine(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (r *riskLists) read(path string, from int64, most int) ([]byte, error) {
	f, err := r.disk.OpenAt(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it was dropped since
	}
	if err != nil {
		return nil, err
	}
	data := make([]byte, most)
	n, err := f.ReadAt(data, from)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return data[:n], errors.Join(err, f.Close())
}

// atRisk maintains the lists of pages at risk: those of this node, which its keepers copy, and those of other nodes. It
// offers the pages of a lost node for another fetch. It is safe for concurrent use.
type atRisk struct {
	lists  *riskLists
	places Places
	engine *engineRef
	inbox  *inbox
	tasks  *tasks
	log    *slog.Logger
}

// add appends fetched pages to the lists, and returns when this node's keepers have them.
func (k *atRisk) add(ctx context.Context, pages []AtRisk) error {
	r := k.lists
	if r.dir == "" || k.places.Own == "" || len(pages) == 0 {
		return nil
	}
	r.mu.Lock()
	r.last++
	id, safe := r.last, make(chan struct{})
	r.waiters[id] = safe
	r.mu.Unlock()
	r.enqueue(func() error {
		lists, err := k.write(pages)
		if err == nil {
			k.inbox.send(mesh.AtRisk{ID: id, Lists: lists})
		}
		return err
	})
	select {
	case <-safe:
		for i := range pages {
			r.markListed(&pages[i].Item)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write appends pages to the lists of their record files, and returns the new lengths of these lists.
func (k *atRisk) write(pages []AtRisk) (lists []mesh.RiskList, err error) {
	r := k.lists
	grown := map[string][]byte{}
	for i := range pages {
		p := &pages[i]
		body := item.AppendBody(nil, "", &p.Item)
		files := []string{p.File}
		if p.Refers || p.File == "" {
			files = append(files, k.places.Pending()...)
		}
		slices.Sort(files)
		for _, file := range slices.Compact(files) {
			if file != "" && !k.places.Has(file) { // an uploaded file gets no list again
				grown[file] = appendFrame(grown[file], body)
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(grown)) {
		size, more := r.size(file)
		data := grown[file]
		if size == 0 {
			if !more {
				k.log.Error("too many record files wait for their upload: if this node is lost, "+
					"the pages in the rest are not fetched again", "files", maxOwnLists)
				continue
			}
			data = append(appendFrame(nil, headOf(file, k.places.Own)), data...)
		}
		if err := r.append(r.path(r.self, file), data); err != nil {
			return nil, err
		}
		size += int64(len(data))
		r.grew(file, size)
		lists = append(lists, mesh.RiskList{Name: file, Size: size})
	}
	return lists, nil
}

// size returns the length of a list of this node, and whether there is room for another list.
func (r *riskLists) size(file string) (size int64, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.own[file], len(r.own) < maxOwnLists
}

func (r *riskLists) grew(file string, size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own[file] = size
}

// markListed records that a page is in a list that the keepers have.
func (r *riskLists) markListed(it *item.Item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listed.Put(maphash.String(r.seed, it.Key()), struct{}{})
}

func (r *riskLists) isListed(it *item.Item) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, is := r.listed.Get(maphash.String(r.seed, it.Key()))
	return is
}

// recordDone handles dispatched links that were already done. A page of an earlier process may be in no list, and the
// file of its record is not known, so it is added to the lists of all files that are not uploaded.
func (k *atRisk) recordDone(ctx context.Context, data []byte, done []bool) error {
	if k.places.Own == "" || !slices.Contains(done, true) {
		return nil
	}
	items, err := k.places.Items(data)
	if err != nil {
		return err
	}
	var pages []AtRisk
	for i := range items {
		if i < len(done) && done[i] && !k.lists.isListed(&items[i]) {
			pages = append(pages, AtRisk{Item: items[i]})
		}
	}
	return k.add(ctx, pages)
}

// pollPlace polls which record files of this node have been uploaded to its storage location.
func (k *atRisk) pollPlace(ctx context.Context) error {
	r := k.lists
	for range wait.Every(ctx, placePollInterval) {
		r.enqueue(func() error {
			var there []string
			r.mu.Lock()
			for file := range r.own {
				if k.places.Own == "" || k.places.Has(file) {
					there = append(there, file)
				}
			}
			for _, file := range there {
				delete(r.own, file)
			}
			r.mu.Unlock()
			if len(there) > 0 {
				slices.Sort(there)
				k.inbox.send(mesh.Uploaded{Names: there})
			}
			return nil
		})
	}
	return nil
}

func (k *atRisk) do(a mesh.Action) {
	r := k.lists
	switch a := a.(type) {
	case mesh.ReadRisk:
		r.enqueue(func() error {
			data, err := r.read(r.path(a.Node, a.Name), a.From, a.Most)
			k.inbox.send(mesh.RiskRead{ID: a.ID, Data: data})
			return err
		})
	case mesh.WriteRisk:
		r.enqueue(func() error {
			err := r.append(r.path(a.Node, a.Name), a.Data)
			if err == nil {
				k.inbox.send(mesh.RiskWritten{ID: a.ID})
			}
			return err
		})
	case mesh.DropRisk:
		r.enqueue(func() error { return r.drop(a.Node, a.Name) })
	case mesh.Safe:
		r.mu.Lock()
		if safe := r.waiters[a.ID]; safe != nil {
			delete(r.waiters, a.ID)
			close(safe)
		}
		r.mu.Unlock()
	case mesh.Lost:
		k.tasks.run("refetch the pages of a lost node", func(ctx context.Context) error {
			err := k.refetch(ctx, a.Node)
			if err == nil {
				k.inbox.send(mesh.Refetched{Node: a.Node})
			}
			return err
		})
	}
}

// refetch offers the pages of a lost node whose record files are not in its location.
func (k *atRisk) refetch(ctx context.Context, lost strategy.Node) error {
	if k.places.ReadPlace == nil {
		return nil
	}
	paths, err := k.lists.of(lost)
	if err != nil {
		return err
	}
	places := map[string]func(string) bool{}
	offered, skipped, kept := 0, 0, 0
	for _, path := range paths {
		data, err := readFile(k.lists.disk, path)
		if err != nil {
			return err
		}
		head, rest, ok := cutFrame(data)
		if !ok {
			continue
		}
		file, place := readHead(head)
		if places[place] == nil {
			if places[place], err = k.readPlace(ctx, lost, place); err != nil {
				return err
			}
		}
		if places[place](file) {
			kept++
			continue
		}
		some, bad, err := k.reoffer(ctx, rest)
		offered, skipped = offered+some, skipped+bad
		if err != nil {
			return err
		}
	}
	if skipped > 0 {
		k.log.Error("a lost node's lists contain unreadable or invalid entries: those pages "+
			"are not fetched again", "node", lost, "pages", skipped)
	}
	k.log.Info("the uploaded pages of a lost node are kept; the rest is fetched again", "node", lost,
		"files_there", kept, "files_not_there", len(paths)-kept, "pages_fetched_again", offered)
	return nil
}

// readPlace lists the files in a lost node's storage location. If that fails for Places.Timeout, the location counts as
// empty, and all listed pages are fetched again.
func (k *atRisk) readPlace(ctx context.Context, lost strategy.Node, place string) (has func(string) bool, err error) {
	for end, pause := time.Now().Add(k.places.Timeout), time.Second; ; pause = min(2*pause, time.Minute) {
		once, cancel := context.WithTimeout(ctx, placeTimeout)
		has, err = k.places.ReadPlace(once, place)
		if cancel(); err == nil {
			return has, nil
		}
		left := time.Until(end)
		if left <= 0 {
			k.log.Error("cannot read the storage location of a lost node; giving up: all pages of "+
				"its last record files are fetched again, even if they were uploaded", "node", lost, "place", place, "why", err)
			return func(string) bool { return false }, nil
		}
		pause = min(pause, left)
		k.log.Warn("cannot read the storage location of a lost node to see which records it has", "node", lost, "place",
			place, "next_try_in", pause.Round(time.Millisecond), "at_most_for", left.Round(time.Second), "why", err)
		if err := wait.For(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// reoffer offers the items in the complete frames of a list. It returns the number of offered items, and that of
// skipped ones: other nodes would reject them, and they would stay in the outbox forever.
func (k *atRisk) reoffer(ctx context.Context, list []byte) (all, skipped int, err error) {
	var items []item.Item
	var read item.Reader
	for {
		body, rest, ok := cutFrame(list)
		if ok {
			if it, err := read.ReadBody(body, ""); err == nil && k.prepare(&it) {
				items = append(items, it)
			} else {
				skipped++
			}
		}
		if len(items) >= maxOfferBatch || !ok && len(items) > 0 {
			if err := k.offer(ctx, items); err != nil {
				return all, skipped, err
			}
			all += len(items)
			items = nil
		}
		if !ok {
			return all, skipped, nil
		}
		list = rest
	}
}

// prepare resets an item to be fetched again, and reports whether other nodes will accept it.
func (k *atRisk) prepare(it *item.Item) bool {
	it.Refetch, it.Tries, it.QueueLast, it.Deferred, it.Reported, it.Recrawl, it.Lift = true, 0, false, false, false,
		false, 0
	if it.Refetches < 255 {
		it.Refetches++
	}
	return k.places.Valid == nil || k.places.Valid(it)
}

// offer puts items into the engine's outbox once there is an engine, and room in the outbox.
func (k *atRisk) offer(ctx context.Context, items []item.Item) error {
	for {
		if e := k.engine.get(); e != nil {
			if links, _ := e.Outbox(); links < maxOutbox {
				return e.Reoffer(ctx, items)
			}
		}
		if err := wait.For(ctx, time.Second); err != nil {
			return err
		}
	}
}
