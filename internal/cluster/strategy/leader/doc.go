// Package leader elects one of a crawl's members, and keeps what it decides in a log that outlives it. A strategy that
// has a central part, as hub has its control unit, puts that part's state behind [Replica], and an [Elector] on every
// node. Like a strategy this is a state machine: clock, log and network are its caller's.
//
// # Who leads
//
// The first three members are candidates. Each holds a replica of the state and reads the log along; one of them leads.
// It says so to the others every Beat. When it has been silent for Silence, the first of the others takes its place,
// and if that does not, the next. Who leads begins a term, with an entry of its own in the log, and terms only grow.
// All other nodes learn who leads from its answers, or ask the candidates one after the other. Only the leader takes
// questions; the others name it. Its answers are numbered, so that one that comes late is let go.
//
// # The log
//
// An entry is taken only behind the last one that its writer has read ([strategy.Persist]). So who leads has read all
// that is there, and of two who believe that they lead, one writes nothing any more. Nor may who knows of an earlier
// epoch of members than the log's last entry begin a term: a node that was given up for dead may find out late, and
// takes those who came since for nobody.
//
// What a leader appends counts when it is durable: only then is it applied, and [Replica.Committed] called. If it is
// not known whether an entry was written, the log is read again, and the same entry is written once more behind the
// same one: so it is there once. Of an entry in doubt whose leader has lost its place, nobody can say whether it will
// count.
//
// There is no snapshot beside the log. Instead each entry carries, beside changes, about as many bytes of parts of the
// state as they are before these, one part after the other in a circle. Whoever reads from the beginning of a whole
// circle has the state; what is older is trimmed. So the log is never longer than a few times the state, and nothing
// ever stops to write it down.
package leader
