package frontier

import "testing"

func TestResidentsLeaveInTheOrderOfLastUse(t *testing.T) {
	r := newResidents(1<<20, 1)
	a, b, c := &host{key: "a"}, &host{key: "b"}, &host{key: "c"}
	for _, h := range []*host{a, b, c} {
		r.admit(h)
		r.update(h)
	}
	if r.oldest() != a || r.bytes != 3*(hostCost+1) {
		t.Errorf("%v goes first, %d bytes", r.oldest(), r.bytes)
	}
	a.visits.n++
	r.update(a)
	b.residence.held++
	r.update(b)
	if r.oldest() != c {
		t.Error("a host in use would leave memory")
	}
	a.visits.n--
	r.update(a)
	r.remove(c)
	if r.oldest() != a || r.bytes != 2*(hostCost+1) || r.blank() != c {
		t.Errorf("%v goes next, %d bytes", r.oldest(), r.bytes)
	}
}

func TestHostsAreReadAheadUpToTheStock(t *testing.T) {
	r := newResidents(1<<20, 1)
	r.readAheadTarget = 8
	var hosts []*host
	for i := range 10 {
		h := &host{clock: clock{suspect: i >= 8}}
		if class := coldClass(h.clock.suspect); !r.needsReadAhead(class) {
			t.Errorf("host %d is not wanted", i)
		}
		r.readAhead(h)
		hosts = append(hosts, h)
	}
	if r.needsReadAhead(sound) || r.needsReadAhead(suspect) {
		t.Error("more are wanted than the stock, or than a quarter of it for suspects")
	}
	r.endReadAhead(hosts[0])
	r.endReadAhead(hosts[0])
	if !r.needsReadAhead(sound) || r.readAheadCount[sound] != 7 {
		t.Errorf("%d are ahead after one was handed out", r.readAheadCount[sound])
	}
}
