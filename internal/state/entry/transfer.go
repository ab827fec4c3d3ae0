package entry

import (
	"slices"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// MaxURL is the maximum length in bytes of a URL and of the strings stored with it.
const MaxURL = 1<<16 - 1

// Chunk is a chunk of a transfer in the journal, with the decisions that were made when it arrived.
type Chunk struct {
	Transfer member.Transfer
	Seq      uint64
	Last     bool
	Data     string
	Kept     []string // hosts of the chunk that stay if the transfer is dropped, sorted
	Excluded []int    // indexes in the chunk of pending URLs of these hosts that were not admitted
}

// Keeps reports whether a host stays if the transfer is dropped.
func (c *Chunk) Keeps(host string) bool {
	_, kept := slices.BinarySearch(c.Kept, host)
	return kept
}

func (e *Encoder) transfer(t member.Transfer) {
	e.String(string(t.From))
	e.String(string(t.To))
	e.Int(int64(t.Epoch))
	e.Int(int64(t.Attempt))
}

func (d *Decoder) transfer() member.Transfer {
	return member.Transfer{From: strategy.Node(d.String()), To: strategy.Node(d.String()), Epoch: uint64(d.Int()),
		Attempt: uint64(d.Int())}
}

// Chunk writes a received chunk of a transfer.
func (e *Encoder) Chunk(c Chunk) {
	if len(c.Kept) == 0 {
		e.Byte(kindChunk)
	} else {
		e.Byte(kindMergedChunk)
		e.hosts(c.Kept)
		e.Int(int64(len(c.Excluded)))
		before := 0
		for _, n := range c.Excluded {
			e.Int(int64(n - before))
			before = n
		}
	}
	e.transfer(c.Transfer)
	e.Int(int64(c.Seq))
	e.Bool(c.Last)
	e.String(c.Data)
}

func (d *Decoder) chunk() Chunk {
	return Chunk{Transfer: d.transfer(), Seq: uint64(d.Int()), Last: d.Bool(), Data: d.String()}
}

// mergedChunk reads a chunk with kept hosts.
func (d *Decoder) mergedChunk() Chunk {
	kept, at := d.hosts(), 0
	var left []int
	for n := d.Int(); n > 0 && !d.Bad; n-- {
		at += int(d.Int())
		left = append(left, at)
	}
	c := d.chunk()
	c.Kept, c.Excluded = kept, left
	return c
}

// TransferDropped writes an incomplete transfer that is undone.
func (e *Encoder) TransferDropped(t member.Transfer) {
	e.Byte(kindTransferDropped)
	e.transfer(t)
}

// HostsForgotten writes hosts, sorted, that were transferred to other nodes, or whose transfer is being undone.
func (e *Encoder) HostsForgotten(hosts []string) {
	e.Byte(kindHostsForgotten)
	e.hosts(hosts)
}

// hosts writes names, each without the prefix that it shares with the previous one.
func (e *Encoder) hosts(hosts []string) {
	e.Int(int64(len(hosts)))
	before := ""
	for _, host := range hosts {
		e.Suffix(host, before)
		before = host
	}
}

func (d *Decoder) hosts() (hosts []string) {
	before := ""
	for n := d.Int(); n > 0 && !d.Bad; n-- {
		before = d.Suffix(before, MaxURL)
		hosts = append(hosts, before)
	}
	return hosts
}

// TransfersDone writes transfers that are complete, and whose hosts were forgotten.
func (e *Encoder) TransfersDone(all []member.Transfer) {
	e.Byte(kindTransfersDone)
	e.Int(int64(len(all)))
	for _, t := range all {
		e.transfer(t)
	}
}

func (d *Decoder) transfers() (all []member.Transfer) {
	for n := d.Int(); n > 0 && !d.Bad; n-- {
		all = append(all, d.transfer())
	}
	return all
}

// EpochSettled writes the epoch up to which the records of transfers can be dropped.
func (e *Encoder) EpochSettled(settled uint64) {
	e.Byte(kindEpochSettled)
	e.Int(int64(settled))
}
