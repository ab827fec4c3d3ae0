package login

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindForm(t *testing.T) {
	want := map[string]Value{"user": "me", "pw": "a&b"}
	for page, filled := range map[string]string{
		`<form action=/s><input name=q></form><form method=POST action=/in><input name=user value=x><input type=hidden name=t value="1&amp;2">
			<input name=pw type=password><input type=checkbox name=c value=1><button name=b></form>`: "pw=a%26b&t=1%262&user=me",
		`<form method=post><input name=u><input name=pw type=password></form>`: "pw=a%26b&u=&user=me", // a script renames it
		`<form method=post><input name=user><input name=pw>`:                   "pw=a%26b&user=me",
		`<form><input name=user></form>`:                                       "",
		`no form`:                                                              "",
	} {
		got := ""
		if f := findForm([]byte(page), want); f != nil {
			got = f.filled(want)
		}
		if got != filled {
			t.Errorf("%s: %q, want %q", page, got, filled)
		}
	}
}

// Errors in a login file are reported without its secrets.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pw"), []byte("secret-of-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LOGIN_TEST", "secret-of-env")
	for text, want := range map[string]string{
		"":                                 "no sites",
		"- url: x\n  fields: {pw: secret}": "url must be",
		"- url: http://a.example/":         "fields is required",
		"- url: http://a.example/\n  feilds: {pw: secret}":                      "unknown field",
		"- url: http://a.example/\n  fields: {pw: {env: NO_SUCH}}":              "NO_SUCH is not set",
		"- url: http://a.example/\n  fields: {pw: {secret: 1}}":                 "",
		"- url: http://a.example/\n  fields: {pw: x}\n  hosts: [http://secret]": "without scheme",
		"- url: http://a.example/\n  fields: {pw: x}\n  post-to: [http://a]":    "post-to",
	} {
		name := filepath.Join(dir, "login.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(name)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret-") ||
			strings.Contains(err.Error(), "pw: secret") {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	name := filepath.Join(dir, "login.yaml")
	text := "- url: http://A.example/in\n  fields: {a: plain, b: {env: LOGIN_TEST}, c: {file: " +
		filepath.Join(dir, "pw") + "}, d: 12}\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	f := c.Sites[0].Fields
	if string(f["a"]) != "plain" || string(f["b"]) != "secret-of-env" || string(f["c"]) != "secret-of-file" ||
		string(f["d"]) != "12" || !c.Private("a.example") || c.Private("b.example") {
		t.Errorf("%q, private at %v", []string{string(f["a"]), string(f["b"]), string(f["c"]), string(f["d"])},
			c.Sites[0].Hosts)
	}
}
