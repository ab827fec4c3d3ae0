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

	"kumo/internal/weburl"
)

// A BlockList names what is not to be fetched. It is a text file with a rule a line: a host, which stands for its
// subdomains, too, or a regular expression between slashes that URLs are matched with. Blank lines and lines that begin
// with # do not count. The file is read again when it changes; while it has an error, the rules before hold.
type BlockList struct {
	name  string
	now   func() time.Time
	warn  func(error)
	rules atomic.Pointer[blockRules]

	mu      sync.Mutex // guards below
	checked time.Time
	changed time.Time
}

type blockRules struct {
	hosts    map[string]string // host → rule as written
	patterns []*regexp.Regexp
}

const blockCheck = time.Second // how often the file is looked at

// OpenBlockList reads the file at name. Later errors go to warn.
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

func parseBlockList(r io.Reader) (*blockRules, error) {
	rules := &blockRules{hosts: map[string]string{}}
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

func (r *blockRules) add(line string) error {
	if len(line) > 2 && line[0] == '/' && line[len(line)-1] == '/' {
		re, err := regexp.Compile(line[1 : len(line)-1])
		if err != nil {
			return err
		}
		r.patterns = append(r.patterns, re)
		return nil
	}
	host := strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(line, "*"), "."))
	if strings.ContainsAny(host, "/ \t*") {
		return fmt.Errorf("%q is neither a host nor a /regular expression/", line)
	}
	r.hosts[host] = line
	return nil
}

// Match returns the rule that forbids u, "" if none does. A nil list forbids nothing.
func (b *BlockList) Match(u weburl.URL) string {
	if b == nil {
		return ""
	}
	b.refresh()
	return b.rules.Load().match(u)
}

func (r *blockRules) match(u weburl.URL) string {
	for host := u.Hostname(); host != ""; {
		if line, ok := r.hosts[host]; ok {
			return line
		}
		_, host, _ = strings.Cut(host, ".")
	}
	for _, re := range r.patterns {
		if re.MatchString(u.String()) {
			return "/" + re.String() + "/"
		}
	}
	return ""
}

// refresh reads the file again when it has changed. One caller looks, the others go on with what is known.
func (b *BlockList) refresh() {
	if !b.mu.TryLock() {
		return
	}
	defer b.mu.Unlock()
	now := b.now()
	if now.Sub(b.checked) < blockCheck {
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
