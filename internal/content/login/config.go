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

// A Config is the logins of a crawl.
type Config struct{ Sites []Site }

// A Site is where to log in, and how.
type Site struct {
	URL      string           `yaml:"url"`      // the page with the form
	Hosts    []string         `yaml:"hosts"`    // for which that is done; the URL's unless given
	PostTo   []string         `yaml:"post-to"`  // hosts, beside the origin of URL, that may get the fields
	Fields   map[string]Value `yaml:"fields"`   // of the form that has them all, or none of them
	Success  Success          `yaml:"success"`  // what tells that it has worked
	Expired  Expired          `yaml:"expired"`  // what tells that it holds no longer
	Attempts int              `yaml:"attempts"` // in a row, before it has failed; 3
}

// Success is what the answer to the form must be like, after redirects. What is not given does not count; where nothing
// is, it must be no error, and must not have the form again.
type Success struct {
	Status int    `yaml:"status"`
	Text   string `yaml:"text"`   // that it has
	URL    string `yaml:"url"`    // that it has, or begins with
	Cookie string `yaml:"cookie"` // that is set by now
}

// Expired is what an answer is like to who is not logged in: one of these. A redirect to the page with the form always
// is.
type Expired struct {
	Status []int  `yaml:"status"` // 401 unless given
	Text   string `yaml:"text"`
}

// A Value of a field is written as it is, or as {env: NAME} or {file: PATH}, from where it is read.
type Value string

// UnmarshalYAML reads a value.
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
		return errors.New("a field's value is text, {env: NAME} or {file: PATH}")
	}
	if from.Env != "" {
		value, is := os.LookupEnv(from.Env)
		if !is {
			return fmt.Errorf("the environment has no %s", from.Env)
		}
		*v = Value(value)
		return nil
	}
	data, err := os.ReadFile(from.File)
	*v = Value(strings.TrimRight(string(data), "\r\n"))
	return err
}

// String keeps a value out of what is printed.
func (v Value) String() string { return "REDACTED" }

// maxForm bounds what is posted, in bytes.
const maxForm = 16 << 10

// Load reads a file of logins: a list of sites in YAML. An error has nothing of the values.
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

// firstLine is an error without the part of the file that the reader of YAML shows.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func (s *Site) check() error {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return errors.New("url is to be that of the page with the form, with http:// or https://")
	}
	if len(s.Fields) == 0 {
		return errors.New("fields are to be given: the names of the form's, each with what goes into it")
	}
	if len(s.Hosts) == 0 {
		s.Hosts = []string{u.Hostname()}
	}
	for i, host := range s.Hosts {
		if s.Hosts[i] = strings.ToLower(host); strings.ContainsAny(host, "/:@ ") {
			return fmt.Errorf("host %q: a name is wanted, without scheme and port", host)
		}
	}
	for i, host := range s.PostTo {
		u, err := weburl.Parse("http://" + host + "/")
		if err != nil || strings.ContainsAny(host, "/?#@ ") {
			return fmt.Errorf("post-to %q: want a host, with its port if that is not the default one", host)
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
