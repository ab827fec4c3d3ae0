package where

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kumo/internal/archive/export/row"
)

var example = row.Row{URL: "https://www.a.de/x?y=1", Host: "www.a.de", Status: 200, Type: "text/html", Lang: "de",
	Depth: 3, Bytes: 12345,
	Title: `"Quoted" and 'so'`, NoIndex: true, Time: time.Date(2026, 3, 1, 10, 20, 30, 0, time.UTC)}

func TestConditions(t *testing.T) {
	for expr, want := range map[string]bool{
		`status == 200 && type == "text/html" && host ~ "\.de$"`: true,
		`status==200&&host~'^a'`:                                 false,
		`status != 200 || depth <= 3`:                            true,
		`status == 404 || status == 200 && depth < 3`:            false, // && binds more
		`(status == 404 || status == 200) && !(depth < 3)`:       true,
		`!noindex`:                                    false,
		`noindex && noindex == true`:                  true,
		`noindex != false`:                            true,
		`bytes > 10000 && bytes < 99999`:              true,
		`title == "\"Quoted\" and 'so'"`:              true,
		`title ~ '\'so\'$'`:                           true,
		`url !~ "\?"`:                                 false,
		`url > "https://m" && url < "https://x"`:      true,
		`time == "2026"`:                              true,
		`time == 2026`:                                true,
		`time == "2026-03"`:                           true,
		`time > "2026-03"`:                            false,
		`time >= "2026-03-01" && time < "2026-03-02"`: true,
		`time <= "2026-03-01 10:20"`:                  true,
		`time > "2026-03-01T10:20:29Z"`:               true,
		`time < "2026-03-01T12:20:30+02:00"`:          false,
		`depth == -1`:                                 false,
		`lang >= "de"`:                                true,
	} {
		c, err := Parse(expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if got := c.test(&example); got != want {
			t.Errorf("%s is %v", expr, got)
		}
	}
}

func TestErrors(t *testing.T) {
	for expr, want := range map[string]string{
		``:                                   `"", at byte 1: a column has to stand before the end`,
		`state == 200`:                       `at byte 1: there is no column "state"; did you mean status? Columns are url, status,`,
		`qqqqqqqqqq == 1`:                    `there is no column "qqqqqqqqqq" Columns are`,
		`status = 200`:                       `at byte 8: '=' means nothing here: == compares`,
		`status == 200 & depth < 1`:          `at byte 15: '&' means nothing here: && joins`,
		`status == "200"`:                    `status is a number, as in status == 200`,
		`status ~ 200`:                       `at byte 8: status is a number: ~ is for texts`,
		`type == html`:                       `type is a text: put it into quotes, type == "html"`,
		`type == "html`:                      `at byte 9: the text has no end: " is missing`,
		`type`:                               `at byte 5: type is a text: a comparison has to stand before the end, as in type ~ "^a"`,
		`type ==`:                            `a value has to stand before the end`,
		`host ~ "("`:                         `missing closing`,
		`(status == 200`:                     `a ) is missing before the end`,
		`status == 200 depth == 1`:           `at byte 15: depth is too much here`,
		`noindex == 1`:                       `noindex is true or false`,
		`noindex < true`:                     `use == or !=`,
		`time > "yesterday"`:                 `time is a time, in UTC, as`,
		`200 == status`:                      `a column has to stand before 200`,
		`status == 9999999999999999999999`:   `status is a number`,
		strings.Repeat("!", 300) + "noindex": `too much is in each other`,
		strings.Repeat("(", 70000):           `has 70000 bytes`,
	} {
		if _, err := Parse(expr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v\nwant %s", expr, err, want)
		}
	}
}

// Only what asks for it reads records.
func TestBody(t *testing.T) {
	for expr, want := range map[string]bool{`status == 200 && host ~ "a"`: false, `status == 200 && lang == "de"`: true} {
		if c, err := Parse(expr); err != nil || c.needsBody != want {
			t.Errorf("%s: %v, %v", expr, c, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, expr := range []string{`status == 200 && type == "text/html" && host ~ "\.de$"`, `!(time >= "2026") || noindex`,
		`'`, `a==`, `-`} {
		f.Add(expr)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		c, err := Parse(expr)
		if err != nil {
			return
		}
		got := c.test(&example)
		again, err := Parse(fmt.Sprintf("!(%s)", expr))
		if err == nil && again.test(&example) == got {
			t.Errorf("%q and its contrary are %v", expr, got)
		}
	})
}
