package robots

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Parse parses body for agent, a product token such as "kumo" without a version. Letter case is ignored. A token with
// characters other than letters, "-" and "_" never matches a file and gets the rules for "*". All groups that name the
// agent are combined; if there is one, the rules for "*" do not apply. Parse never fails: it skips invalid lines, and
// reads only the first 500 KiB.
func Parse(body []byte, agent string) *Rules {
	p := parser{agent: agent}
	for line, rest := "", readable(body); rest != ""; {
		line, rest = nextLine(rest)
		p.number++
		p.line(line)
	}
	return p.finish()
}

// A parser collects the rules for its agent and those for "*", since it learns only at the end which apply.
type parser struct {
	agent     string
	mine, any group
	number    uint32 // of the current line
	named     bool   // a line named the agent
	forMine   bool   // the current group is for the agent
	forAny    bool   // the current group is for "*"
	hasRules  bool   // the group has rules, so the next User-agent line begins a new one
	grouped   bool   // there was a User-agent line
	statedFor struct {
		mine, any bool // as forMine and forAny, for statements
		ended     bool // as hasRules, for statements
	}
	sitemaps []string
	usage    []Statement // for all agents
	clean    []CleanParam
	cleaned  int // number of names in clean
}

// A group holds the lines for one agent.
type group struct {
	text     []byte
	rules    []rule
	delay    time.Duration // from Crawl-delay
	hasDelay bool
	rates    []Rate
	usage    []Statement
}

func (p *parser) line(line string) {
	line, key, value, ok := splitLine(line)
	if !ok {
		return
	}
	switch is := directiveOf(key); is {
	case userAgent:
		p.begin(value)
	case allow, disallow:
		p.hasRules, p.statedFor.ended = p.forMine || p.forAny, true
		p.each(func(g *group) { g.add(rule{number: p.number, allow: is == allow}, line, value) })
	case crawlDelay:
		p.each(func(g *group) { g.setDelay(parseDelay(value)) })
	case requestRate:
		p.each(func(g *group) { g.rate(parseRate(value)) })
	case sitemap:
		if value != "" {
			p.sitemaps = append(p.sitemaps, strings.Clone(value))
		}
	case usage:
		p.statement(line, key, value)
	case cleanParam:
		if c, ok := parseCleanParam(value, maxCleanParams-p.cleaned); ok {
			p.clean = append(p.clean, c)
			p.cleaned += len(c.Params)
		}
	}
}

// begin processes a User-agent line. Consecutive ones begin a group together; only Allow and Disallow lines end the
// sequence.
func (p *parser) begin(value string) {
	p.grouped = true
	if p.hasRules {
		p.forMine, p.forAny, p.hasRules = false, false, false
	}
	if p.statedFor.ended {
		p.statedFor.mine, p.statedFor.any, p.statedFor.ended = false, false, false
	}
	switch {
	case value == "*" || len(value) > 1 && value[0] == '*' && strings.IndexByte(space, value[1]) >= 0:
		p.forAny, p.statedFor.any = true, true
	case strings.EqualFold(productToken(value), p.agent):
		p.forMine, p.statedFor.mine, p.named = true, true, true
	}
}

// productToken returns the product token of a User-agent value: "FooBot" for "FooBot/2.1 (beta)".
func productToken(value string) string {
	for i := range len(value) {
		if c := value[i] | 0x20; !isLower(c) && value[i] != '-' && value[i] != '_' {
			return value[:i]
		}
	}
	return value
}

// IsAgent reports whether a token can match a file: it has letters, "-" and "_" only.
func IsAgent(token string) bool { return token != "" && productToken(token) == token }

// each calls f with the group of the current lines. Lines for both the agent and "*" are added to the agent's group
// only.
func (p *parser) each(f func(*group)) {
	switch {
	case p.forMine:
		f(&p.mine)
	case p.forAny:
		f(&p.any)
	}
}

func (p *parser) finish() *Rules {
	g := &p.any
	if p.named {
		g = &p.mine
	}
	slices.SortStableFunc(g.rules, byPrecedence)
	if !g.hasDelay {
		for _, r := range g.rates {
			g.setDelay(r.Delay(), true)
		}
	}
	return &Rules{text: string(g.text), rules: slices.Clone(g.rules), sitemaps: p.sitemaps, clean: p.clean,
		delay: g.delay, hasDelay: g.hasDelay, rates: g.rates, usage: inFileOrder(p.usage, g.usage)}
}

// byPrecedence sorts longer patterns first, and Allow before Disallow.
func byPrecedence(a, b rule) int {
	switch {
	case a.priority != b.priority:
		return cmp.Compare(b.priority, a.priority)
	case a.allow == b.allow:
		return 0
	case a.allow:
		return -1
	}
	return 1
}

// add adds a rule of a line, which ends with the pattern as written. It ignores a pattern that is empty or cannot match
// a path.
func (g *group) add(u rule, line, pattern string) {
	if pattern == "" || pattern[0] != '/' && pattern[0] != '*' {
		return
	}
	at := len(g.text)
	g.text = append(g.text, line...)
	u.line, u.lineLen = uint32(at), uint16(len(line))
	g.put(u, pattern)

	if slash := strings.LastIndexByte(pattern, '/'); u.allow && slash >= 0 &&
		strings.HasPrefix(pattern[slash:], "/index.htm") {
		// Allowing a directory's index page also allows the directory's own URL.
		g.put(u, pattern[:slash+1]+"$")
	}
}

// put adds u with its pattern. If the pattern is in normal form and u's line was just written, the text already ends
// with it.
func (g *group) put(u rule, pattern string) {
	u.priority = uint16(len(pattern))
	for i := range len(pattern) {
		if pattern[i] >= 0x80 {
			u.priority += 2
		}
	}
	if at := len(g.text) - len(pattern); isNormal(pattern, true) && string(g.text[at:]) == pattern {
		u.pattern, u.patternLen = uint32(at), uint16(len(pattern))
	} else {
		u.pattern = uint32(len(g.text))
		g.text = appendNormal(g.text, pattern, true)
		u.patternLen = uint16(len(g.text) - int(u.pattern))
	}
	u.nonCanonical = !isCanonical(string(g.text[u.pattern : u.pattern+uint32(u.patternLen)]))
	g.rules = append(g.rules, u)
}

// setDelay sets the delay; the longest applies.
func (g *group) setDelay(d time.Duration, ok bool) {
	if ok {
		g.delay, g.hasDelay = max(g.delay, d), true
	}
}

// maxRates limits the Request-rate lines of a group: one per hour of the day.
const maxRates = 24

func (g *group) rate(r Rate, ok bool) {
	if ok && len(g.rates) < maxRates {
		g.rates = append(g.rates, r)
	}
}
