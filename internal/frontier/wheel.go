package frontier

// A list is a queue of records that are linked by their numbers.
type list struct{ head, tail, n uint32 }

func (l *list) push(t *table, id uint32) {
	l.n++
	t.at(id).link = 0
	if l.head == 0 {
		l.head = id
	} else {
		t.at(l.tail).link = id
	}
	l.tail = id
}

func (l *list) pop(t *table) uint32 {
	id := l.head
	l.n--
	if l.head = t.at(id).link; l.head == 0 {
		l.tail = 0
	}
	return id
}

func (l *list) splice(t *table, o list) {
	switch {
	case o.head == 0:
	case l.head == 0:
		*l = o
	default:
		t.at(l.tail).link = o.head
		l.tail = o.tail
		l.n += o.n
	}
}

const (
	turnTicks = 256  // ms that a bucket of the wheel stands for
	buckets   = 4096 // 17 minutes; what is due later goes round again
)

// A wheel is a timing wheel of cold hosts (Varghese and Lauck 1987): O(1) to add a host and to take it when its time comes. It does
// not take hosts out whose times change: they are looked at when their bucket's turn comes.
type wheel struct {
	buckets [buckets]list
	turn    int64 // the next bucket to come
	n       int   // hosts
}

// add puts a host where its time is.
func (w *wheel) add(t *table, id uint32, tick int64) {
	turn := min(max(tick/turnTicks, w.turn), w.turn+buckets-1)
	w.buckets[turn%buckets].push(t, id)
	w.n++
}

// advance moves the hosts whose buckets' turns have come to due.
func (w *wheel) advance(t *table, tick int64, due *list) {
	last := tick / turnTicks
	if w.n == 0 {
		w.turn = max(w.turn, last+1)
		return
	}
	for end := min(last, w.turn+buckets-1); w.turn <= end; w.turn++ {
		b := &w.buckets[w.turn%buckets]
		w.n -= int(b.n)
		due.splice(t, *b)
		*b = list{}
	}
	w.turn = max(w.turn, last+1)
}
