package hostlease

import "testing"

// The renewal of the process's own lease does not wait for the records of many hosts.
func TestARenewalGoesFirst(t *testing.T) {
	t.Parallel()
	k := NewKeeper(Config{Name: "n", Timing: simTiming()})
	for _, host := range []string{"a", "b"} {
		k.work = enqueue(k.work, []Action{PutRecord{Record: Record{Host: host}}})
	}
	k.step(EntrySeen{}) // the watch has shown all entries, so the machine writes its own
	if len(k.work) != 3 {
		t.Fatalf("actions: %+v", k.work)
	}
	_, first := k.work[0].(PutEntry)
	if a, b := k.work[1].(PutRecord), k.work[2].(PutRecord); !first || a.Record.Host != "a" || b.Record.Host != "b" {
		t.Errorf("actions: %+v", k.work)
	}
}
