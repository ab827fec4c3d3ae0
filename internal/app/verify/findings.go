package verify

import (
	"context"
	"path/filepath"
	"strings"
)

const maxNotes = 100 // kept of a check

// findings are what the checks have found so far.
type findings struct {
	ctx    context.Context
	dir    string      // of the crawl
	told   func(Fault) // may be nil
	checks map[string]*Check
}

// fault counts a fault. What could not be read because ctx has ended is none.
func (s *findings) fault(f Fault) {
	if s.ctx.Err() != nil {
		return
	}
	s.checks[f.Check].Faults++
	if s.told != nil {
		s.told(f)
	}
}

func (s *findings) note(f Fault) {
	if c := s.checks[f.Check]; len(c.Notes) < maxNotes {
		c.Notes = append(c.Notes, f)
	}
}

func (s *findings) counted(check string, n int64, unit string) {
	c := s.checks[check]
	c.Counts = append(c.Counts, Count{n, unit})
}

// broken tells of what a room of the state says of itself.
func (s *findings) broken(check, file string, err error) {
	for _, err := range apart(err) {
		s.fault(Fault{Check: check, File: file, Offset: -1, What: strings.ReplaceAll(err.Error(),
			s.dir+string(filepath.Separator), "")})
	}
}

func apart(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, apart(e)...)
	}
	return all
}
