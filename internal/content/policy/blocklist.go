package policy

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/base/weburl"
)

// A BlockList lists the hosts and URLs that must not be fetched. Its rules come from a text file with one rule per
// line: a host, including its subdomains, or a regular expression between slashes that is matched against URLs. Blank
// lines and lines that begin with # are ignored. The file is reloaded when it changes; if it has an error, the previous
// rules stay in force. Further rules can be set while a crawl runs.
type BlockList struct {
	extra atomic.Pointer[BlockRules]
	name  string // of the file; "": none
	now   func() time.Time
	warn  func(error)
	rules atomic.Pointer[BlockRules]

	mu      sync.Mutex // guards the fields below
	checked time.Time
	changed time.Time
}

// BlockRules are the rules of a block list.
type BlockRules struct {
	hosts    map[string]string // host → rule as written
	patterns []*regexp.Regexp
}

const recheckInterval = time.Second // of the file

// ParseBlocks parses rules, one per string.
func ParseBlocks(rules []string) (*BlockRules, error) {
	b := &BlockRules{hosts: map[string]string{}}
	for _, r := range rules {
		if len(r) > maxRule {
			return nil, fmt.Errorf("rule has %d bytes, at most %d are allowed", len(r), maxRule)
		}
		if strings.ContainsAny(r, "\r\n") {
			return nil, fmt.Errorf("rule %q has several lines", r)
		}
		if err := b.add(strings.TrimSpace(r)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

const maxRule = 4 << 10 // bytes of a rule that is not in a file

// HostsOnly reports whether all rules are hosts, so that each host is either blocked completely or not at all.
func (r *BlockRules) HostsOnly() bool { return len(r.patterns) == 0 }

// NewBlockList returns a list without a file.
func NewBlockList() *BlockList { return &BlockList{} }

// SetExtra replaces the rules that apply in addition to those of the file.
func (b *BlockList) SetExtra(rules *BlockRules) { b.extra.Store(rules) }

// OpenBlockList reads the named file. Errors of later reloads are passed to warn.
func OpenBlockList(name string, now func() time.Time, warn func(error)) (*BlockList, error) {
	b := &BlockList{name: name, now: now, warn: warn}
	return b, b.read()
}

func (b *BlockList) read() error {
	f, err := os.Open(b.name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	rules, err := parseBlockList(f)
	if err != nil {
		return fmt.Errorf("block file %s: %w", b.name, err)
	}
	b.rules.Store(rules)
	b.changed, b.checked = info.ModTime(), b.now()
	return nil
}

func parseBlockList(r io.Reader) (*BlockRules, error) {
	rules := &BlockRules{hosts: map[string]string{}}
	sc := bufio.NewScanner(r)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if err := rules.add(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return rules, sc.Err()
}

func (r *BlockRules) add(line string) error {
	if len(line) > 2 && line[0] == '/' && line[len(line)-1] == '/' {
		re, err := regexp.Compile(line[1 : len(line)-1])
		if err != nil {
			return err
		}
		r.patterns = append(r.patterns, re)
		return nil
	}
	host := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(line, "*"), "."), ".")
	if host == "" || strings.ContainsAny(host, "/\\?#@ \t*") {
		return fmt.Errorf("%q is neither a host nor a /regular expression/", line)
	}
	if strings.Contains(host, ":") && !strings.HasSuffix(host, "]") {
		return fmt.Errorf("%q has a port: write the host alone, for all its ports (an IPv6 address in brackets), or a "+
			"/regular expression/ for URLs", line)
	}
	u, err := weburl.Parse("https://" + host + "/") // in the canonical form of URLs
	if err != nil {
		return fmt.Errorf("%q is neither a host nor a /regular expression/: %w", line, err)
	}
	r.hosts[u.Hostname()] = line
	return nil
}

// Match returns the rule that blocks u, "" if none does. A nil list blocks nothing.
func (b *BlockList) Match(u weburl.URL) string {
	if b == nil {
		return ""
	}
	if own := b.extra.Load(); own != nil {
		if why := own.Match(u); why != "" {
			return why
		}
	}
	if b.name == "" {
		return ""
	}
	b.refresh()
	return b.rules.Load().Match(u)
}

// Match returns the rule that blocks u, "" if none does.
func (r *BlockRules) Match(u weburl.URL) string {
	if len(r.hosts)+len(r.patterns) == 0 {
		return ""
	}
	if why := r.MatchHost(u); why != "" {
		return why
	}
	if re := firstMatch(r.patterns, u.String()); re != nil {
		return "/" + re.String() + "/"
	}
	return ""
}

// MatchHost returns the rule that blocks the whole host of u, "" if none does.
func (r *BlockRules) MatchHost(u weburl.URL) string {
	for host := strings.TrimSuffix(u.Hostname(), "."); host != ""; {
		if line, ok := r.hosts[host]; ok {
			return line
		}
		_, host, _ = strings.Cut(host, ".")
	}
	return ""
}

// refresh reloads the file if it has changed. One caller checks; concurrent callers use the current rules.
func (b *BlockList) refresh() {
	if !b.mu.TryLock() {
		return
	}
	defer b.mu.Unlock()
	now := b.now()
	if now.Sub(b.checked) < recheckInterval {
		return
	}
	b.checked = now
	info, err := os.Stat(b.name)
	if err == nil && info.ModTime().Equal(b.changed) {
		return
	}
	if err == nil {
		err = b.read()
		b.changed = info.ModTime()
	}
	if err != nil {
		b.warn(err)
	}
}
