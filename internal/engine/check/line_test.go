package check

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnmarshal(t *testing.T) {
	in := LinksIn{PageIn: PageIn{ContentType: "text/plain"}}
	err := Unmarshal([]byte(` {"html_b64": "PGE+", "url": null, "script_paths": true, "other": [1]}`), &in)
	want := LinksIn{PageIn: PageIn{HTML: []byte("<a>"), ContentType: "text/plain"}, ScriptPaths: true}
	if diff := cmp.Diff(want, in); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, c := range []struct{ line, want string }{
		{`{}`, `field "html_b64" is missing`},
		{`{"html_b64": null}`, `field "html_b64" is missing`},
		{` null`, `expected an object, not null`},
		{`7`, `expected an object, not a number`},
		{`false `, `expected an object, not false`},
		{`{"html_b64": ""} x`, `not JSON: byte 18: invalid character 'x' after top-level value`},
		{`{"html_b64": "PGE"}`, `field "html_b64": not base64 (A-Z a-z 0-9 + /, with = at its end) from byte 1 on`},
		{`{"html_b64": {}}`, `field "html_b64": expected a string, not an object`},
		{`{"html_b64": "", "url": -1}`, `field "url": expected a string, not a number`},
		{`{"html_b64": "", "script_paths": "yes"}`, `field "script_paths": expected true or false, not a string`},
	} {
		if err := Unmarshal([]byte(c.line), new(LinksIn)); err == nil || err.Error() != c.want {
			t.Errorf("%s: error %v, want %s", c.line, err, c.want)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add(`{"html_b64": "PGE+", "url": "", "script_paths": true}`)
	f.Add(`{"html_b64": [true, {"x": null}], "url": 1e400}`)
	f.Fuzz(func(t *testing.T, line string) {
		var in LinksIn
		if err := Unmarshal([]byte(line), &in); err != nil && strings.Contains(err.Error(), "Go value") {
			t.Error(err)
		}
	})
}

func TestFields(t *testing.T) {
	needed, others := Fields[LinksIn]()
	if diff := cmp.Diff([][]string{{"html_b64"}, {"url", "content_type", "script_paths"}},
		[][]string{needed, others}); diff != "" {
		t.Error(diff)
	}
}
