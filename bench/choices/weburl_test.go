package choices

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	whatwg "github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/html"

	"kumo/internal/base/weburl"
)

// resolvers return a reference's URL as serialized by the WHATWG standard.
var resolvers = []struct {
	name    string
	resolve func(base, ref string) (string, error)
}{
	{"kumo", func(base, ref string) (string, error) {
		if base == "" {
			u, err := weburl.Parse(ref)
			return u.String(), err
		}
		b, err := weburl.Parse(base)
		if err != nil {
			return "", err
		}
		u, err := b.Resolve(ref)
		return u.String(), err
	}},
	{"nlnwa/whatwg-url", func(base, ref string) (string, error) {
		u, err := whatwg.ParseRef(base, ref)
		if base == "" {
			u, err = whatwg.Parse(ref)
		}
		if err != nil {
			return "", err
		}
		return u.String(), nil
	}},
	{"net/url", func(base, ref string) (string, error) {
		u, err := url.Parse(ref)
		if err != nil {
			return "", err
		}
		if base != "" {
			b, err := url.Parse(base)
			if err != nil {
				return "", err
			}
			u = b.ResolveReference(u)
		}
		if !u.IsAbs() || u.Host == "" {
			return "", errors.New("not absolute")
		}
		return u.String(), nil
	}},
}

type urlCase struct {
	Input, Base, Href string
	Failure           bool
}

var (
	webScheme = regexp.MustCompile(`^(?i)[\x00-\x20]*(https?|ftp):`)
	anyScheme = regexp.MustCompile(`^[\x00-\x20]*[A-Za-z][A-Za-z0-9+.-]*:`)
)

// ofTheWeb reports whether a case is about http, https or ftp.
func (c urlCase) ofTheWeb() bool {
	if !c.Failure {
		return webScheme.MatchString(c.Href)
	}
	return webScheme.MatchString(c.Input) || !anyScheme.MatchString(c.Input) && webScheme.MatchString(c.Base)
}

// now applies the current standard to inputs that the 2021 edition of the cases still accepts.
func (c urlCase) now() urlCase {
	switch c.Input {
	case "http://0..0x300/", "http://256.256.256.256.256", "http://0177.0.0.0189", "http://\x1f!\"$&'()*+,-.;=_`{|}~/":
		c.Failure = true
	}
	return c
}

// TestURL counts the standard's cases for http, https and ftp that give the correct result.
func TestURL(t *testing.T) {
	var raw []json.RawMessage
	if err := json.Unmarshal(readFile(t, testdata(t, "url", "urltestdata.json")), &raw); err != nil {
		t.Fatal(err)
	}
	var cases []urlCase
	for _, one := range raw {
		var c urlCase
		if one[0] != '{' {
			continue
		}
		if err := json.Unmarshal(one, &c); err != nil {
			t.Fatal(err)
		}
		if c = c.now(); c.ofTheWeb() {
			cases = append(cases, c)
		}
	}
	cases = append(cases, hostCases(t)...)
	for _, r := range resolvers {
		right, wrong, refused, let := 0, 0, 0, 0
		for _, c := range cases {
			base := c.Base
			if base == "about:blank" {
				base = ""
			}
			got, err := r.resolve(base, c.Input)
			switch {
			case c.Failure && err == nil:
				let++
			case !c.Failure && err != nil:
				refused++
			case !c.Failure && got != c.Href:
				wrong++
			default:
				right++
			}
		}
		t.Logf("%-17s %d of %d; %d others than the standard's, %d refused, %d let through that are none",
			r.name, right, len(cases), wrong, refused, let)
	}
}

// hostCases returns cases of host names, as URLs.
func hostCases(t *testing.T) (cases []urlCase) {
	var raw []json.RawMessage
	if err := json.Unmarshal(readFile(t, testdata(t, "url", "toascii.json")), &raw); err != nil {
		t.Fatal(err)
	}
	for _, one := range raw {
		var c struct {
			Input  string
			Output *string
		}
		if one[0] != '{' {
			continue
		}
		if err := json.Unmarshal(one, &c); err != nil {
			t.Fatal(err)
		}
		if c.Output == nil && aLabel.MatchString(c.Input) {
			c.Output = &c.Input // valid in the standard since 2026
		}
		u := urlCase{Input: "https://" + c.Input + "/x", Failure: c.Output == nil}
		if c.Output != nil {
			u.Href = "https://" + *c.Output + "/x"
		}
		cases = append(cases, u)
	}
	return cases
}

// aLabel is a name in ASCII that has an A-label.
var aLabel = regexp.MustCompile(`^([ -~]*\.)?xn--[ -~]*$`)

// BenchmarkURL resolves the links of pages against their URLs, and serializes the results; kumo's are also canonical.
func BenchmarkURL(b *testing.B) {
	const base = "https://www.example.com/articles/2024/05/index.html"
	var refs []string
	for _, page := range corpus(b) {
		if refs = append(refs, hrefs(page)...); len(refs) > 20_000 {
			break
		}
	}
	b.Logf("%d links", len(refs))
	if len(refs) == 0 {
		b.Fatal("no links")
	}
	ours, err := weburl.Parse(base)
	check(b, err)
	theirs, err := whatwg.Parse(base)
	check(b, err)
	std, err := url.Parse(base)
	check(b, err)
	links := make([][]byte, len(refs))
	for i, ref := range refs {
		links[i] = []byte(ref)
	}
	var buf []byte
	failed := func(c *contender, n int) { c.note = fmt.Sprintf("%d refused", n) }
	own := &contender{name: "kumo, canonical"}
	own.run = func() error {
		n := 0
		for _, link := range links {
			var err error
			if buf, err = ours.AppendCanonical(buf[:0], link); err != nil {
				n++
			}
		}
		failed(own, n)
		return nil
	}
	value := &contender{name: "kumo, a URL"}
	value.run = func() error {
		n := 0
		for _, ref := range refs {
			if _, err := ours.Resolve(ref); err != nil {
				n++
			}
		}
		failed(value, n)
		return nil
	}
	nlnwa := &contender{name: "nlnwa/whatwg-url"}
	nlnwa.run = func() error {
		n := 0
		for _, ref := range refs {
			if u, err := theirs.Parse(ref); err != nil {
				n++
			} else {
				buf = append(buf[:0], u.Href(true)...)
			}
		}
		failed(nlnwa, n)
		return nil
	}
	stdlib := &contender{name: "net/url"}
	stdlib.run = func() error {
		n := 0
		for _, ref := range refs {
			if u, err := std.Parse(ref); err != nil {
				n++
			} else {
				buf = append(buf[:0], u.String()...)
			}
		}
		failed(stdlib, n)
		return nil
	}
	byTurns(b, "link", len(refs), own, value, nlnwa, stdlib)
}

func hrefs(page []byte) (all []string) {
	for z := html.NewTokenizer(strings.NewReader(string(page))); ; {
		switch z.Next() {
		case html.ErrorToken:
			return all
		case html.StartTagToken, html.SelfClosingTagToken:
			for _, a := range z.Token().Attr {
				if a.Key == "href" {
					all = append(all, a.Val)
				}
			}
		}
	}
}
