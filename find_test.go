package kumo_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"kumo"
)

const thing = `<base href="/shop/"><h1>A <b>thing</b></h1><p class=price>1.234,50 €</p><p class=n>12 of them</p><a class=author href=ann>Ann</a>
<time datetime=2024-05-17T10:00Z>today</time><i class=tag>a</i><i class=tag>b</i><div class=rich>x <b>y</b></div>
<div class=review><b>B</b><u>4</u></div><div class=review><b>C</b><u>none</u></div>`

type review struct {
	By    string `kumo:"b"`
	Stars *int   `kumo:"u"`
}

func TestFields(t *testing.T) {
	type product struct {
		Title   string    `kumo:"h1,required"`
		Price   float64   `kumo:"p.price"`
		Written string    `kumo:".price,number"`
		N       uint8     `kumo:".n"`
		Author  string    `kumo:"a.author@href"`
		At      string    `kumo:"a.author@href,url"`
		Day     time.Time `kumo:"time@datetime"`
		Tags    []string  `kumo:".tag, .none"`
		Rich    string    `kumo:".rich,html"`
		Own     string    `kumo:".rich::text"`
		Sale    bool      `kumo:".sale"`
		Tagged  bool      `kumo:".tag"`
		First   review    `kumo:".review"`
		None    *review   `kumo:".none"`
		Reviews []review  `kumo:".review"`
		Other   string
	}
	got, err := kumo.Fields[product](&kumo.Page{URL: "http://a.example/x/", Body: []byte(thing)})
	four := 4
	want := product{Title: "A thing", Price: 1234.5, Written: "1234.50", N: 12, Author: "ann",
		At:  "http://a.example/shop/ann",
		Day: time.Date(2024, 5, 17, 10, 0, 0, 0, time.UTC), Tags: []string{"a", "b"}, Rich: "x <b>y</b>", Own: "x",
		Tagged: true,
		First:  review{"B", &four}, Reviews: []review{{"B", &four}, {"C", new(int)}}}
	got.Day = got.Day.UTC()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if err == nil || !strings.Contains(err.Error(), `Reviews.Stars: "none": not a number`) {
		t.Errorf("what cannot be read: %v", err)
	}
}

func TestFieldsThatAreNone(t *testing.T) {
	page := &kumo.Page{URL: "http://a.example/", Body: []byte("<p>300<i>x</i>")}
	for _, c := range []struct {
		read func() error
		want string
	}{
		{read[struct {
			A string `kumo:"h1,required"`
		}](page), "A: it is required, and not there"},
		{read[struct {
			A int8 `kumo:"p"`
		}](page), `A: "300x": no whole number of 8 bits`},
		{read[struct {
			A time.Time `kumo:"i"`
		}](page), `A: "x": no date`},
		{read[struct {
			A string `kumo:"p >"`
		}](page), `field A, kumo:"p >": no selector after the last`},
		{read[struct {
			A map[string]int `kumo:"p"`
		}](page), "cannot read a map[string]int"},
		{read[struct {
			a string `kumo:"p"`
		}](page), "not exported"},
		{read[struct{ A string }](page), "no field of struct"},
		{read[int](page), "int is not a struct"},
		{read[struct {
			A loop `kumo:"p"`
		}](page), "contains itself"},
		{read[struct {
			A string `kumo:"p"`
		}](&kumo.Page{Type: "image/png"}), "it is image/png, not HTML"},
	} {
		if err := c.read(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

type loop struct {
	B []loop `kumo:"b"`
}

func read[T any](p *kumo.Page) func() error {
	return func() error { _, err := kumo.Fields[T](p); return err }
}

func TestFind(t *testing.T) {
	p := &kumo.Page{URL: "http://a.example/x/", Body: []byte(thing)}
	var got []string
	for e := range p.Find(".review") {
		for b := range e.Find("> b, u::text") {
			got = append(got, b.Name()+" "+b.Text())
		}
	}
	for e := range p.Find("a::attr(href)") {
		got = append(got, e.Text(), e.URL("href"), e.Attr("none"), e.URL("none"), e.HTML())
		break
	}
	if want := "b B|u 4|b C|u none|ann|http://a.example/shop/ann|||Ann"; strings.Join(got, "|") != want {
		t.Errorf("%q, want %q", got, want)
	}
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, `kumo: Find("p["): `) {
			t.Errorf("a bad selector: %s", said)
		}
	}()
	p.Find("p[")
}
