package weburl

import (
	"fmt"
	"slices"
	"strings"
)

// A Mode determines how far from its seeds a crawl may go.
type Mode uint8

// The modes.
const (
	ScopeHost   Mode = iota // the hosts of the seeds, for both http and https
	ScopePage               // only the seeds
	ScopePrefix             // the folders of the seeds and everything below
	ScopeDomain             // the registered domains of the seeds
	ScopeAny                // everything
)

var modeNames = [...]string{"host", "page", "prefix", "domain", "any"}

// ParseMode reads a mode's name: host, page, prefix, domain or any.
func ParseMode(name string) (Mode, error) {
	if i := slices.Index(modeNames[:], name); i >= 0 {
		return Mode(i), nil
	}
	return 0, fmt.Errorf("scope %q: not one of page, prefix, host, domain, any", name)
}

func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return "unknown"
}

// A Verdict is the decision whether a URL is in scope.
type Verdict struct {
	In         bool
	OnSeedHost bool   // the URL's host is in scope, even if the URL is not
	Rule       string // short reason for the decision
}

// A Scope decides which URLs belong to a crawl. It is safe for concurrent use. Seeds can be added while the crawl runs;
// Judge never blocks.
type Scope struct {
	mode Mode
	// hosts has the host keys of the seeds. marks has further keys, depending on the mode: seed URLs, host keys with a
	// folder, or registered domains.
	hosts, marks *Set
	others       []*Scope // scopes of the other modes
}

// NewScope returns a scope without seeds. others are further modes for JudgeAs.
func NewScope(mode Mode, others ...Mode) *Scope {
	s := &Scope{mode: mode, hosts: NewSet(), marks: NewSet()}
	for _, m := range others {
		if m != mode && !s.Has(m) {
			s.others = append(s.others, &Scope{mode: m, hosts: s.hosts, marks: NewSet()})
		}
	}
	return s
}

// Has reports whether JudgeAs supports a mode: the scope's own, a mode given to NewScope, or a mode without marks.
func (s *Scope) Has(mode Mode) bool {
	return mode == s.mode || mode == ScopeAny || mode == ScopeHost ||
		slices.ContainsFunc(s.others, func(o *Scope) bool { return o.mode == mode })
}

// JudgeAs is Judge by another mode. Has must be true for the mode.
func (s *Scope) JudgeAs(mode Mode, u URL) Verdict {
	if mode == s.mode {
		return s.Judge(u)
	}
	for _, o := range s.others {
		if o.mode == mode {
			return o.Judge(u)
		}
	}
	alike := Scope{mode: mode, hosts: s.hosts, marks: s.marks}
	return alike.Judge(u) // ScopeAny and ScopeHost use no marks
}

// AddSeed adds a seed, or the target of its redirect. Only http and https URLs are added.
func (s *Scope) AddSeed(u URL) {
	u = u.Canonical()
	if !u.IsHTTP() {
		return
	}
	s.hosts.Add(u.Host())
	s.mark(u)
	for _, o := range s.others {
		o.mark(u)
	}
}

// mark adds the key of a seed that the mode needs, besides the host.
func (s *Scope) mark(u URL) {
	switch s.mode {
	case ScopePage:
		s.marks.Add(u.href)
	case ScopePrefix:
		s.marks.Add(u.href[u.at.host:u.at.path] + folder(u.Path()))
	case ScopeDomain:
		s.marks.Add(Domain(u.Hostname()))
	}
}

func folder(path string) string { return path[:strings.LastIndexByte(path, '/')+1] }

// Judge decides whether a canonical URL is in scope.
func (s *Scope) Judge(u URL) Verdict {
	if !u.IsHTTP() {
		return Verdict{Rule: "not http or https"}
	}
	if s.mode == ScopeAny {
		return Verdict{true, true, "any host"}
	}
	near := s.hosts.Has(u.Host())
	switch s.mode {
	case ScopeDomain:
		if near || s.inSeedDomain(u.Hostname()) {
			return Verdict{true, true, "same domain as a seed"}
		}
		return Verdict{Rule: "another domain"}
	}
	if !near {
		return Verdict{Rule: "another host"}
	}
	switch s.mode {
	case ScopePage:
		if s.marks.Has(u.href) {
			return Verdict{true, true, "a seed"}
		}
		return Verdict{OnSeedHost: true, Rule: "not a seed"}
	case ScopePrefix:
		if s.belowSeed(u) {
			return Verdict{true, true, "below a seed's folder"}
		}
		return Verdict{OnSeedHost: true, Rule: "not below a seed's folder"}
	}
	return Verdict{true, true, "same host as a seed"}
}

// inSeedDomain reports whether a host belongs to the domain of a seed. Computing a domain is expensive, so it is done
// only if the hostname ends in a seed's domain.
func (s *Scope) inSeedDomain(hostname string) bool {
	for name := strings.TrimSuffix(hostname, "."); ; {
		if s.marks.Has(name) {
			return Domain(hostname) == name
		}
		_, parent, ok := strings.Cut(name, ".")
		if !ok {
			return false
		}
		name = parent
	}
}

// belowSeed reports whether a seed is in the URL's folder or in a folder above it.
func (s *Scope) belowSeed(u URL) bool {
	for key := u.href[u.at.host:u.at.pathEnd]; ; key = key[:len(key)-1] {
		i := strings.LastIndexByte(key, '/')
		if i < 0 {
			return false
		}
		if key = key[:i+1]; s.marks.Has(key) {
			return true
		}
	}
}
