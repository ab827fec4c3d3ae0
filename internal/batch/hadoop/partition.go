package hadoop

import "fmt"

// Which reducer has a key is the job's to say, and Hadoop has no partitioner that does as it is told, but one that
// hashes a part of the key (KeyFieldBasedPartitioner). So a mapper puts three bytes before each key that make it come
// to the wanted partition, the same three for all keys of a partition: their order there is that of the keys
// themselves.
//
// With rawbytes the partitioner sees a key as hexadecimal digits, two a byte, with spaces between ("6b 75 6d"), and
// hashes the first eight characters of that. With fewer the hash does not overflow, and of 31 partitions only those
// have keys that a last character stands for.

const (
	codeLen       = 3
	codeChars     = "-k1.1,1.8"
	maxPartitions = 4096
	hexDigits     = "0123456789abcdef"
	partitioner   = "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner"
)

// A code is what a key of a partition begins with.
type code [codeLen]byte

// codes are those of n partitions, and one more.
type codes struct {
	of []code
	// counters is what mappers' counters go under, to the first reducer: no record has it.
	counters code
}

func partitionCodes(n int) (codes, error) {
	if n < 1 || n > maxPartitions {
		return codes{}, fmt.Errorf("%d reducers: there may be 1 to %d", n, maxPartitions)
	}
	all, found := codes{of: make([]code, n)}, make([]bool, n)
	left, more := n, true
	for i := 0; i < 1<<24 && (left > 0 || more); i++ {
		c := code{byte(i >> 16), byte(i >> 8), byte(i)}
		switch p := c.partition(n); {
		case !found[p]:
			all.of[p], found[p] = c, true
			left--
		case p == 0 && more:
			all.counters, more = c, false
		}
	}
	if left > 0 || more {
		return codes{}, fmt.Errorf("%d reducers: no keys come to %d of them", n, left)
	}
	return all, nil
}

// partition is where Hadoop puts keys that begin so.
func (c code) partition(n int) int {
	hash := int32(0)
	for i, b := range c {
		if i > 0 {
			hash = 31*hash + ' '
		}
		hash = 31*(31*hash+int32(hexDigits[b>>4])) + int32(hexDigits[b&15])
	}
	return int(hash&0x7fffffff) % n
}
