package batch

import (
	"bytes"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"kumo/internal/base/page"
	"kumo/internal/content/policy"
)

func everyByte() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

var someTime = time.Date(2026, 11, 21, 3, 4, 5, 678_000, time.UTC)

// samples returns records of each kind.
func samples() (documents []Document, links []OutLinks, urls []InURL, known []Known, rules []RobotsRecord, moves []Move) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
	raw := append([]byte(head), everyByte()...)
	documents = []Document{
		{Collection: "de", URL: "http://a.test/", Request: []byte{}, Raw: []byte{}},
		{Collection: "zh", URL: "https://a.test/x?y=%20", From: "https://a.test/", RedirectTo: "https://b.test/", Depth: 3,
			Redirects: 2, Seed: true, Time: someTime, Took: 1234 * time.Millisecond, Status: 200,
			Addr: netip.MustParseAddrPort("[2001:db8::1]:8080"), Request: []byte("GET / HTTP/1.1\r\n\r\n"), Raw: raw,
			HeadLen: len(head), Truncated: page.Length, Malformed: "gzip: x", Digest: page.Digest{1, 19: 2}, Change: page.Changed,
			SameAs: Stored{Time: someTime, Chunked: page.Digest{4}},
			Type:   "text/html", Charset: "gbk", CharsetHow: "meta", Lang: "zh", Share: 0.75, Confidence: 0.5,
			Title: "t", Headline: "h", Text: "a\nb", Simhash: 1<<63 | 5, MetaFollow: true, MetaIndex: true, NoArchive: true},
		{Collection: "ja", URL: "http://c.test/", Time: time.Unix(-5, 0).UTC(), Failure: page.DNS, Rule: "robots",
			Detail: "no such host", Unmodified: true, Request: []byte{}, Raw: []byte{}},
	}
	links = []OutLinks{
		{Collection: "de", URL: "http://a.test/"},
		{Collection: "de", URL: "http://a.test/", Type: RedirectLink, Time: someTime, Links: []string{"http://b.test/"},
			Depth: 1, Redirects: 3, Seed: true},
		{Collection: "de", URL: "http://a.test/", Links: []string{"http://b.test/", "http://c.test/"}},
	}
	urls = []InURL{
		{Collection: "de", URL: "http://a.test/"},
		{Collection: "de", URL: "http://a.test/", Depth: 9, Redirects: 1, Seed: true, From: "http://f.test/",
			Robots: "https://r.test", Known: true, Due: true, ETag: `W/"x"`, Modified: someTime.Truncate(time.Second),
			Digest: page.Digest{7}},
	}
	known = []Known{
		{Collection: "de", URL: "http://a.test/"},
		{Collection: "de", URL: "http://a.test/", Depth: 2, Seed: true, First: someTime, Status: 404, Changes: 12,
			Visits: policy.Visits{Last: someTime, Due: policy.Never, Every: time.Hour, Missing: 4}, Digest: page.Digest{3},
			ETag: "e", Modified: someTime, Stored: Stored{Time: someTime, Chunked: page.Digest{9}}},
	}
	rules = []RobotsRecord{{Origin: "http://a.test", Body: []byte{}},
		{Origin: "https://a.test:81", Time: someTime, Status: 200, Body: everyByte()},
		{Origin: "https://a.test", Time: someTime, RedirectTo: "https://b.test/robots.txt", Body: []byte{}, Exchange: Document{
			Collection: sharedCode, URL: "https://a.test/robots.txt", Time: someTime, Status: 301, Request: []byte("GET"),
			Raw: []byte("HTTP/1.1 301 x\r\n\r\n"), HeadLen: 18}}}
	moves = []Move{{Collection: "de", URL: "http://a.test/"},
		{Collection: "de", URL: "http://a.test/", To: "https://www.a.test/"}}
	return documents, links, urls, known, rules, moves
}

func TestRecordsComeBack(t *testing.T) {
	documents, links, urls, known, rules, moves := samples()
	comesBack(t, documents, (*Document).Key, (*Document).Append, ReadDocument)
	comesBack(t, links, (*OutLinks).Key, (*OutLinks).Append, ReadOutLinks)
	comesBack(t, urls, (*InURL).Key, (*InURL).Append, ReadInURL)
	comesBack(t, known, (*Known).Key, (*Known).Append, ReadKnown)
	comesBack(t, rules, (*RobotsRecord).Key, (*RobotsRecord).Append, ReadRobotsRecord)
	comesBack(t, moves, (*Move).Key, (*Move).Append, ReadMove)
}

func comesBack[T any](t *testing.T, all []T, key func(*T) []byte, write func(*T, []byte) []byte,
	read func(key, value []byte) (T, error)) {
	t.Helper()
	for i := range all {
		value := write(&all[i], []byte("before"))
		value, ok := bytes.CutPrefix(value, []byte("before"))
		if !ok {
			t.Errorf("%T: what was before is gone", all[i])
		}
		got, err := read(key(&all[i]), value)
		if err != nil {
			t.Errorf("%+v: %v", all[i], err)
		}
		if diff := cmp.Diff(all[i], got, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
			t.Errorf("it came back as another: %s", diff)
		}
		for n := range value { // truncated anywhere
			if _, err := read(key(&all[i]), value[:n]); !errors.Is(err, ErrDamaged) {
				t.Errorf("%d bytes of %d are a %T: %v", n, len(value), all[i], err)
			}
		}
		other := bytes.Clone(value)
		other[1]++
		if _, err := read(key(&all[i]), other); !errors.Is(err, ErrVersion) {
			t.Errorf("a %T of the next version: %v", all[i], err)
		}
		if _, err := read(key(&all[i]), append(bytes.Clone(value), 0)); !errors.Is(err, ErrDamaged) {
			t.Errorf("a %T with a byte more: %v", all[i], err)
		}
	}
}

