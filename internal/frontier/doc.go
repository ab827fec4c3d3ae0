// Package frontier holds the URLs that wait, by host, and decides which host is next and when. It is where politeness is kept.
//
// A host is handed out to no more workers at once than it may have connections, and comes back with its next time: the delay
// after the end of an answer, the time a Retry-After names, or a wait that doubles with each failure. Hosts whose time has
// come are handed out in the order of their times; within a host, URLs nearer to a seed go first.
//
// Hosts fall into classes. A suspect is a host that failed or was slow; suspects together get at most a quarter of the
// places, so that dead hosts, each of which holds a place for a whole time limit, leave the others' places free.
package frontier
