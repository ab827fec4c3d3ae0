package job

import (
	"fmt"

	"kumo/internal/base/advice"
	"kumo/internal/content/fetch"
)

// Division of the file descriptors that the process may have open (ulimit -n). The state and the record files come
// first; without them there is no crawl. Then come state files that are only read, which are opened on demand, then
// lookups. Connections get the rest.
const (
	// The program's own files, the crawl's locks, journal and record files, files of a checkpoint, and query clients.
	fixedFiles    = 36
	nodeFiles     = 16  // connections of a node to the cluster
	serverFiles   = 112 // connections of a server to nodes, and its storage
	rankFiles     = 3   // links for ranking
	minRead       = 8   // state files open for reading
	maxRead       = 512
	minLookups    = 2 // concurrent lookups
	maxLookups    = 256
	lookupSockets = 2 // per lookup
	minConns      = 4
)

// A descriptors is the number of descriptors for each purpose.
type descriptors struct {
	read, lookups, conns int
}

// divide divides a limit of descriptors among their uses. Others are reserved.
func divide(limit, others int) (d descriptors, err error) {
	rest := limit - fixedFiles - others
	if least := minRead + minLookups*lookupSockets + minConns; rest < least {
		return d, advice.Usage("a limit of %d open files is too low: a crawl needs at least %d, and one more for each "+
			"host fetched from at once; raise it, for example with ulimit -n 1024", limit, limit-rest+least)
	}
	d.read = min(max(rest/4, minRead), maxRead)
	d.lookups = min(max(rest/16, minLookups), maxLookups)
	d.conns = rest - d.read - d.lookups*lookupSockets
	return d, nil
}

// A Role is what the process does besides crawling, which needs descriptors, too.
type Role int

// The roles.
const (
	Alone  Role = iota // a crawl on one machine
	Member             // a node of a cluster
	Server             // a node that also runs a server of its cluster
)

// FitFiles adapts the job to the limit on open files, and warns if it must reduce the number of hosts. It returns how
// many state files may be open for reading at once; 0: any number.
func (j *Job) FitFiles(r Role) (read int, err error) {
	limit := fetch.Files()
	if limit == 0 {
		return 0, nil
	}
	others := map[Role]int{Member: nodeFiles, Server: nodeFiles + serverFiles}[r]
	if j.ByLinks() {
		others += rankFiles
	}
	d, err := divide(limit, others)
	if err != nil {
		return 0, err
	}
	hosts := j.HostsAtOnce()
	if most := max(1, d.conns/j.perHost()); hosts > most {
		j.Warn(fmt.Errorf("a limit of %d open files leaves %d connections: fetching from %d hosts at once "+
			"instead of %d; for more, raise it to ulimit -n %d", limit, d.conns, most, hosts, limitFor(hosts*j.perHost(),
			others)))
		j.Frontier.Hosts = most
	}
	j.Fetch.Sockets, j.Fetch.Lookups = d.conns, d.lookups
	return d.read, nil
}

// limitFor returns the limit that allows conns connections.
func limitFor(conns, others int) int {
	limit := fixedFiles + others + conns
	for {
		d, err := divide(limit, others)
		if err == nil && d.conns >= conns {
			return limit
		}
		limit += max(1, conns-d.conns)
	}
}
