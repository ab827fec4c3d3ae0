package weburl

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testdata reads a file of the conformance data. Its elements are cases and comments.
func testdata[T any](t *testing.T, name string) (cases []T) {
	t.Helper()
	folder := os.Getenv("KUMO_TEST_DATA")
	if folder == "" {
		t.Skip("KUMO_TEST_DATA does not name the folder of conformance data")
	}
	data, err := os.ReadFile(filepath.Join(folder, "url", name))
	if err != nil {
		t.Fatal(err)
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(data, &elements); err != nil {
		t.Fatal(err)
	}
	for _, e := range elements {
		var c T
		if e[0] != '{' {
			continue
		}
		if err := json.Unmarshal(e, &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

type urlCase struct {
	Input, Base, Href, Protocol, Username, Hostname, Port, Pathname, Search, Host, Origin string
	Failure                                                                               bool
}

// fullyParsed matches schemes whose URLs must match exactly.
var fullyParsed = regexp.MustCompile(`^(?i)[\x00-\x20]*(https?|ftp):`)

// ours reports whether a case is about http, https or ftp. For failures, this is derived from the input or the base.
func (c urlCase) ours() bool {
	if !c.Failure {
		return fullyParsed.MatchString(c.Href)
	}
	hasScheme := regexp.MustCompile(`^[\x00-\x20]*[A-Za-z][A-Za-z0-9+.-]*:`).MatchString(c.Input)
	return fullyParsed.MatchString(c.Input) || !hasScheme && fullyParsed.MatchString(c.Base)
}

func (c urlCase) resolve() (URL, error) {
	if c.Base == "" || c.Base == "about:blank" {
		return Parse(c.Input)
	}
	base, err := Parse(c.Base)
	if err != nil {
		return URL{}, err
	}
	return base.Resolve(c.Input)
}

// failsNow are inputs of the 2021 edition that the standard has rejected since: hosts that end in a number but are not
// IPv4 addresses, and control characters in hosts.
var failsNow = map[string]bool{
	"http://0..0x300/":                  true,
	"http://256.256.256.256.256":        true,
	"http://0177.0.0.0189":              true,
	"http://\x1f!\"$&'()*+,-.;=_`{|}~/": true,
}

func TestStandard(t *testing.T) {
	n := 0
	for _, c := range testdata[urlCase](t, "urltestdata.json") {
		c.Failure = c.Failure || failsNow[c.Input]
		u, err := c.resolve()
		if !c.ours() {
			if fullyParsed.MatchString(u.String()) {
				t.Errorf("%q on %q = %q, want another scheme (%q)", c.Input, c.Base, u, c.Href)
			}
			continue
		}
		n++
		if c.Failure {
			if err == nil {
				t.Errorf("%q on %q = %q, want failure", c.Input, c.Base, u)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q on %q: %v, want %q", c.Input, c.Base, err, c.Href)
			continue
		}
		compareParts(t, c, u)
		checkCanonical(t, u)
	}
	if n < 250 {
		t.Errorf("only %d cases are about http, https and ftp", n)
	}
}

func compareParts(t *testing.T, c urlCase, u URL) {
	t.Helper()
	for _, part := range []struct{ name, got, want string }{
		{"href", u.String(), c.Href},
		{"scheme", u.Scheme() + ":", c.Protocol},
		{"hostname", u.Hostname(), c.Hostname},
		{"port", u.Port(), c.Port},
		{"host", u.Host(), c.Host},
		{"path", u.Path(), c.Pathname},
		{"query", u.Query(), strings.TrimPrefix(c.Search, "?")},
		{"origin", u.Origin(), orElse(c.Origin, u.Origin())},
	} {
		if part.got != part.want {
			t.Errorf("%q on %q: %s = %q, want %q", c.Input, c.Base, part.name, part.got, part.want)
		}
	}
	if c.Username != "" && !u.HasUser() {
		t.Errorf("%q on %q has no user, want %q", c.Input, c.Base, c.Username)
	}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

var hasALabel = regexp.MustCompile(`(^|\.)xn--`)

func TestDomainToASCII(t *testing.T) {
	type hostCase struct {
		Input  string
		Output *string
	}
	for _, c := range testdata[hostCase](t, "toascii.json") {
		// A-labels that the standard has accepted since 2026
		if c.Output == nil && isASCII(c.Input) && hasALabel.MatchString(c.Input) {
			c.Output = &c.Input
		}
		u, err := Parse("https://" + c.Input + "/x")
		switch {
		case c.Output == nil && err == nil:
			t.Errorf("%q = %q, want failure", c.Input, u.Hostname())
		case c.Output != nil && err != nil:
			t.Errorf("%q: %v, want %q", c.Input, err, *c.Output)
		case c.Output != nil && u.Hostname() != *c.Output:
			t.Errorf("%q = %q, want %q", c.Input, u.Hostname(), *c.Output)
		}
	}
}

// The test vectors of the Public Suffix List. Where they expect no domain, weburl returns the host.
func TestPublicSuffixVectors(t *testing.T) {
	folder := os.Getenv("KUMO_TEST_DATA")
	if folder == "" {
		t.Skip("KUMO_TEST_DATA does not name the folder of conformance data")
	}
	data, err := os.ReadFile(filepath.Join(folder, "url", "test_psl.txt"))
	if err != nil {
		t.Fatal(err)
	}
	vector := regexp.MustCompile(`(?m)^checkPublicSuffix\('([^.'][^']*)', (?:null|'(.*)')\);`)
	for _, m := range vector.FindAllStringSubmatch(string(data), -1) {
		host, want := hostname(t, m[1]), hostname(t, orElse(m[2], m[1]))
		if got := Domain(host); got != want {
			t.Errorf("Domain(%q) = %q, want %q", host, got, want)
		}
	}
}

func hostname(t *testing.T, name string) string {
	t.Helper()
	u, err := Parse("http://" + name)
	if err != nil {
		t.Fatal(err)
	}
	return u.Hostname()
}
