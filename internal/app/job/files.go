package job

import (
	"fmt"

	"kumo/internal/base/advice"
	"kumo/internal/content/fetch"
)

// How the files and sockets are shared out that a process may have open (ulimit -n): first the state and the record
// files, without which there is no crawl, then the files of the state that are only read, which are opened as they are
// needed, then look-ups, and connections take the rest.
const (
	// the program's own, the crawl's locks, journal and records, what a checkpoint writes, who answers questions
	fixedFiles    = 36
	nodeFiles     = 16  // connections of a node to the cluster
	serverFiles   = 112 // and of a server to nodes, with the files of what it keeps for them
	rankFiles     = 3   // links by which URLs are ranked
	minRead       = 8   // files of the state open for reading
	maxRead       = 512
	minLookups    = 2 // names looked up at once
	maxLookups    = 256
	lookupSockets = 2 // each takes
	minConns      = 4
)

// A descriptors is how many of what may be open.
type descriptors struct {
	read, lookups, conns int
}

// divide shares limit files and sockets out, of which others take so many.
func divide(limit, others int) (d descriptors, err error) {
	rest := limit - fixedFiles - others
	if least := minRead + minLookups*lookupSockets + minConns; rest < least {
		return d, advice.Usage("a limit of %d open files is too few: a crawl takes %d at least, and one more for each "+
			"host worked on at once; "+
			"raise it, as with ulimit -n 1024", limit, limit-rest+least)
	}
	d.read = min(max(rest/4, minRead), maxRead)
	d.lookups = min(max(rest/16, minLookups), maxLookups)
	d.conns = rest - d.read - d.lookups*lookupSockets
	return d, nil
}

// A Role is what a process is beside a crawl, and takes files and sockets for.
type Role int

// The roles that a process may have.
const (
	Alone  Role = iota // a crawl of one machine
	Member             // a node of a cluster
	Server             // a node that runs a server of its cluster, too
)

// FitFiles fits the job into what this process may have open, and says where that is less than was asked for. Of the
// state's files that are only read, so many may be open at once; 0: any number.
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
		j.Warn(fmt.Errorf("a limit of %d open files leaves room for %d connections: %d hosts are worked on at once "+
			"instead of %d; more would need ulimit -n %d", limit, d.conns, most, hosts, limitFor(hosts*j.perHost(), others)))
		j.Frontier.Hosts = most
	}
	j.Fetch.Sockets, j.Fetch.Lookups = d.conns, d.lookups
	return d.read, nil
}

// limitFor is a limit with which there are so many connections.
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
