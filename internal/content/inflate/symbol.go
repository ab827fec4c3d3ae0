package inflate

import "io"

// symbol decodes one symbol, for when there may not be enough input or space for fast.
func (d *Decoder) symbol(t *tables) (done bool, err error) {
	d.refill()
	e := t.lit[d.hold&(1<<litBits-1)]
	if e&further != 0 && e&special != 0 {
		e = d.further(e, t.lit[:])
	}
	switch takes := uint(e & takesMask); {
	case takes > d.have:
		return true, io.ErrUnexpectedEOF
	case e&endOfBlock != 0 && e&special != 0:
		d.consume(takes)
		return true, nil
	case e&special != 0:
		return true, ErrCorrupt
	case e&literal != 0:
		d.consume(takes)
		if d.pos == d.end {
			return true, ErrLimit
		}
		d.buf[d.pos] = byte(e >> valueShift)
		d.pos++
		return false, nil
	}
	length := d.value(e)
	e = t.dist[d.hold&(1<<distBits-1)]
	if e&further != 0 && e&special != 0 {
		e = d.further(e, t.dist[:])
	}
	if uint(e&takesMask) > d.have {
		return true, io.ErrUnexpectedEOF
	}
	if e&special != 0 {
		return true, ErrCorrupt
	}
	distance := d.value(e)
	if distance > d.pos-d.base {
		return true, ErrCorrupt
	}
	for range min(length, d.end-d.pos) {
		d.buf[d.pos] = d.buf[d.pos-distance]
		d.pos++
		length--
	}
	if length > 0 {
		return true, ErrLimit
	}
	return false, nil
}

// further looks up the second-level entry of a longer code.
func (d *Decoder) further(e entry, table []entry) entry {
	takes := uint(e & takesMask)
	if takes > d.have {
		return takesMask // the input has too few bits
	}
	d.consume(takes)
	return table[second(e, d.hold)]
}

// value consumes an entry's bits, and returns its value plus the extra bits.
func (d *Decoder) value(e entry) int {
	n := sum(e, d.hold)
	d.consume(uint(e & takesMask))
	return n
}
