package jsonld

import (
	"fmt"
	"testing"
)

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":"b"}`:                         `[map[a:b]]`,
		`{"a":"b"} {"a":"c"}`:               `[map[a:b] map[a:c]]`,
		"\uFEFF{\"a\":\"b\"};":              `[map[a:b]]`,
		"//<![CDATA[\n{\"a\":\"b\"}\n//]]>": `[map[a:b]]`,
		"<!-- {\"a\":\"b\"} -->":            `[map[a:b]]`,
		"{\"a\":\"b\nc\"}":                  `[map[a:b c]]`,
		`{"a":["b",],}`:                     `[map[a:[b]]]`,
		`{"a":"b\'s"}`:                      `[map[a:b's]]`,
		"{\"a\":/* x */\"b\" // y\n}":       `[map[a:b]]`,
		"{&quot;a&quot;:&quot;b&quot;}":     `[map[a:b]]`,
		`{"a":"http://b/c"} {"a"`:           `[map[a:http://b/c]] unexpected EOF`,
	} {
		got, err := Read(text)
		out := fmt.Sprint(got)
		if err != nil {
			out += " " + err.Error()
		}
		if out != want {
			t.Errorf("%s: got %s, want %s", text, out, want)
		}
	}
}
