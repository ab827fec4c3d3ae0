package verify

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"kumo/internal/base/vfs"
	"kumo/internal/state/journal"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
)

// Parts are a crawl, opened so that nothing of it changes. Where one could not be opened it is nil, and Broken says
// why.
type Parts struct {
	Dir     string
	Disk    vfs.FS       // the files as they are
	View    *vfs.Overlay // as the next start will have them
	Journal interface {
		journal.Journal
		Start() journal.Position
	}
	Seen      *seen.DB
	Digests   *seen.Digests
	State     *recovery.State // nil: what is committed is not known, so all that is there counts
	FilesOnly bool            // there are record files and no state, as it is meant: what only that says is not checked
	Shared    bool            // the folder is that of one node of several: hosts come from others, and go to them
	Broken    []Fault
}

// Config says how to verify.
type Config struct {
	Disk   vfs.FS // has the record files; default that of the folder
	Temp   string // a folder for what does not fit into memory; "": the system's
	Memory int    // bytes that claims may have before they are written to Temp; 128 MiB
	Moved  bool   // WARC files that are not here were moved on purpose
	Absent string // what is said of them; default that they are not here
	// no run has ended whose files these are: pages.jsonl and its like are not there, as it is meant
	NoLists bool
	// not all has come to where they are, from a node that was lost, say: lists may name what did not
	Incomplete bool
	Fault      func(Fault)    // is told each fault when it is found; may be nil
	Progress   func(Progress) // is told now and then how far it is; may be nil
}

// A Fault is something that is wrong, or, as a note, something that looks so and is not.
type Fault struct {
	Check  string `json:"check"`
	File   string `json:"file"`             // relative to the crawl's folder
	Offset int64  `json:"offset"`           // in the file, -1 if there is no one place
	URL    string `json:"url,omitempty"`    // "" if it is not about one
	What   string `json:"what"`             // is wrong
	Remedy string `json:"remedy,omitempty"` // what can be done about it
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

// A Progress says how far a check is, in bytes.
type Progress struct {
	Check       string
	Done, Total int64
}

// A Check is what was looked at together.
type Check struct {
	Name   string  `json:"name"`
	Counts []Count `json:"counts"`
	Faults int64   `json:"faults"`
	Notes  []Fault `json:"notes,omitempty"` // the first of them
}

// A Count is how many of something were looked at.
type Count struct {
	N    int64  `json:"n"`
	Unit string `json:"unit"`
}

// A Report is what came of all checks.
type Report struct {
	Checks []*Check `json:"checks"`
	Faults int64    `json:"faults"`
}

// The checks, in their order.
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

// stateChecks are checks of what is no record file.
var stateChecks = []string{checkJournal, checkSeen, checkDigests, checkFrontier, checkDeferred, checkRoots, checkReport}

// listChecks are checks of what is whole when a run ends.
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
}

// Run checks a crawl. Its error says that it could not be checked to the end; faults are in the report.
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

const maxNotes = 100 // kept of a check

// findings are what the checks have found so far.
type findings struct {
	ctx     context.Context
	dir     string      // of the crawl
	onFault func(Fault) // may be nil
	checks  map[string]*Check
}

// fault counts a fault. What could not be read because ctx has ended is none.
func (s *findings) fault(f Fault) {
	if s.ctx.Err() != nil {
		return
	}
	s.checks[f.Check].Faults++
	if s.onFault != nil {
		s.onFault(f)
	}
}

func (s *findings) note(f Fault) {
	if c := s.checks[f.Check]; len(c.Notes) < maxNotes {
		c.Notes = append(c.Notes, f)
	}
}

func (s *findings) addCount(check string, n int64, unit string) {
	c := s.checks[check]
	c.Counts = append(c.Counts, Count{n, unit})
}

// broken tells of what a room of the state says of itself.
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
