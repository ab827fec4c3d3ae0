// Package login logs a crawl in to sites by HTML forms.
//
// It fetches the page with the form, fills in the user's fields, posts the form, and checks the result. It keeps the
// form's own fields, such as a token against forged requests. If a response shows later that the session has ended, it
// logs in again.
//
// The user's fields are secret: no error contains them. Cookies of a login are private.
package login

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"kumo/internal/base/weburl"
	"kumo/internal/base/yaml"
)

// A Config lists the logins of a crawl.
type Config struct{ Sites []Site }

// A Site describes the login at a site.
type Site struct {
	URL   string   `yaml:"url"`   // the page with the form
	Hosts []string `yaml:"hosts"` // hosts that need the login; default: the URL's host
	// hosts, in addition to the origin of URL, to which the fields may be sent
	PostTo []string `yaml:"post-to"`
	// values by name, for the form that has all of them, or else for the first form with a password
	Fields   map[string]Value `yaml:"fields"`
	Success  Success          `yaml:"success"`  // how to recognize a successful login
	Expired  Expired          `yaml:"expired"`  // how to recognize an ended session
	Attempts int              `yaml:"attempts"` // consecutive attempts before the login has failed; default 3
}

// Success describes the response to the form, after redirects. Empty fields are ignored. If all are empty, the response
// must not be an error and must not contain the form again.
type Success struct {
	Status int    `yaml:"status"`
	Text   string `yaml:"text"`   // a part of the body
	URL    string `yaml:"url"`    // the URL, or a prefix of it
	Cookie string `yaml:"cookie"` // the name of a cookie that must be set
}

// Expired describes responses without a session: one condition suffices. A redirect to the login page always counts.
type Expired struct {
	Status []int  `yaml:"status"` // default 401
	Text   string `yaml:"text"`
}

// A Value is the value of a field: a text, or {env: NAME} or {file: PATH} to read it from there.
type Value string

// UnmarshalYAML parses a value.
func (v *Value) UnmarshalYAML(text []byte) error {
	var plain string
	if yaml.Unmarshal(text, &plain) == nil {
		*v = Value(plain)
		return nil
	}
	var from struct {
		Env  string `yaml:"env"`
		File string `yaml:"file"`
	}
	if err := yaml.Unmarshal(text, &from, yaml.Strict()); err != nil || (from.Env == "") == (from.File == "") {
		return errors.New("a field's value must be text, {env: NAME} or {file: PATH}")
	}
	if from.Env != "" {
		value, is := os.LookupEnv(from.Env)
		if !is {
			return fmt.Errorf("environment variable %s is not set", from.Env)
		}
		*v = Value(value)
		return nil
	}
	data, err := os.ReadFile(from.File)
	*v = Value(strings.TrimRight(string(data), "\r\n"))
	return err
}

// String hides the value when it is printed.
func (v Value) String() string { return "REDACTED" }

// maxForm limits the posted data, in bytes.
const maxForm = 16 << 10

// Load reads a file of logins: a list of sites in YAML. Errors do not contain values.
func Load(name string) (*Config, error) {
	data, err := yaml.ReadFile(name)
	if err != nil {
		return nil, err
	}
	c := &Config{}
	if err := yaml.Unmarshal(data, &c.Sites, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("%s: %s", filepath.Base(name), firstLine(err))
	}
	for i := range c.Sites {
		if err := c.Sites[i].check(); err != nil {
			return nil, fmt.Errorf("%s, site %d: %w", filepath.Base(name), i+1, err)
		}
	}
	if len(c.Sites) == 0 {
		return nil, fmt.Errorf("%s: no sites", filepath.Base(name))
	}
	return c, nil
}

// firstLine removes the quotation of the file from an error of the YAML parser.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func (s *Site) check() error {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return errors.New("url must be the http(s) address of the login page")
	}
	if len(s.Fields) == 0 {
		return errors.New("fields is required: form field name -> value")
	}
	if len(s.Hosts) == 0 {
		s.Hosts = []string{u.Hostname()}
	}
	for i, host := range s.Hosts {
		if s.Hosts[i] = strings.ToLower(host); strings.ContainsAny(host, "/:@ ") {
			return fmt.Errorf("host %q: want a name without scheme and port", host)
		}
	}
	for i, host := range s.PostTo {
		u, err := weburl.Parse("http://" + host + "/")
		if err != nil || strings.ContainsAny(host, "/?#@ ") {
			return fmt.Errorf("post-to %q: want a host, with its port unless that is the default", host)
		}
		s.PostTo[i] = u.Canonical().Host()
	}
	if s.Attempts == 0 {
		s.Attempts = 3
	}
	if len(s.Expired.Status) == 0 {
		s.Expired.Status = []int{http.StatusUnauthorized}
	}
	return nil
}
