package hadoopconf

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// NameNodes returns the addresses, host:port, of the NameNodes of a file system: a host with or without port, the name
// of a service, or "" for the one in fs.defaultFS.
func (c Conf) NameNodes(authority string) ([]string, error) {
	if authority == "" {
		fs := c.Get("fs.defaultFS")
		u, err := url.Parse(fs)
		if err != nil || u.Scheme != "hdfs" || u.Host == "" {
			return nil, fmt.Errorf("fs.defaultFS is %q in %s: name the file system, as in hdfs://host:8020/folder", fs,
				cmp.Or(c.Dir, "no file"))
		}
		authority = u.Host
	}
	if members := c.List("dfs.ha.namenodes." + authority); len(members) > 0 {
		return c.addresses("dfs.namenode.rpc-address."+authority, members)
	}
	if slices.Contains(c.List("dfs.nameservices"), authority) {
		return c.addresses("dfs.namenode.rpc-address."+authority, []string{""})
	}
	return []string{withPort(authority, "8020")}, nil
}

// ResourceManagers returns the addresses, host:port, of the ResourceManagers' web services, and whether they use TLS.
func (c Conf) ResourceManagers() (addresses []string, tls bool) {
	name, port := "yarn.resourcemanager.webapp.address", "8088"
	if tls = c.Get("yarn.http.policy") == "HTTPS_ONLY"; tls {
		name, port = "yarn.resourcemanager.webapp.https.address", "8090"
	}
	ids := c.List("yarn.resourcemanager.ha.rm-ids")
	if c.Get("yarn.resourcemanager.ha.enabled") != "true" || len(ids) == 0 {
		ids = []string{""}
	}
	for _, id := range ids {
		suffix := ""
		if id != "" {
			suffix = "." + id
		}
		host := cmp.Or(c.Get("yarn.resourcemanager.hostname"+suffix), c.Get("yarn.resourcemanager.hostname"))
		address := cmp.Or(c.Get(name+suffix), host)
		if address != "" && !strings.HasPrefix(address, "0.0.0.0") {
			addresses = append(addresses, withPort(address, port))
		}
	}
	return addresses, tls
}

// addresses returns the values of the properties PREFIX.MEMBER. It fails if one is missing.
func (c Conf) addresses(prefix string, members []string) ([]string, error) {
	var found []string
	for _, member := range members {
		name := strings.TrimSuffix(prefix+"."+member, ".")
		address := c.Get(name)
		if address == "" {
			return nil, fmt.Errorf("hdfs-site.xml in %s names a NameNode without its address: property %s is missing",
				cmp.Or(c.Dir, "no folder"), name)
		}
		found = append(found, withPort(address, "8020"))
	}
	return found, nil
}

func withPort(address, port string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), port)
}
