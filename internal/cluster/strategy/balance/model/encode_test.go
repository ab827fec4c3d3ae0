package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestSaved: a model that was saved and read goes on as if it had not been, and two of one seed are the same.
func TestSaved(t *testing.T) {
	for _, count := range []int{0, 3, 20, 200} {
		one, two := quick.learn(t, count, 1), quick.learn(t, count, 1)
		saved := encode(t, one)
		if !bytes.Equal(saved, encode(t, two)) {
			t.Fatalf("%d samples: two models of one seed differ", count)
		}
		read, err := Decode(saved, Config{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(9, 9))
		for i := range 60 {
			s := quick.measure(fmt.Sprint("n", i%6), fiveNodes[i%5], rng)
			add(t, one, s)
			add(t, read, s)
			for _, node := range []string{"n0", "n5", "new"} {
				want, basis := seconds(one, node, fiveNodes[2], 50)
				got, also := seconds(read, node, fiveNodes[2], 50)
				if got != want || also != basis {
					t.Fatalf("%d samples and %d: %v by %v, not %v by %v", count, i+1, got, also, want, basis)
				}
			}
		}
		if one.Train(20) != read.Train(20) || !bytes.Equal(encode(t, one), encode(t, read)) {
			t.Errorf("%d samples: the model that was read learnt something else", count)
		}
	}
}

func encode(t testing.TB, m *Model) []byte {
	t.Helper()
	saved, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func TestSavedWithAnotherSize(t *testing.T) {
	m := quick.learn(t, 100, 1)
	read, err := Decode(encode(t, m), Config{Seed: 1, Hidden: 6})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(read.Samples(), m.Samples()) {
		t.Error("samples are lost")
	}
	if _, basis := seconds(read, "n1", fiveNodes[1], 10); basis != Pace {
		t.Errorf("a network of 13 units answers for one of 6, by %v", basis)
	}
	if read.Train(200); read.Report().Trained == 0 || quick.errorOf(read) > 0.2 {
		t.Errorf("6 units: %+v, off by %.3f", read.Report(), quick.errorOf(read))
	}
}

func TestRefused(t *testing.T) {
	saved := encode(t, quick.learn(t, 100, 1))
	change := func(f func(map[string]any)) []byte {
		var fields map[string]any
		if err := json.Unmarshal(saved, &fields); err != nil {
			t.Fatal(err)
		}
		f(fields)
		changed, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	if _, err := Decode(change(func(map[string]any) {}), Config{}); err != nil {
		t.Fatal(err)
	}
	_, err := Decode(change(func(f map[string]any) { f["version"] = 2 }), Config{})
	if !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "version 2, this build reads 1") {
		t.Errorf("another version: %v", err)
	}
	for name, data := range map[string][]byte{
		"nothing":      nil,
		"half":         saved[:len(saved)/2],
		"less weights": change(func(f map[string]any) { f["weights"] = f["weights"].([]any)[1:] }),
		"more units":   change(func(f map[string]any) { f["units"] = 1 << 40 }),
		"falling":      change(func(f map[string]any) { f["weights"].([]any)[5] = -1 }),
		"a bad sample": change(func(f map[string]any) { f["samples"].([]any)[7].(map[string]any)["seconds"] = -1 }),
		"twice":        change(func(f map[string]any) { s := f["samples"].([]any); s[7] = s[6] }),
		"a turned span": change(func(f map[string]any) {
			f["scaling"].(map[string]any)["seconds"] = map[string]any{"min": 5, "max": 3}
		}),
	} {
		if m, err := Decode(data, Config{}); err == nil || m != nil || errors.Is(err, ErrVersion) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(f, quick.learn(f, 3, 1)))
	f.Add(encode(f, quick.learn(f, 60, 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data, Config{Samples: 50})
		if err != nil {
			return
		}
		for n, time := 1, first(m.Time("n1", fiveNodes[1])); n < 1000; n *= 3 {
			if now, more := time(n), time(3*n); !(now >= 0) || more < now*(1-1e-9) {
				t.Fatalf("%d pages take %v s, %d take %v s", n, now, 3*n, more)
			}
		}
		again, err := Decode(encode(t, m), Config{Samples: 50})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(encode(t, m), encode(t, again)) {
			t.Fatal("read again it is another model")
		}
		m.Train(1)
	})
}

func first[T, U any](v T, _ U) T { return v }

// forms are those in which samples are written and read.
var forms = map[string]struct {
	write func(*bytes.Buffer, []Sample) error
	read  func([]byte) iter.Seq2[Sample, error]
}{
	"CSV": {
		func(b *bytes.Buffer, s []Sample) error { return WriteCSV(b, s) },
		func(data []byte) iter.Seq2[Sample, error] { return ReadCSV(bytes.NewReader(data)) },
	},
	"JSON": {
		func(b *bytes.Buffer, s []Sample) error { return WriteJSON(b, s) },
		func(data []byte) iter.Seq2[Sample, error] { return ReadJSON(bytes.NewReader(data)) },
	},
}

func collect(all iter.Seq2[Sample, error]) (samples []Sample, err error) {
	for s, err := range all {
		if err != nil {
			return samples, err
		}
		samples = append(samples, s)
	}
	return samples, nil
}

func TestSamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	want := []Sample{{Node: `a "b", c`, URLs: 1, Seconds: 1e-9}}
	for i := range 50 {
		want = append(want, quick.measure(fmt.Sprint("n", i), anyMachine(rng), rng))
	}
	for name, form := range forms {
		var b bytes.Buffer
		if err := form.write(&b, want); err != nil {
			t.Fatal(err)
		}
		if got, err := collect(form.read(b.Bytes())); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %d samples became %d, %v", name, len(want), len(got), err)
		}
		if got, err := collect(form.read(nil)); err != nil || len(got) > 0 {
			t.Errorf("%s: of nothing %d samples, %v", name, len(got), err)
		}
	}
}

func TestBadTables(t *testing.T) {
	const header = "node,cores,ghz,memory_gb,network_mbps,disk_mbps,urls,seconds\n"
	for _, c := range []struct{ form, data, says string }{
		{"CSV", "node,cores\n", "wrong number of fields"},
		{"CSV", "name,cores,ghz,memory_gb,network_mbps,disk_mbps,urls,seconds\n", "first line"},
		{"CSV", header + "a,1,2,3,4,5,6,7\na,1,2,3,4,5,6.5,7\n", "line 3: urls"},
		{"CSV", header + "a,1,2,3,4,5,6,NaN\n", "line 2: bad sample"},
		{"JSON", `{"node":"a","urls":1,"seconds":1}` + "\n{", "line 2"},
		{"JSON", `{"node":"a","urls":1,"seconds":1,"cores":-1}`, "line 1: bad sample"},
		{"JSON", strings.Repeat(" ", 1<<20), "line 1"},
	} {
		if _, err := collect(forms[c.form].read([]byte(c.data))); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %.60q: %v", c.form, c.data, err)
		}
	}
}

func FuzzCSV(f *testing.F)  { fuzz(f, "CSV") }
func FuzzJSON(f *testing.F) { fuzz(f, "JSON") }

func fuzz(f *testing.F, name string) {
	form := forms[name]
	var b bytes.Buffer
	if err := form.write(&b, quick.learn(f, 3, 1).Samples()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		samples, _ := collect(form.read(data))
		var b bytes.Buffer
		if err := form.write(&b, samples); err != nil {
			t.Fatal(err)
		}
		if again, err := collect(form.read(b.Bytes())); err != nil || !slices.Equal(again, samples) {
			t.Fatalf("%v became %v, %v", samples, again, err)
		}
	})
}
