package verify

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"kumo/internal/base/vfs"
	"kumo/internal/state/journal"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
)

// Parts are the parts of a crawl, opened read-only. A part that could not be opened is nil, and Broken has the reason.
type Parts struct {
	Dir     string
	Disk    vfs.FS       // the actual files
	View    *vfs.Overlay // the files as of the next start
	Journal interface {
		journal.Journal
		Start() journal.Position
	}
	Seen      *seen.DB
	Digests   *seen.Digests
	State     *recovery.State // nil: the committed lengths are unknown, so all data counts
	FilesOnly bool            // the crawl has no state on purpose; the checks that need it are skipped
	Shared    bool            // the folder belongs to one of several nodes, between which hosts move
	Broken    []Fault
}

// Config controls a verification.
type Config struct {
	Disk   vfs.FS // has the record files; default: that of the folder
	Temp   string // folder for temporary files; "": the system's
	Memory int    // bytes for sorting claims before Temp is used; default 128 MiB
	Moved  bool   // missing WARC files were moved on purpose
	Absent string // message for missing WARC files
	// No run has ended yet, so pages.jsonl and other lists are missing.
	NoLists bool
	// Some files are missing, for example after the loss of a node, so lists may refer to missing records.
	Incomplete bool
	// Called with each fault, one at a time; those of several WARC files may be mixed. May be nil.
	Fault    func(Fault)
	Progress func(Progress) // called with the progress from time to time; may be nil
}

// A Fault is a defect or, as a note, a condition that only looks like one.
type Fault struct {
	Check  string `json:"check"`
	File   string `json:"file"`             // relative to the crawl's folder
	Offset int64  `json:"offset"`           // in the file; -1 if it has no single location
	URL    string `json:"url,omitempty"`    // "" if it does not concern a single URL
	What   string `json:"what"`             // description
	Remedy string `json:"remedy,omitempty"` // advice
}

func (f *Fault) String() string {
	s := f.File
	if f.Offset >= 0 {
		s += fmt.Sprintf(" at byte %d", f.Offset)
	}
	if f.URL != "" {
		s += ": " + f.URL
	}
	s += ": " + f.What
	if f.Remedy != "" {
		s += "; " + f.Remedy
	}
	return s
}

// A Progress is the progress of a check in bytes.
type Progress struct {
	Check       string
	Done, Total int64
}

// A Check is the result of a group of checks.
type Check struct {
	Name   string  `json:"name"`
	Counts []Count `json:"counts"`
	Faults int64   `json:"faults"`
	Notes  []Fault `json:"notes,omitempty"` // the first ones
}

// A Count is a number of checked things.
type Count struct {
	N    int64  `json:"n"`
	Unit string `json:"unit"`
}

// A Report is the result of all checks.
type Report struct {
	Checks []*Check `json:"checks"`
	Faults int64    `json:"faults"`
}

// The checks, in order.
const (
	checkJournal  = "journal"
	checkSeen     = "seen"
	checkDigests  = "digests"
	checkFrontier = "frontier"
	checkWARC     = "warc"
	checkCDXJ     = "cdxj"
	checkPages    = "pages"
	checkText     = "text"
	checkFields   = "fields"
	checkLog      = "crawl.log"
	checkSkipped  = "skipped"
	checkDeferred = "deferred"
	checkRoots    = "roots"
	checkURLs     = "urls"
	checkReport   = "report"
	checkSettings = "settings"
)

var order = []string{checkJournal, checkSeen, checkDigests, checkFrontier, checkWARC, checkCDXJ, checkPages, checkText,
	checkFields, checkLog, checkSkipped, checkDeferred, checkRoots, checkURLs, checkReport, checkSettings}

// stateChecks are checks of files other than record files.
var stateChecks = []string{checkJournal, checkSeen, checkDigests, checkFrontier, checkDeferred, checkRoots, checkReport}

// listChecks are checks of files that are complete at the end of a run.
var listChecks = []string{checkPages, checkText, checkFields, checkLog, checkSkipped, checkURLs}

type verifier struct {
	Parts
	*findings
	cfg    Config
	ctx    context.Context
	marks  map[string]int64
	claims *sorter
	files  fileTable
	tally  tally

	reading struct { // WARC files
		sync.Mutex
		done, total int64 // bytes
	}
}

// Run verifies a crawl. Faults are in the report; an error means that the verification is incomplete.
func Run(ctx context.Context, p Parts, cfg Config) (_ *Report, err error) {
	found := &findings{ctx: ctx, dir: p.Dir, onFault: cfg.Fault, checks: map[string]*Check{}}
	v := &verifier{Parts: p, findings: found, cfg: cfg, ctx: ctx, claims: newSorter(cfg.Temp, cfg.Memory),
		tally: tally{statuses: map[int]int64{}, rules: map[string]int64{}}}
	defer func() { err = errors.Join(err, v.claims.close()) }()
	report := &Report{}
	for _, name := range order {
		v.checks[name] = &Check{Name: name}
		if p.FilesOnly && slices.Contains(stateChecks, name) || cfg.NoLists && slices.Contains(listChecks, name) {
			continue
		}
		report.Checks = append(report.Checks, v.checks[name])
	}
	if p.State != nil {
		v.marks = map[string]int64{}
		for _, m := range p.State.Marks {
			v.marks[m.Name] = m.Length
		}
	}
	for i := range p.Broken {
		v.fault(p.Broken[i])
	}
	steps := []func() error{v.state, v.warcs, v.indexes, v.lists, v.join, v.counters}
	if cfg.NoLists {
		steps = steps[:3]
	}
	for _, check := range steps {
		if err := errors.Join(check(), ctx.Err()); err != nil {
			return report, err
		}
	}
	for _, c := range report.Checks {
		report.Faults += c.Faults
	}
	return report, nil
}

const maxNotes = 100 // per check

// findings collects the results of the checks. It is safe for concurrent use.
type findings struct {
	ctx context.Context
	dir string // of the crawl

	mu      sync.Mutex
	onFault func(Fault) // may be nil
	checks  map[string]*Check
}

// fault reports a fault, except after ctx has ended, which may be the cause.
func (s *findings) fault(f Fault) {
	if s.ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checks[f.Check].Faults++
	if s.onFault != nil {
		s.onFault(f)
	}
}

func (s *findings) add(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.checks[f.Check]; len(c.Notes) < maxNotes {
		c.Notes = append(c.Notes, f)
	}
}

func (s *findings) addCount(check string, n int64, unit string) {
	c := s.checks[check]
	c.Counts = append(c.Counts, Count{n, unit})
}

// broken reports errors found by a part of the state itself.
func (s *findings) broken(check, file string, err error) {
	for _, err := range splitErrors(err) {
		s.fault(Fault{Check: check, File: file, Offset: -1, What: strings.ReplaceAll(err.Error(),
			s.dir+string(filepath.Separator), "")})
	}
}

func splitErrors(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, splitErrors(e)...)
	}
	return all
}
