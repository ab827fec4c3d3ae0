package hadoop

import "fmt"

// The job decides which reducer gets a key. Hadoop has no partitioner for that, but it has one for hashing a part of
// the key (KeyFieldBasedPartitioner). So a mapper prepends three bytes to each key whose hash leads to the wanted
// partition. They are the same for all keys of a partition, so that the keys keep their order.
//
// With rawbytes the partitioner gets a key as hexadecimal digits, two per byte, separated by spaces ("6b 75 6d"), and
// hashes the first eight characters. With fewer characters the hash would not overflow. Then, for example, only those
// of 31 partitions would have keys that match a possible last character.

const (
	codeLen       = 3
	codeChars     = "-k1.1,1.8"
	maxPartitions = 4096
	hexDigits     = "0123456789abcdef"
	partitioner   = "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner"
)

// A code is the prefix of all keys of a partition.
type code [codeLen]byte

// codes are the prefixes of n partitions, and one more for counters.
type codes struct {
	of []code
	// counters is the prefix of mappers' counters, which go to the first reducer. No record has it.
	counters code
}

func partitionCodes(n int) (codes, error) {
	if n < 1 || n > maxPartitions {
		return codes{}, fmt.Errorf("%d reducers: expected 1 to %d", n, maxPartitions)
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
		return codes{}, fmt.Errorf("%d reducers: %d of them would get no keys", n, left)
	}
	return all, nil
}

// partition returns the partition to which Hadoop assigns keys with this prefix.
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
