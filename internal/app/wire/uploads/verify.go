package uploads

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/verify"
	"kumo/internal/app/wire"
	"kumo/internal/archive/away"
	"kumo/internal/archive/upload"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
)

// Verification of an uploaded crawl: the consistency of its files, and files that are not uploaded yet.

// Verify checks the uploaded files of a crawl against each other and the manifest. It has the signature of wire.Verify.
func (s *Source) Verify(ctx context.Context, dir string, cfg verify.Config) (*verify.Report, error) {
	waits, err := s.pending(ctx)
	if err != nil {
		return nil, err
	}
	_, ended := s.manifest.Get("report.json")
	parts := s.manifest.HasParts()
	cfg.Incomplete = parts || !ended // the crawl is running, or a node was lost
	cfg.NoLists = !parts && (!ended || waits != nil && s.hasOldLists(waits.since))
	if waits != nil && !cfg.Moved {
		cfg.Moved, cfg.Absent = true, "the file is not uploaded yet"
	}
	r, err := wire.VerifyFiles(ctx, dir, cfg)
	if err != nil {
		return r, err
	}
	check := &verify.Check{Name: "manifest", Counts: []verify.Count{{N: int64(len(s.manifest.All())), Unit: "files"}}}
	differ, err := s.differences(ctx, waits != nil)
	if err != nil {
		return r, err
	}
	for _, f := range differ {
		f.Check, f.Offset = check.Name, -1
		// the manifest may not be updated yet
		if waits != nil && f.What != missingFile && slices.Contains(rewritten, f.File) {
			check.Notes = append(check.Notes, f)
			continue
		}
		check.Faults++
		if cfg.Fault != nil {
			cfg.Fault(f)
		}
	}
	if waits != nil {
		check.Notes = append(check.Notes, waits.fault(check.Name, cfg.NoLists))
	}
	r.Checks, r.Faults = append(r.Checks, check), r.Faults+check.Faults
	return r, nil
}

// missingFile is the description of a file that is in the manifest, but missing.
const missingFile = "it is in the manifest, but missing: it was uploaded and is lost"

// rewritten are files that each run replaces.
var rewritten = []string{"report.json", "index.cdxj", settings.Name}

// differences returns the files that differ from the manifest, unless the manifest has changed since. While a crawl
// runs, lists may be longer.
func (s *Source) differences(ctx context.Context, goesOn bool) (all []verify.Fault, err error) {
	for _, e := range s.manifest.All() {
		what, err := s.compare(ctx, &e, goesOn && slices.Contains(growingFiles(), e.Name))
		if err != nil {
			return nil, err
		}
		if what != "" {
			all = append(all, verify.Fault{File: e.Name, What: what})
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	now, err := away.ReadManifest(ctx, s.place)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(f verify.Fault) bool {
		was, _ := s.manifest.Get(f.File)
		is, named := now.Get(f.File)
		return !named || is != was
	}), nil
}

// compare describes how a file differs from its entry in the manifest. If grows is true, it may be longer.
func (s *Source) compare(ctx context.Context, e *away.Entry, grows bool) (what string, err error) {
	info, err := s.place.Stat(ctx, e.Name)
	if away.IsMissing(err) {
		return missingFile, nil
	}
	if err != nil {
		return "", err
	}
	if info.Size != e.Size && (!grows || info.Size < e.Size) {
		return fmt.Sprintf("it has %d bytes, the manifest says %d", info.Size, e.Size), nil
	}
	if strings.Contains(e.Name, ".warc") {
		return "", nil // its records have digests
	}
	src, err := s.place.Open(ctx, e.Name, 0, e.Size)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, src)
	if got := hex.EncodeToString(sum.Sum(nil)); err == nil && got != e.SHA256 {
		what = fmt.Sprintf("its SHA-256 is %s, the manifest says %s", got, e.SHA256)
	}
	return what, errors.Join(err, src.Close())
}

// pendingFiles describes files that are not uploaded yet.
type pendingFiles struct {
	since time.Time // start of their run
	what  string    // their number and location
	lost  bool      // the same command cannot upload them
}

// pending describes the files that an unfinished upload has left; nil: none.
func (s *Source) pending(ctx context.Context) (*pendingFiles, error) {
	m, err := away.ReadMark(ctx, s.place)
	if errors.Is(err, away.ErrMarkUnreadable) {
		return nil, nil
	}
	if m == nil || !m.Open || err != nil {
		return nil, err
	}
	w := &pendingFiles{since: m.Time, what: fmt.Sprintf("the missing files are in the folder %s on %s", m.Folder,
		m.Machine)}
	if here, err := os.Hostname(); err != nil || here != m.Machine {
		return w, nil
	}
	link, err := away.ReadLink(m.Folder)
	switch {
	case err != nil:
		return nil, err
	case link != nil && link.ID != m.ID:
		w.lost, w.what = true, fmt.Sprintf("another crawl is in %s on this machine: the files that were not uploaded may "+
			"have been moved aside", m.Folder)
		return w, nil
	case link == nil:
		w.lost, w.what = true, fmt.Sprintf("its folder %s no longer exists on this machine, and the files that were not "+
			"uploaded are lost with it", m.Folder)
		return w, nil
	}
	names, bytes, err := upload.Pending(vfs.OS, m.Folder, growingFiles(), s.manifest)
	if err != nil {
		return nil, err
	}
	n := int64(len(names))
	w.what = fmt.Sprintf("%s (%s) %s in %s on this machine: %s", stats.Count(n, "files"), stats.Bytes(bytes),
		stats.Either(n, "waits", "wait"), m.Folder, sample(names))
	if len(names) == 0 {
		w.what = "only open files are pending in " + m.Folder + " on this machine"
	}
	return w, nil
}

func sample(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// hasOldLists reports whether uploaded lists may be older than the run that started at began.
func (s *Source) hasOldLists(began time.Time) bool {
	for _, name := range folder.Outputs {
		if e, is := s.manifest.Get(name); is && e.Time.Before(began) {
			return true
		}
	}
	return false
}

func (w *pendingFiles) fault(check string, noLists bool) verify.Fault {
	f := verify.Fault{Check: check, File: away.MarkName, Offset: -1, What: fmt.Sprintf("the run of %s has not "+
		"uploaded all its files yet: %s", w.since.UTC().Format("2006-01-02 15:04:05"), w.what)}
	if !w.lost {
		f.Remedy = "run the same command there to upload them"
	}
	if noLists {
		f.What += "; only the uploaded WARC files, their indexes and the manifest were verified, not the lists"
	}
	return f
}