func TestAHugeDocumentComesBack(t *testing.T) {
	size := 100 << 20
	if testing.Short() {
		size = 10 << 20
	}
	d := Document{Collection: "de", URL: "http://a.test/", Raw: bytes.Repeat(everyByte(), size/256)}
	got, err := ReadDocument(d.Key(), d.Append(nil))
	if err != nil || !bytes.Equal(got.Raw, d.Raw) {
		t.Errorf("%d bytes came back of %d: %v", len(got.Raw), len(d.Raw), err)
	}
}

// fuzzValue adds samples of all kinds.
func fuzzValue(f *testing.F) {
	documents, links, urls, known, rules, moves := samples()
	for i := range documents {
		f.Add(documents[i].Append(nil))
	}
	for i := range links {
		f.Add(links[i].Append(nil))
	}
	for i := range urls {
		f.Add(urls[i].Append(nil))
	}
	for i := range known {
		f.Add(known[i].Append(nil))
	}
	for i := range rules {
		f.Add(rules[i].Append(nil))
	}
	for i := range moves {
		f.Add(moves[i].Append(nil))
	}
}

// FuzzRecords decodes arbitrary bytes as each kind of record. Decoded records must survive a round trip.
func FuzzRecords(f *testing.F) {
	fuzzValue(f)
	f.Fuzz(func(t *testing.T, value []byte) {
		again(t, value, (*Document).Append, ReadDocument)
		again(t, value, (*OutLinks).Append, ReadOutLinks)
		again(t, value, (*InURL).Append, ReadInURL)
		again(t, value, (*Known).Append, ReadKnown)
		again(t, value, (*RobotsRecord).Append, ReadRobotsRecord)
		again(t, value, (*Move).Append, ReadMove)
	})
}

func again[T any](t *testing.T, value []byte, write func(*T, []byte) []byte, read func(key, value []byte) (T, error)) {
	key := Key("de", "http://a.test/")
	first, err := read(key, value)
	if err != nil {
		return
	}
	second, err := read(key, write(&first, nil))
	if err != nil {
		t.Fatalf("%+v cannot be read again: %v", first, err)
	}
	if !bytes.Equal(write(&first, nil), write(&second, nil)) {
		t.Fatalf("%+v came back as %+v", first, second)
	}
}

func TestKeys(t *testing.T) {
	code, url, err := SplitKey(Key("zh", "http://a.test/?q=a+b"))
	if err != nil || code != "zh" || url != "http://a.test/?q=a+b" {
		t.Errorf("%q %q %v", code, url, err)
	}
	for _, bad := range []string{"", "zh", " http://a.test/", "zh "} {
		if _, _, err := SplitKey([]byte(bad)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q is a key: %v", bad, err)
		}
	}
}

func TestADocumentHasItsAnswerAgain(t *testing.T) {
	raw := "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n<p>\r\n0\r\n\r\n"
	d := Document{URL: "http://a.test/", Status: 200, Raw: []byte(raw), HeadLen: strings.Index(raw, "3\r\n<p>")}
	var resp page.Response
	if err := d.Response(&resp); err != nil {
		t.Fatal(err)
	}
	if string(resp.Payload) != "<p>" || resp.Status != 200 || resp.Header.Get("Content-Type") != "text/html" {
		t.Errorf("%+v", resp)
	}
	if err := (&Document{URL: "http://a.test/"}).Response(&resp); err == nil {
		t.Error("a document without an answer has one")
	}
}

func TestInURLsMergeToTheSameInAnyOrder(t *testing.T) {
	all := []InURL{
		{Depth: 2, From: "http://b.test/"},
		{Depth: 2, From: "http://a.test/", Due: true},
		{Depth: 1, Redirects: 1, From: "http://c.test/"},
		{Depth: 5, Known: true, ETag: "x", Digest: page.Digest{1}},
		{Depth: 1, Redirects: 2, Seed: true},
	}
	want := InURL{Depth: 1, Redirects: 1, From: "http://c.test/", Seed: true, Due: true, Known: true, ETag: "x",
		Digest: page.Digest{1}}
	for i := range all {
		for j := range all {
			got := all[i]
			for k := range all {
				got.merge(&all[(j+k)%len(all)])
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("from %d, %d: %+v", i, j, got)
			}
		}
	}
}

func TestWhatALinkIsInTheNextRound(t *testing.T) {
	o := OutLinks{Collection: "de", URL: "http://a.test/", Depth: 2, Redirects: 3, Seed: true}
	if got, want := o.To("http://b.test/"), (InURL{Collection: "de", URL: "http://b.test/", From: "http://a.test/",
		Depth: 3}); got != want {
		t.Errorf("a link: %+v", got)
	}
	o.Type = RedirectLink
	if got, want := o.To("http://b.test/"), (InURL{Collection: "de", URL: "http://b.test/", From: "http://a.test/",
		Depth: 2, Redirects: 4, Seed: true}); got != want {
		t.Errorf("a redirect: %+v", got)
	}
}
