package inflate

import (
	"encoding/binary"
	"slices"
)

const (
	roundOutput = 3 + 258 // output bytes of a round of the fast loop: three literals and a match
	overshoot   = 16      // bytes after a match that it may overwrite
	roundInput  = 7 + 8   // input bytes that a round may need: two refills; the first advances by at most 7
)

// codes decodes the symbols of a block.
func (d *Decoder) codes(t *tables) error {
	for {
		if len(d.buf) < min(d.pos+roundOutput+overshoot, d.end) {
			d.grow()
		}
		if most := min(d.end, len(d.buf)-overshoot) - roundOutput; d.pos <= most && d.next <= len(d.src)-roundInput {
			if done, err := d.fast(t, most); done {
				return err
			}
			continue
		}
		if done, err := d.symbol(t); done {
			return err
		}
	}
}

// fast decodes symbols while there is enough input and pos does not exceed most. It works on as few local variables as
// possible, so that they stay in registers: slice lengths serve as limits, and have keeps the garbage of subtracted
// entries in its upper bits. Constant slice capacities save the compiler a case.
//
// A refill provides 56 bits. A round needs at most 50 before the next refill: three literals of the first table (30)
// and a length (20). Then a distance needs 28, which leaves enough to look up the next entry before the refill and the
// copy.
func (d *Decoder) fast(t *tables, most int) (done bool, err error) {
	src, buf, base := slices.Clip(d.src), slices.Clip(d.buf[:most+roundOutput+overshoot]), d.base
	next, hold, have, pos := d.next, d.hold, uint32(d.have), d.pos

	next, hold, have = filled(src, next, hold, have)
	e := t.lit[hold&(1<<litBits-1)]
	for next <= len(src)-roundInput && pos <= len(buf)-(roundOutput+overshoot) {
		if int32(e) < 0 {
			hold, have = hold>>(e&takesMask), have-e
			buf[pos] = byte(e >> valueShift)
			pos++
			e = t.lit[hold&(1<<litBits-1)]
			if int32(e) < 0 {
				hold, have = hold>>(e&takesMask), have-e
				buf[pos] = byte(e >> valueShift)
				pos++
				e = t.lit[hold&(1<<litBits-1)]
				if int32(e) < 0 {
					buf[pos] = byte(e >> valueShift)
					pos++
					hold, have = hold>>(e&takesMask), have-e
					e = t.lit[hold&(1<<litBits-1)]
					if int32(e) < 0 {
						next, hold, have = filled(src, next, hold, have)
						continue
					}
				}
			}
		}
		if e&special != 0 {
			if e&further != 0 {
				hold, have = hold>>(e&takesMask), have-e
				e = t.lit[second(e, hold)%litEntries]
				if int32(e) < 0 {
					buf[pos] = byte(e >> valueShift)
					pos++
					hold, have = hold>>(e&takesMask), have-e
					next, hold, have = filled(src, next, hold, have)
					e = t.lit[hold&(1<<litBits-1)]
					continue
				}
			}
			if e&special != 0 {
				hold, have = hold>>(e&takesMask), have-e
				done = true
				if e&endOfBlock == 0 {
					err = ErrCorrupt
				}
				break
			}
		}
		length := sum(e, hold)
		hold, have = hold>>(e&takesMask), have-e
		next, hold, have = filled(src, next, hold, have)

		e = t.dist[hold&(1<<distBits-1)]
		if e&special != 0 {
			if e&further != 0 {
				hold, have = hold>>(e&takesMask), have-e
				e = t.dist[second(e, hold)%distEntries]
			}
			if e&special != 0 {
				done, err = true, ErrCorrupt
				break
			}
		}
		distance := sum(e, hold)
		hold, have = hold>>(e&takesMask), have-e
		e = t.lit[hold&(1<<litBits-1)]
		next, hold, have = filled(src, next, hold, have)

		from := pos - distance
		if from < base {
			done, err = true, ErrCorrupt
			break
		}
		end := pos + length
		if distance >= 16 {
			copy16(buf, pos, from)
			for pos += 16; pos < end; pos += 16 {
				copy16(buf, pos, pos-distance)
			}
		} else {
			// Only the first distance bytes of each word are correct; the next word overwrites the rest.
			for ; pos < end; pos += min(distance, 8) {
				store64(buf, pos, load64(buf, pos-distance))
			}
		}
		pos = end
	}
	d.next, d.hold, d.have, d.pos = next, hold, uint(have&63), pos
	return done, err
}

// filled refills hold with whole bytes. The bits above them are also added, and again the next time, which changes
// nothing. Only the lowest 6 bits of have count.
func filled(src []byte, next int, hold uint64, have uint32) (int, uint64, uint32) {
	return next + int(63-have&63)>>3, hold | load64(src, next)<<(have&63), have | 56
}

// sum returns the value of an entry plus the extra bits in hold.
func sum(e entry, hold uint64) int {
	return int(e>>valueShift) + int(hold&(1<<(e&takesMask)-1)>>(e>>codeShift&codeMask))
}

// second returns the index of the second-level entry for a longer code.
func second(e entry, hold uint64) uint64 {
	return uint64(e>>valueShift) + hold&(1<<(e>>codeShift&codeMask)-1)
}

func load64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i : i+8 : i+8]) }

func store64(b []byte, i int, v uint64) { binary.LittleEndian.PutUint64(b[i:i+8:i+8], v) }

// copy16 copies 16 bytes that do not overlap.
func copy16(b []byte, to, from int) {
	*(*[16]byte)(b[to : to+16 : to+16]) = *(*[16]byte)(b[from : from+16 : from+16])
}
