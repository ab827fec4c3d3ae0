package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"kumo/internal/content/hadoopconf"
)

// A node is a NodeManager as the ResourceManager reports it.
type node struct {
	ID           string `json:"id"`
	State        string `json:"state"`
	HealthReport string `json:"healthReport"`
	UsedMemory   int    `json:"usedMemoryMB"`
	FreeMemory   int    `json:"availMemoryMB"`
	UsedCores    int    `json:"usedVirtualCores"`
	FreeCores    int    `json:"availableVirtualCores"`
}

func (n node) memory() int { return n.UsedMemory + n.FreeMemory }

// yarn checks the ResourceManager and its nodes through their web services. Some clusters hide these: then the state is
// unknown, and jobs may still run.
func (v *checker) yarn(ctx context.Context) (running bool) {
	const what = "YARN"
	addresses, tls := v.conf.ResourceManagers()
	if len(addresses) == 0 {
		v.add(what, Failed, "set yarn.resourcemanager.hostname in yarn-site.xml, or copy that file from the cluster",
			"no ResourceManager is configured")
		return false
	}
	scheme := "http://"
	if tls {
		scheme = "https://"
	}
	var failed []string
	for _, address := range addresses {
		version, err := v.resourceManager(ctx, scheme+address)
		if errors.Is(err, errStandby) {
			continue
		}
		if errors.Is(err, errHidden) {
			v.add(what, Warning, "run kumo doctor hadoop --job, which shows whether jobs run", "%v", err)
			return true
		}
		if err == nil {
			v.add(what, Good, "", "ResourceManager %s, Hadoop %s", address, version)
			return v.nodes(ctx, scheme+address)
		}
		failed = append(failed, err.Error())
	}
	v.add(what, Failed, "check the address, and whether it is running; with several ResourceManagers, "+
		"yarn rmadmin -getAllServiceState shows the active one",
		"no ResourceManager answers at %s: %s", strings.Join(addresses, ", "), strings.Join(failed, "; "))
	return false
}

var (
	errStandby = errors.New("it is in standby")
	errHidden  = errors.New("it requires a login")
)

func (v *checker) resourceManager(ctx context.Context, url string) (version string, err error) {
	var info struct {
		ClusterInfo struct {
			State   string `json:"state"`
			HAState string `json:"haState"`
			Version string `json:"hadoopVersion"`
		} `json:"clusterInfo"`
	}
	if err := v.query(ctx, url+"/ws/v1/cluster/info", &info); err != nil {
		return "", err
	}
	switch c := info.ClusterInfo; {
	case c.HAState == "STANDBY":
		return "", errStandby
	case c.State != "STARTED":
		return "", fmt.Errorf("%s is in state %q", url, c.State)
	default:
		return c.Version, nil
	}
}

// Hadoop's defaults, in MiB.
const (
	defaultTaskMemory   = 1024
	defaultMasterMemory = 1536
)

func memoryOf(conf hadoopconf.Conf, name string, fallback int) int {
	if n, err := strconv.Atoi(conf.Get(name)); err == nil && n > 0 {
		return n
	}
	return fallback
}

// nodes checks whether there is room for an application master and tasks.
func (v *checker) nodes(ctx context.Context, url string) (running bool) {
	const what = "nodes"
	var all struct {
		Nodes struct {
			Node []node `json:"node"`
		} `json:"nodes"`
	}
	if err := v.query(ctx, url+"/ws/v1/cluster/nodes", &all); err != nil {
		v.addError(what, err, "")
		return false
	}
	memory, cores, largest, alive := 0, 0, 0, 0
	for _, n := range all.Nodes.Node {
		if n.State != "RUNNING" {
			if n.State == "UNHEALTHY" || n.State == "LOST" {
				v.add(what, Warning, "see its NodeManager's log; the usual cause is a nearly full disk",
					"%s is %s: %s", n.ID, strings.ToLower(n.State), strings.TrimSpace(n.HealthReport))
			}
			continue
		}
		alive++
		memory += n.memory()
		cores += n.UsedCores + n.FreeCores
		largest = max(largest, n.memory())
	}
	task := v.Memory
	if task == 0 {
		task = max(memoryOf(v.conf, "mapreduce.map.memory.mb", defaultTaskMemory), memoryOf(v.conf,
			"mapreduce.reduce.memory.mb", defaultTaskMemory))
	}
	master := memoryOf(v.conf, "yarn.app.mapreduce.am.resource.mb", defaultMasterMemory)
	says := fmt.Sprintf("%d alive with %d MiB and %d vcores; a task takes %d MiB, an application master %d", alive,
		memory, cores, task, master)
	switch {
	case alive == 0:
		v.add(what, Failed, "start NodeManagers: yarn --daemon start nodemanager", "no NodeManager is alive")
		return false
	case largest < task:
		v.add(what, Failed, "give nodes more (yarn.nodemanager.resource.memory-mb), or tasks less",
			"%s, and no node has more than %d MiB", says, largest)
		return false
	case largest < master:
		v.add(what, Failed, "give nodes more (yarn.nodemanager.resource.memory-mb), or lower "+
			"yarn.app.mapreduce.am.resource.mb",
			"%s, and no node has more than %d MiB", says, largest)
		return false
	case memory < master+task || cores < 2:
		v.add(what, Failed, "add nodes, or give them more (yarn.nodemanager.resource.memory-mb and cpu-vcores)",
			"%s: not enough for both at once", says)
		return false
	}
	v.add(what, Good, "", "%s", says)
	if task < defaultTaskMemory/2 {
		v.add(what, Warning, "set mapreduce.map.memory.mb and mapreduce.reduce.memory.mb to 1024",
			"a task has %d MiB, shared with a JVM: pages of many MB need more", task)
	}
	return true
}

// query queries a web service of Hadoop.
func (v *checker) query(ctx context.Context, url string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := v.web.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden}, resp.StatusCode) {
		return fmt.Errorf("%s: %w", url, errHidden)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, resp.Body, 64<<20)).Decode(answer); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	return nil
}
