package mime

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"
)

// A vector is a case of the published suites, which contain strings as headings between the cases.
type vector struct {
	Input    string
	Output   *string
	Encoding *string
	Groups   []string
}

func vectors(t *testing.T, file string) (cases []vector) {
	t.Helper()
	dir := os.Getenv("KUMO_TEST_DATA")
	if dir == "" {
		t.Skip("KUMO_TEST_DATA does not name the folder of conformance data")
	}
	data, err := os.ReadFile(filepath.Join(dir, "http", file))
	if err != nil {
		t.Fatal(err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one[0] == '"' {
			continue
		}
		var v vector
		if err := json.Unmarshal(one, &v); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, v)
	}
	return cases
}

func TestStandard(t *testing.T) {
	for _, file := range []string{"mime-types.json", "generated-mime-types.json"} {
		for _, v := range vectors(t, file) {
			got, ok := Parse(v.Input)
			if ok != (v.Output != nil) || ok && got.String() != *v.Output {
				t.Errorf("%s: %q: got %q, %v", file, v.Input, got, ok)
			}
			if v.Encoding == nil {
				continue
			}
			label, _ := got.Param("charset")
			enc, err := htmlindex.Get(label)
			if err != nil {
				t.Errorf("%q: charset %q: %v", v.Input, label, err)
				continue
			}
			if name, _ := htmlindex.Name(enc); !strings.EqualFold(name, *v.Encoding) {
				t.Errorf("%q: charset %s, want %s", v.Input, name, *v.Encoding)
			}
		}
	}
}

func TestGroups(t *testing.T) {
	for _, v := range vectors(t, "mime-groups.json") {
		got, ok := Parse(v.Input)
		if !ok {
			t.Errorf("%q is none", v.Input)
		}
		for group, is := range map[string]bool{"image": got.IsImage(), "audio or video": got.IsMedia(),
			"XML": got.IsXML(), "HTML": got.IsHTML(), "JavaScript": got.IsJavaScript(), "JSON": got.IsJSON()} {
			if is != slices.Contains(v.Groups, group) {
				t.Errorf("%s: %s is %v", v.Input, group, is)
			}
		}
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		" Text/HTML ; CHARSET=utf-8;;x=\"a;\\\"b\" y; x=2; z": `text/html;charset=utf-8;x="a;\"b"`,
		"text/html;x=\xE9":   "text/html;x=\"\xE9\"",
		"text/html;x=€":      "text/html",
		"text/html, a/b":     "",
		"text":               "",
		"text/":              "",
		"":                   "",
		"a/b;c=\"":           `a/b;c=""`,
		"a/b;c=\"d\\":        `a/b;c="d\\"`,
		"a/b;c=;d= e ;f=g h": `a/b;d=" e";f="g h"`,
	} {
		got, ok := Parse(in)
		if ok != (want != "") || got.String() != want {
			t.Errorf("%q: got %q, %v, want %s", in, got, ok, want)
		}
	}
	many, _ := Parse("a/b" + strings.Repeat(";a=b", 1<<16) + ";" + strings.Repeat("x", 1<<16) + "=y")
	if len(many.Params) != 2 {
		t.Errorf("%d parameters", len(many.Params))
	}
}
