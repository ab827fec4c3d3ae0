package office

import (
	"encoding/xml"
	"math"
	"strconv"
	"strings"
	"time"
)

// A numberFormat is the part of a cell's number format that affects its text.
type numberFormat struct {
	date, time bool
	percent    bool
	decimals   int // -1: as many as the number has
}

// general is the format of cells without one.
var general = numberFormat{decimals: -1}

// readStyles reads the formats of cells from xl/styles.xml.
func (w *workbook) readStyles(x *xmlReader, _ *xml.StartElement) error {
	custom := map[int]numberFormat{}
	return x.each(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "numFmts":
			return x.each(func(e *xml.StartElement) error {
				if id, err := strconv.Atoi(attr(e, "numFmtId")); err == nil && len(custom) < 10_000 {
					custom[id] = parseNumberFormat(attr(e, "formatCode"))
				}
				return nil
			}, nil)
		case "cellXfs":
			return x.each(func(e *xml.StartElement) error {
				if e.Name.Local != "xf" || len(w.formats) >= 100_000 {
					return nil
				}
				id, _ := strconv.Atoi(attr(e, "numFmtId"))
				f, known := custom[id]
				if !known {
					f = builtinFormat(id)
				}
				w.formats = append(w.formats, f)
				return nil
			}, nil)
		}
		return nil
	}, nil)
}

// builtinFormat returns a format that files need not define.
func builtinFormat(id int) numberFormat {
	switch id {
	case 1, 3:
		return numberFormat{}
	case 2, 4:
		return numberFormat{decimals: 2}
	case 9:
		return numberFormat{percent: true}
	case 10:
		return numberFormat{percent: true, decimals: 2}
	case 14, 15, 16, 17:
		return numberFormat{date: true}
	case 18, 19, 20, 21, 45, 46, 47:
		return numberFormat{time: true}
	case 22:
		return numberFormat{date: true, time: true}
	}
	return general
}

// parseNumberFormat parses a format such as yyyy\-mm\-dd;@ as far as it is used here.
func parseNumberFormat(code string) numberFormat {
	code, _, _ = strings.Cut(code, ";")
	var plain strings.Builder // without texts in quotes and brackets, and escaped characters
	for i := 0; i < len(code); i++ {
		switch c := code[i]; c {
		case '\\', '_', '*':
			i++
		case '"', '[':
			end := map[byte]byte{'"': '"', '[': ']'}[c]
			n := strings.IndexByte(code[i+1:], end)
			if n < 0 {
				return general
			}
			i += n + 1
		default:
			plain.WriteByte(c)
		}
	}
	s := strings.ToLower(plain.String())
	s = strings.ReplaceAll(s, "general", "")
	f := numberFormat{date: strings.ContainsAny(s, "yd"), time: strings.ContainsAny(s, "hs"), decimals: -1}
	switch {
	case f.date || f.time:
	case strings.Contains(s, "m") && !strings.ContainsAny(s, "0#"):
		f.date = true
	case strings.Contains(s, "e"), strings.Contains(s, "/"):
	case strings.ContainsAny(s, "0#"):
		f.percent = strings.Contains(s, "%")
		_, fraction, _ := strings.Cut(s, ".")
		f.decimals = strings.Count(fraction, "0")
		if strings.Contains(fraction, "#") {
			f.decimals = -1
		}
	}
	return f
}

// number returns the text of a cell with a number: dates and times as ISO 8601, others rounded as they are shown.
func (w *workbook) number(value, style string) string {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return value
	}
	f := general
	if i, err := strconv.Atoi(style); err == nil && i >= 0 && i < len(w.formats) {
		f = w.formats[i]
	}
	const lastDay = 2_958_466 // in the year 10000
	switch {
	case (f.date || f.time) && n >= 0 && n < lastDay:
		return w.timeOf(n, f)
	case f.percent:
		return strconv.FormatFloat(n*100, 'f', max(f.decimals, 0), 64) + "%"
	case f.decimals >= 0 && f.decimals <= 15 && math.Abs(n) < 1e15:
		return strconv.FormatFloat(n, 'f', f.decimals, 64)
	case math.Abs(n) < 1e15 && math.Abs(n) >= 1e-9 || n == 0:
		short := strconv.FormatFloat(n, 'g', 15, 64) // binary noise is not shown
		if exact, err := strconv.ParseFloat(short, 64); err == nil {
			return strconv.FormatFloat(exact, 'f', -1, 64)
		}
	}
	return value
}

// timeOf returns the day and time of a serial number.
func (w *workbook) timeOf(n float64, f numberFormat) string {
	epoch := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	if w.date1904 {
		epoch = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	} else if n < 60 { // the format has a 29 February 1900
		epoch = epoch.AddDate(0, 0, 1)
	}
	day, fraction := math.Modf(n)
	t := epoch.AddDate(0, 0, int(day)).Add(time.Duration(math.Round(fraction*86400)) * time.Second)
	layout := ""
	if f.date {
		layout = time.DateOnly
	}
	if f.time && (fraction != 0 || !f.date) {
		layout = strings.TrimSpace(layout + " " + time.TimeOnly)
	}
	return t.Format(layout)
}
