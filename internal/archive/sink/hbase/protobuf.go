package hbase

import (
	"encoding/binary"
	"errors"
)

// Field numbers of the gateway's messages: a CellSet has rows; a Row has a key and cells; a Cell has column, time and
// data; a Scanner has columns, batch (cells of a row) and caching (rows).
const (
	setRows     = 1
	rowKey      = 1
	rowCells    = 2
	cellColumn  = 2
	cellTime    = 3
	cellData    = 4
	scanColumns = 3
	scanBatch   = 4
	scanCaching = 9
)

const (
	wireVarint = 0
	wireBytes  = 2
)

func appendVarint(b []byte, field int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(field<<3|wireVarint)), v)
}

func appendBytes[T string | []byte](b []byte, field int, v T) []byte {
	b = binary.AppendUvarint(b, uint64(field<<3|wireBytes))
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

var errMessage = errors.New("the gateway's response is truncated")

// eachField calls f with the fields of a message, each a number or bytes.
func eachField(b []byte, f func(field int, n uint64, v []byte) error) error {
	for len(b) > 0 {
		tag, k := binary.Uvarint(b)
		if k <= 0 {
			return errMessage
		}
		b = b[k:]
		n, k := binary.Uvarint(b)
		if k <= 0 {
			return errMessage
		}
		b = b[k:]
		var v []byte
		switch tag & 7 {
		case wireVarint:
		case wireBytes:
			if n > uint64(len(b)) {
				return errMessage
			}
			v, b = b[:n], b[n:]
		default:
			return errMessage
		}
		if err := f(int(tag>>3), n, v); err != nil {
			return err
		}
	}
	return nil
}

// eachCell calls f with the cells of a CellSet.
func eachCell(set []byte, f func(value string, at int64) error) error {
	return eachField(set, func(field int, _ uint64, row []byte) error {
		if field != setRows {
			return nil
		}
		return eachField(row, func(field int, _ uint64, cell []byte) error {
			if field != rowCells {
				return nil
			}
			var value string
			var at int64
			err := eachField(cell, func(field int, n uint64, v []byte) error {
				switch field {
				case cellTime:
					at = int64(n)
				case cellData:
					value = string(v)
				}
				return nil
			})
			if err != nil {
				return err
			}
			return f(value, at)
		})
	})
}
