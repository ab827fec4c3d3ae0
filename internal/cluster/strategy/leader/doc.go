// Package leader elects one of a crawl's members as leader, and records its decisions in a log that outlives it.
//
// A strategy with a central part, such as hub with its control unit, implements [Replica] for that part's state and
// runs an [Elector] on every node. Like a strategy, an Elector is a state machine: clock, log and network are its
// caller's.
//
// # Election
//
// The first three members are candidates. Each holds a replica of the state and follows the log; one of them leads. The
// leader sends a heartbeat to the others every Beat. When it has been silent for Silence, the first of the others
// replaces it, or the next one if the first does not.
//
// A leader begins a term with an entry of its own in the log, and terms only grow. All other nodes learn the leader
// from its answers, or query the candidates one after the other. Only the leader answers requests; the others name the
// leader. Its answers are numbered, so late answers are dropped.
//
// # Log
//
// A writer can append an entry only directly after the last entry that it has read ([strategy.Persist]). So the leader
// has read the whole log, and of two nodes that believe they lead, one can no longer write. A candidate also cannot
// begin a term if it knows only an earlier epoch of members than the log's last entry. Such a node may have been
// declared dead without knowing it, and does not know the members that have joined since.
//
// A leader's entry takes effect when it is durable. Only then is it applied and [Replica.Committed] called. If the
// outcome of a write is unknown, the leader reads the log again and writes the same entry after the same predecessor.
// So the log contains it once. If the leader loses its position in that state, it is open whether the entry takes
// effect.
//
// There is no snapshot besides the log. Instead each entry carries changes and about the same number of bytes of the
// state's parts, as they were before these changes. The parts follow one another cyclically. A reader that starts at
// the beginning of a complete cycle obtains the whole state, and older entries are trimmed. So the log is never longer
// than a few times the state, and no operation stops to write a snapshot.
package leader
