package hadoopconf

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func load(t *testing.T, files map[string]string) Conf {
	t.Helper()
	c, err := Load(write(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLaterFilesStandUnlessFinal(t *testing.T) {
	c := load(t, map[string]string{
		"core-site.xml": `<configuration><property><name>a</name><value>1</value></property>
			<property><name>b</name><value> 1 </value><final>true</final></property></configuration>`,
		"mapred-site.xml": `<configuration><property><name>a</name><value>2</value></property>
			<property><name>b</name><value>2</value></property></configuration>`,
	})
	if c.Get("a") != "2" || c.Get("b") != "1" || c.Get("c") != "" {
		t.Errorf("a %q, b %q, c %q", c.Get("a"), c.Get("b"), c.Get("c"))
	}
}

func TestVariables(t *testing.T) {
	t.Setenv("KUMO_TEST_PORT", "9")
	c := New(map[string]string{
		"root": "/data", "dir": "${root}/x", "deep": "${dir}/y", "unknown": "${nobody.says}", "loop": "${loop}x",
		"env": "h:${env.KUMO_TEST_PORT:-8}", "default": "h:${env.KUMO_TEST_NONE:-8}",
		"dash": "${env.KUMO_TEST_NONE-a-b}",
	})
	for name, want := range map[string]string{
		"dir": "/data/x", "deep": "/data/x/y", "unknown": "${nobody.says}", "env": "h:9", "default": "h:8",
		"dash": "a-b",
	} {
		if got := c.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	c.Get("loop") // ends
}

func TestIncludes(t *testing.T) {
	c := load(t, map[string]string{
		"core-site.xml": `<configuration xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="more.xml"/></configuration>`,
		"more.xml":      `<configuration><property><name>a</name><value>1</value></property></configuration>`,
	})
	if c.Get("a") != "1" {
		t.Errorf("what is included says a is %q", c.Get("a"))
	}
	if _, err := Load(write(t,
		map[string]string{"core-site.xml": `<configuration><include href="core-site.xml"/></configuration>`})); err == nil {
		t.Error("a file that includes itself was read")
	}
}

func TestNothingToRead(t *testing.T) {
	if _, err := Load(t.TempDir()); !errors.Is(err, ErrNotFound) {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := Load(write(t, map[string]string{"core-site.xml": "<configuration>"})); err == nil || errors.Is(err,
		ErrNotFound) {
		t.Errorf("half a file: %v", err)
	}
}

func TestNameNodes(t *testing.T) {
	ha := New(map[string]string{
		"fs.defaultFS": "hdfs://prod", "dfs.nameservices": "prod, other, single",
		"dfs.ha.namenodes.prod": "nn1,nn2", "dfs.namenode.rpc-address.prod.nn1": "a:8020",
		"dfs.namenode.rpc-address.prod.nn2": "b:9000",
		"dfs.ha.namenodes.other":            "nn1", "dfs.namenode.rpc-address.other.nn1": "c:8020",
		"dfs.namenode.rpc-address.single": "d",
	})
	for authority, want := range map[string][]string{
		"": {"a:8020", "b:9000"}, "prod": {"a:8020", "b:9000"}, "other": {"c:8020"}, "single": {"d:8020"},
		"h": {"h:8020"}, "h:1": {"h:1"}, "[::1]:1": {"[::1]:1"}, "[::1]": {"[::1]:8020"},
	} {
		if got, err := ha.NameNodes(authority); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q is at %q, %v; want %q", authority, got, err, want)
		}
	}
	for _, broken := range []map[string]string{
		{}, {"fs.defaultFS": "file:///"}, {"fs.defaultFS": "viewfs://all"}, {"fs.defaultFS": "hdfs://prod",
			"dfs.ha.namenodes.prod": "nn1"},
	} {
		if got, err := New(broken).NameNodes(""); err == nil {
			t.Errorf("%v has NameNodes %q", broken, got)
		}
	}
}

func TestResourceManagers(t *testing.T) {
	for _, c := range []struct {
		values map[string]string
		want   []string
		tls    bool
	}{
		{map[string]string{}, nil, false},
		{map[string]string{"yarn.resourcemanager.hostname": "rm"}, []string{"rm:8088"}, false},
		{map[string]string{"yarn.resourcemanager.hostname": "rm",
			"yarn.resourcemanager.webapp.address": "${yarn.resourcemanager.hostname}:1"},
			[]string{"rm:1"}, false},
		{map[string]string{"yarn.resourcemanager.hostname": "rm", "yarn.http.policy": "HTTPS_ONLY"},
			[]string{"rm:8090"}, true},
		{map[string]string{"yarn.resourcemanager.ha.enabled": "true", "yarn.resourcemanager.ha.rm-ids": "1,2",
			"yarn.resourcemanager.hostname.1": "a", "yarn.resourcemanager.webapp.address.2": "b:5"}, []string{"a:8088",
			"b:5"}, false},
	} {
		if got, tls := New(c.values).ResourceManagers(); !slices.Equal(got, c.want) || tls != c.tls {
			t.Errorf("%v: %q, TLS %v; want %q, %v", c.values, got, tls, c.want, c.tls)
		}
	}
}
