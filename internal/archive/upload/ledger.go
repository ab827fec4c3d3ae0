package upload

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kumo/internal/archive/away"
	"kumo/internal/base/vfs"
)

// A ledger guards the lists of uploaded files: the folder's log, which a restart reads, and the location's manifest,
// for its readers.
//
// Invariants: the log lists only files whose upload was verified by their digests. The manifest lists only files of the
// log. A torn last line of the log is cut off before the next one is written.
type ledger struct {
	cfg      *Config
	report   *report
	manifest *away.Manifest // files of the log

	logMu    sync.Mutex // guards log and complete
	log      int64      // bytes of the folder's log that are whole lines
	complete []string   // lists that are in the place whole, and no longer in parts

	mu       sync.Mutex      // guards unlisted
	unlisted map[string]bool // files uploaded since this process wrote the manifest; nil: not written yet
	listed   bool            // the manifest lists all files; used only by Run
	added    []string        // files uploaded since then; used only by Run
}

// record adds uploaded files to the folder's log.
func (l *ledger) record(came ...away.Entry) (err error) {
	if len(came) == 0 {
		return nil
	}
	l.logMu.Lock()
	defer l.logMu.Unlock()
	name, lines := l.cfg.path(away.LogName), []byte(nil)
	for _, e := range came {
		lines = append(lines, e.Line()...)
	}
	if err := vfs.TruncateTo(l.cfg.Disk, name, l.log); err != nil { // torn by a full disk
		return err
	}
	f, err := l.cfg.Disk.Append(name)
	if err != nil {
		return err
	}
	if _, err = f.Write(lines); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	l.log += int64(len(lines))
	for _, e := range came {
		had := l.manifest.Parts(e.Name)
		l.put(&e)
		l.report.replaced(&e, had)
		if len(had) > 0 && away.IsPart(had[len(had)-1].Name) && !away.IsPart(e.Name) {
			l.complete = append(l.complete, e.Name)
		}
	}
	return nil
}

// put adds an uploaded file to the manifest in memory, and marks it as not yet listed in the location.
func (l *ledger) put(e *away.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.manifest.Put(*e)
	if l.unlisted != nil {
		l.unlisted[e.Name] = true
	}
}

// list writes the manifest if files are missing in it, and returns those added since the last call.
func (l *ledger) list(ctx context.Context) (news []string, written bool, err error) {
	if l.listed {
		return nil, false, nil
	}
	if err := away.WriteSmall(ctx, l.cfg.Place, away.ManifestName, l.manifest.Encode()); err != nil {
		return nil, false, fmt.Errorf("%s: %w", away.ManifestName, err)
	}
	l.listed = true
	l.mu.Lock()
	l.unlisted = map[string]bool{}
	l.mu.Unlock()
	news, l.added = l.added, nil
	return news, true, nil
}

// has reports whether the location's manifest lists a file.
func (l *ledger) has(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, is := l.manifest.Get(name)
	if !is || l.unlisted == nil || l.unlisted[name] {
		return false
	}
	if !isWARC(name) {
		return true
	}
	_, is = l.manifest.Get(indexOf(name))
	return is && !l.unlisted[indexOf(name)]
}

// dropParts removes the parts of lists that are uploaded whole and have not grown since. Parts that remain do no harm.
func (l *ledger) dropParts(ctx context.Context) {
	for _, name := range l.complete {
		if len(l.manifest.Parts(name)) > 1 {
			continue
		}
		_ = l.cfg.Place.Remove(ctx, away.PartsDir+"/"+name)
	}
	l.complete = nil
}
