package seeds

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"kumo/internal/base/advice"
	"kumo/internal/base/weburl"
)

var (
	schemeLike = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:(//|[^0-9/])`)
	slashLess  = regexp.MustCompile(`^(?i)(https?):/([^/].*)?$`)
	otherLike  = regexp.MustCompile(`^(?i)(about|blob|data|file|ftp|javascript|mailto|sms|tel|view-source|wss?):`)
	localLike  = regexp.MustCompile(`^(localhost|[0-9.]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?(/|$)`)
)

// ParseURL parses a URL as a user types it.
func ParseURL(raw string) (weburl.URL, error) {
	u, err := parseURL(raw)
	if err != nil {
		return u, advice.Usage("URL %q: %w", raw, err)
	}
	return u, nil
}

// parseURL parses a URL as a user types it, and adds a missing scheme.
func parseURL(s string) (weburl.URL, error) {
	whole := strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
	if !whole {
		if err := checkScheme(s); err != nil {
			return weburl.URL{}, err
		}
	}
	switch {
	case whole, schemeLike.MatchString(s):
	case localLike.MatchString(s):
		s = "http://" + s // IP addresses rarely have certificates
	default:
		s = "https://" + s
	}
	u, err := weburl.Parse(s)
	if err != nil {
		return u, reasonOf(err)
	}
	switch {
	case u.Scheme() != "http" && u.Scheme() != "https":
		return u, fmt.Errorf("kumo crawls http and https, not %s", u.Scheme())
	case u.HasUser():
		return u, errors.New("a name or password in a URL ends up in logs: use --user and --password")
	}
	return u.Canonical(), nil
}

// checkScheme rejects other schemes, which would be taken for a host with a port, and schemes that lack a slash.
func checkScheme(s string) error {
	if m := slashLess.FindStringSubmatch(s); m != nil {
		if m[2] == "" {
			return errors.New("no host: write the whole URL, " + m[0] + "/HOST/")
		}
		return fmt.Errorf("it lacks a /: did you mean %s://%s?", m[1], clip(m[2]))
	}
	if m := otherLike.FindStringSubmatch(s); m != nil {
		return fmt.Errorf("kumo crawls http and https, not %s", strings.ToLower(m[1]))
	}
	return nil
}

// ParseWritten is ParseURL, but rejects input that is plainly not a URL, as Parse does: a word, a path.
func ParseWritten(raw string) (weburl.URL, error) {
	if !strings.Contains(raw, "://") {
		if err := checkSeed(raw); err != nil {
			return weburl.URL{}, advice.Usage("URL %q: %w", raw, err)
		}
	}
	return ParseURL(raw)
}

// reasonOf returns the reason why a URL is invalid, without the URL.
func reasonOf(err error) error {
	if e, ok := errors.AsType[*weburl.Error](err); ok {
		return e.Reason
	}
	return err
}

// parseSeed parses a seed. A browser, and so parseURL, turns nearly everything into a URL: "1,http://example.com/" is a
// page of the host "1,http". So input that is plainly not a URL is rejected here, with advice.
func parseSeed(s string) (weburl.URL, error) {
	if err := checkSeed(s); err != nil {
		return weburl.URL{}, err
	}
	u, err := parseURL(s)
	if err != nil {
		return u, err
	}
	if err := checkHost(u.Hostname()); err != nil {
		return u, err
	}
	return u, checkCommas(u)
}

// checkSeed checks how a seed is written.
func checkSeed(s string) error {
	if isPlain(s) {
		return nil
	}
	first, _ := utf8.DecodeRuneInString(s)
	switch {
	case len(s) > weburl.MaxLength:
		return weburl.ErrTooLong
	case !utf8.ValidString(s):
		return errors.New("not UTF-8")
	case strings.ContainsAny("\"'`“”‘’«»<", string(first)):
		return errors.New("in quotes or brackets: write the URL alone")
	case first == '/' && !strings.HasPrefix(s, "//"):
		return errors.New("no host: write the whole URL, https://HOST" + s[:min(len(s), 40)])
	case first == '?', first == '#', first == '.':
		return errors.New("no host: write the whole URL, https://HOST/PATH")
	}
	for i, r := range s {
		switch {
		case r == ' ' || r == '\t':
			if strings.Contains(s[i:], "://") {
				return errors.New("more than one URL: write one per line")
			}
			return errors.New("a space in it: text after the URL is a comment only if it begins with #; a space in a " +
				"URL is written %20")
		case unicode.IsControl(r):
			return errors.New("a control character in it: is this a text file?")
		}
	}
	if before, _, ok := strings.Cut(s, "://"); ok && strings.ContainsAny(before, ",;|") {
		return errors.New("a line of a table: write the URL alone")
	}
	return checkBare(s)
}

// checkBare rejects a seed without a scheme whose host is unlikely, as relative paths are written like this. With a
// port, it is accepted.
func checkBare(s string) error {
	host := s
	if end := strings.IndexAny(s, "/?#"); end >= 0 {
		host = s[:end]
	}
	switch _, kind, dotted := strings.Cut(host, "."); {
	case host == "", host == "localhost":
	case host == s && !strings.ContainsAny(s, dots+":["):
		return fmt.Errorf("a word without a dot: for a host of this name write https://%s/", s)
	case !strings.ContainsAny(host, dots+":["):
		return fmt.Errorf("its host would be %q, a word without a dot: if this is a path, write the whole URL, "+
			"https://HOST/%s; for a host of that name, https://%s", host, s[:min(len(s), 40)], s[:min(len(s), 40)])
	case dotted && isPageName[kind]:
		return fmt.Errorf("its host would be %q, which is a file name: write the whole URL, https://HOST/%s", host,
			s[:min(len(s), 40)])
	}
	return nil
}

const dots = ".。．｡" // the dots in host names

// isPageName has file extensions, except those that are top-level domains.
var isPageName = map[string]bool{"html": true, "htm": true, "xhtml": true, "php": true, "asp": true, "aspx": true,
	"jsp": true, "pdf": true, "xml": true,
	"txt": true, "csv": true}

// isPlain reports whether a seed is written in the usual form, so that checkSeed would find nothing.
func isPlain(s string) bool {
	if !strings.HasPrefix(s, "http") || !strings.Contains(s[:min(len(s), len("https://"))], "://") ||
		len(s) > weburl.MaxLength {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// checkCommas rejects a seed that is most likely a line of a table with a column of URLs. Commas are common within
// URLs, though.
func checkCommas(u weburl.URL) error {
	s := u.String()
	if !hasComma(s) {
		return nil
	}
	const otherwise = "; a comma that belongs to the URL is written %2C"
	switch path := u.Path(); {
	case strings.Contains(s, ",http://"), strings.Contains(s, ",https://"):
		return errors.New("more than one URL: write one per line" + otherwise)
	case strings.HasPrefix(path, "/,"), strings.HasSuffix(s, ","), strings.Contains(path, ",%22"):
		return errors.New("a line of a table: write the URL alone" + otherwise)
	}
	return nil
}

func hasComma(s string) bool { return strings.IndexByte(s, ',') >= 0 }

// checkHost rejects names that the URL standard allows but no host has.
func checkHost(name string) error {
	if strings.HasPrefix(name, "[") {
		return nil
	}
	bad := strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_')
	})
	switch {
	case bad >= 0 && strings.ContainsAny(name[bad:bad+1], ",;|"):
		return fmt.Errorf("the host would be %q, and no host name has %q in it: if this is a line of a table, write the "+
			"URL alone", name, name[bad:bad+1])
	case bad >= 0:
		return fmt.Errorf("the host would be %q, and no host name has %q in it", name, name[bad:bad+1])
	case strings.Contains(name, "..") || name[0] == '.':
		return fmt.Errorf("the host would be %q, which has an empty label", name)
	}
	return nil
}

// seedOf returns the seed in a line of a file, without the comment: # at the beginning or after a space.
func seedOf(line string) string {
	line = strings.TrimSpace(line)
	if strings.IndexByte(line, '#') < 0 {
		return line
	}
	for i := 0; i < len(line); i++ {
		if line[i] == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			return strings.TrimRight(line[:i], " \t")
		}
	}
	return line
}

// Parse parses seeds as a user types them, without duplicates. The error lists all invalid ones.
func Parse(raw []string) ([]weburl.URL, error) {
	seeds := make([]weburl.URL, 0, len(raw))
	met := make(map[weburl.URL]bool, len(raw))
	var bad []string
	for _, s := range raw {
		u, err := parseSeed(strings.TrimSpace(s))
		if err != nil {
			bad = append(bad, fmt.Sprintf("seed %q: %v", clip(s), err))
			continue
		}
		if !met[u] {
			seeds = append(seeds, u)
		}
		met[u] = true
	}
	if len(bad) > maxFaults {
		bad = append(bad[:maxFaults], fmt.Sprintf("and %d more", len(bad)-maxFaults))
	}
	if len(bad) > 0 {
		return nil, advice.Usage("%s", strings.Join(bad, "\n"))
	}
	return seeds, nil
}
