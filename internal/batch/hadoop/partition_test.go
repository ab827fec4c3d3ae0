package hadoop

import "testing"

func TestEveryPartitionHasACode(t *testing.T) {
	for n := 1; n <= maxPartitions; n++ {
		if n > 300 && n%97 != 0 && n != maxPartitions {
			continue
		}
		codes, err := partitionCodes(n)
		if err != nil {
			t.Fatal(err)
		}
		for p, c := range codes.of {
			if got := c.partition(n); got != p || c == codes.counters {
				t.Fatalf("the code %x of partition %d of %d leads to %d", c, p, n, got)
			}
		}
		if got := codes.counters.partition(n); got != 0 {
			t.Fatalf("counters go to partition %d of %d", got, n)
		}
	}
	for _, n := range []int{0, -1, maxPartitions + 1} {
		if _, err := partitionCodes(n); err == nil {
			t.Errorf("%d partitions have codes", n)
		}
	}
}
