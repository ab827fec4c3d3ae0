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
		`status == 404 || status == 200 && depth < 3`:            false, // && has precedence
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
		``:                                   `"", at byte 1: missing column before the end`,
		`state == 200`:                       `at byte 1: unknown column "state"; did you mean status? Columns: url, status,`,
		`qqqqqqqqqq == 1`:                    `unknown column "qqqqqqqqqq" Columns: `,
		`status = 200`:                       `at byte 8: unexpected '=': use == to compare`,
		`status == 200 & depth < 1`:          `at byte 15: unexpected '&': use && to join`,
		`status == "200"`:                    `status is a number, as in status == 200`,
		`status ~ 200`:                       `at byte 8: status is a number: ~ needs a text`,
		`type == html`:                       `type is a text: quote the value, as in type == "html"`,
		`type == "html`:                      `at byte 9: missing " at the end of the text`,
		`type`:                               `at byte 5: type is a text: missing comparison before the end, as in type ~`,
		`type ==`:                            `missing value before the end`,
		`host ~ "("`:                         `missing closing`,
		`(status == 200`:                     `missing ) before the end`,
		`status == 200 depth == 1`:           `at byte 15: unexpected depth`,
		`noindex == 1`:                       `noindex is true or false`,
		`noindex < true`:                     `use == or !=`,
		`time > "yesterday"`:                 `time is a time in UTC, as`,
		`200 == status`:                      `missing column before 200`,
		`status == 9999999999999999999999`:   `status is a number`,
		strings.Repeat("!", 300) + "noindex": `too many nested parentheses`,
		strings.Repeat("(", 70000):           `too long: 70000 bytes`,
	} {
		if _, err := Parse(expr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v\nwant %s", expr, err, want)
		}
	}
}

// Records are read only if the condition needs them.
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
