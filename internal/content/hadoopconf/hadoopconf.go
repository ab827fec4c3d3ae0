// Package hadoopconf reads the configuration of a Hadoop client from the XML files of a folder (HADOOP_CONF_DIR).
//
// It applies Hadoop's own rules for final properties and ${…}. It fills in Hadoop's default addresses of services, and
// resolves the name of a high-availability service to the addresses of its machines.
package hadoopconf

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Files are the files that a client reads, in order. A later value replaces an earlier one unless that is final.
var Files = []string{"core-site.xml", "hdfs-site.xml", "yarn-site.xml", "mapred-site.xml"}

// A Conf is the configuration of a directory. The zero value is empty.
type Conf struct {
	Dir    string // where it was read, "": nowhere
	values map[string]string
}

// ErrNotFound means that there is no Hadoop configuration.
var ErrNotFound = errors.New("no configuration of Hadoop was found")

// Dir returns the configuration directory: HADOOP_CONF_DIR, or etc/hadoop in HADOOP_HOME, or /etc/hadoop/conf; "" if
// there is none.
func Dir() string {
	if dir := os.Getenv("HADOOP_CONF_DIR"); dir != "" {
		return dir
	}
	candidates := []string{"/etc/hadoop/conf"}
	if home := os.Getenv("HADOOP_HOME"); home != "" {
		candidates = append([]string{filepath.Join(home, "etc", "hadoop")}, candidates...)
	}
	for _, dir := range candidates {
		if _, err := os.Stat(filepath.Join(dir, "core-site.xml")); err == nil {
			return dir
		}
	}
	return ""
}

// Load reads the files of a directory. Missing files are ignored; if all are missing, it returns ErrNotFound.
func Load(dir string) (Conf, error) {
	c := Conf{Dir: dir, values: map[string]string{}}
	final := map[string]bool{}
	found := false
	for _, name := range Files {
		err := c.read(filepath.Join(dir, name), final, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Conf{}, err
		}
		found = true
	}
	if !found {
		return Conf{}, fmt.Errorf("%w in %s", ErrNotFound, dir)
	}
	return c, nil
}

// New returns a configuration with the given values.
func New(values map[string]string) Conf { return Conf{values: values} }

const maxIncludes = 8 // nesting depth of included files

type property struct {
	Name  string `xml:"name"`
	Value string `xml:"value"`
	Final string `xml:"final"`
}

func (c Conf) read(path string, final map[string]bool, depth int) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var file struct {
		Properties []property `xml:"property"`
		Includes   []struct {
			Href string `xml:"href,attr"`
		} `xml:"include"`
	}
	if err := xml.Unmarshal(text, &file); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, include := range file.Includes {
		if depth == maxIncludes {
			return fmt.Errorf("%s: files include each other", path)
		}
		other := include.Href
		if !filepath.IsAbs(other) {
			other = filepath.Join(filepath.Dir(path), other)
		}
		if err := c.read(other, final, depth+1); err != nil {
			return fmt.Errorf("included by %s: %w", path, err)
		}
	}
	for _, p := range file.Properties {
		name := strings.TrimSpace(p.Name)
		if final[name] {
			continue
		}
		c.values[name] = strings.TrimSpace(p.Value)
		if strings.TrimSpace(p.Final) == "true" {
			final[name] = true
		}
	}
	return nil
}

// Get returns a property's value with variables replaced; "" if it is not set.
func (c Conf) Get(name string) string {
	value := c.values[name]
	for range 20 { // the limit of Hadoop
		next := variable.ReplaceAllStringFunc(value, c.variable)
		if next == value {
			break
		}
		value = next
	}
	return value
}

// List returns a property of comma-separated values.
func (c Conf) List(name string) []string {
	var list []string
	for part := range strings.SplitSeq(c.Get(name), ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// WithPrefix returns the properties whose names begin with one of the prefixes, with their values as in Get.
func (c Conf) WithPrefix(prefixes ...string) map[string]string {
	some := map[string]string{}
	for name := range c.values {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			some[name] = c.Get(name)
		}
	}
	return some
}

var variable = regexp.MustCompile(`\$\{[^}$\s]+\}`)

// variable returns the value of ${name}: an environment variable with its default (env.NAME, env.NAME:-default,
// env.NAME-default), or another property. An unknown name stays unchanged.
func (c Conf) variable(reference string) string {
	name := reference[2 : len(reference)-1]
	if env, is := strings.CutPrefix(name, "env."); is {
		env, fallback, _ := strings.Cut(env, "-")
		if value := os.Getenv(strings.TrimSuffix(env, ":")); value != "" {
			return value
		}
		return fallback
	}
	if name == "user.name" {
		return User()
	}
	if value, has := c.values[name]; has {
		return value
	}
	return reference
}

// User returns the user that Hadoop assumes without authentication: HADOOP_USER_NAME, or else the system's user.
func User() string {
	if name := os.Getenv("HADOOP_USER_NAME"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "nobody"
}

// Secure reports whether the cluster requires Kerberos.
func (c Conf) Secure() bool {
	return strings.EqualFold(c.Get("hadoop.security.authentication"), "kerberos")
}
