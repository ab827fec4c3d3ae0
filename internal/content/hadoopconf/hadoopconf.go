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

// Files are what a client reads, in order: a later file's value stands, unless an earlier one is final.
var Files = []string{"core-site.xml", "hdfs-site.xml", "yarn-site.xml", "mapred-site.xml"}

// A Conf is what a folder's files say. The zero value is one that says nothing.
type Conf struct {
	Dir    string // where it was read, "" for none
	values map[string]string
}

// ErrNotFound says that there is no configuration of Hadoop.
var ErrNotFound = errors.New("no configuration of Hadoop was found")

// Dir is the folder that the environment names: HADOOP_CONF_DIR, else etc/hadoop below HADOOP_HOME, else
// /etc/hadoop/conf; "" when there is none.
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

// Load reads a folder's files. Those that are missing say nothing; ErrNotFound when all are.
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

// New is a configuration of the given values.
func New(values map[string]string) Conf { return Conf{values: values} }

const maxIncludes = 8 // of a file in a file in a file

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

// Get is a property's value, with what it refers to put in; "" when nothing says it.
func (c Conf) Get(name string) string {
	value := c.values[name]
	for range 20 { // as often as Hadoop does
		next := variable.ReplaceAllStringFunc(value, c.variable)
		if next == value {
			break
		}
		value = next
	}
	return value
}

// List is a property of several values, which commas separate.
func (c Conf) List(name string) []string {
	var list []string
	for part := range strings.SplitSeq(c.Get(name), ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// WithPrefix are the properties whose names begin with one of the prefixes, their values as Get gives them.
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

// variable is what stands for ${name}: an environment's variable with its default (env.NAME, env.NAME:-default,
// env.NAME-default), or another property. What is unknown stays as it is.
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

// User is whom Hadoop takes this process for where nobody has to prove it: HADOOP_USER_NAME, else the system's user.
func User() string {
	if name := os.Getenv("HADOOP_USER_NAME"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "nobody"
}

// Secure reports whether the cluster asks for Kerberos.
func (c Conf) Secure() bool {
	return strings.EqualFold(c.Get("hadoop.security.authentication"), "kerberos")
}
