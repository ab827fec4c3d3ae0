package entry

import (
	"slices"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// MaxURL is how long a URL may be, and what goes along with it, in bytes.
const MaxURL = 1<<16 - 1

// Chunk is a chunk as the journal has it, with what was decided when it came.
type Chunk struct {
	Transfer member.Transfer
	Seq      uint64
	Last     bool
	Data     string
	Kept     []string // hosts, sorted, that the chunk has and that stay if the transfer is dropped
	Excluded []int    // waiting URLs of these, by their place in the chunk, that were not taken in
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

// Chunk is a chunk of a transfer that has come.
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

// mergedChunk is came of a chunk that has hosts which are kept.
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

// TransferDropped is a transfer that did not come whole, and is undone.
func (e *Encoder) TransferDropped(t member.Transfer) {
	e.Byte(kindTransferDropped)
	e.transfer(t)
}

// HostsForgotten are hosts, sorted, that have gone to other nodes, or whose transfer is being undone.
func (e *Encoder) HostsForgotten(hosts []string) {
	e.Byte(kindHostsForgotten)
	e.hosts(hosts)
}

// hosts writes names, each by what it does not share with the one before.
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

// TransfersDone are transfers that went whole, and whose hosts are forgotten.
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

// EpochSettled is the epoch up to which transfers need not be known any more.
func (e *Encoder) EpochSettled(settled uint64) {
	e.Byte(kindEpochSettled)
	e.Int(int64(settled))
}
