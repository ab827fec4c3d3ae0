package weburl

import (
	"fmt"
	"slices"
	"strings"
)

// A Mode says how far from its seeds a crawl may go.
type Mode uint8

// The modes.
const (
	ScopeHost   Mode = iota // the hosts of the seeds, with http and https alike
	ScopePage               // the seeds alone
	ScopePrefix             // what lies in or below the folders of the seeds
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

// A Verdict says whether a URL is in scope, and why.
type Verdict struct {
	In         bool
	OnSeedHost bool   // the URL's host is one of the crawl's, even if the URL is out
	Rule       string // the reason in a few words
}

// A Scope says which URLs belong to a crawl. Its methods may be called by many goroutines at once; seeds come while the
// crawl runs, and judging never waits for that.
type Scope struct {
	mode Mode
	// hosts holds the host keys of the seeds, and marks what the mode goes by beside them: a seed as a whole, a host key
	// with a folder, a registered domain.
	hosts, marks *Set
	others       []*Scope // of other modes, by which some URLs are judged
}

// NewScope makes a scope without seeds. Some URLs may be judged by others than its mode: those that are named here.
func NewScope(mode Mode, others ...Mode) *Scope {
	s := &Scope{mode: mode, hosts: NewSet(), marks: NewSet()}
	for _, m := range others {
		if m != mode && !s.Has(m) {
			s.others = append(s.others, &Scope{mode: m, hosts: s.hosts, marks: NewSet()})
		}
	}
	return s
}

// Has reports whether URLs can be judged by a mode: it is the scope's own, or named when that was made, or needs no
// seeds.
func (s *Scope) Has(mode Mode) bool {
	return mode == s.mode || mode == ScopeAny || mode == ScopeHost ||
		slices.ContainsFunc(s.others, func(o *Scope) bool { return o.mode == mode })
}

// JudgeAs is Judge by another mode, which the scope Has.
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
	return alike.Judge(u) // any or host, which have no marks
}

// AddSeed takes a seed, or what one redirects to, into the scope. URLs other than http and https are passed over.
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

// mark adds what the mode goes by beside the host.
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

// Judge says whether a URL in canonical form is in scope.
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

// inSeedDomain reports whether the host belongs to a seed's domain. The domain is only asked for where the name ends in a
// seed's, since that costs more than all the rest.
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

// belowSeed reports whether a seed lies in the URL's folder or one above it.
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
