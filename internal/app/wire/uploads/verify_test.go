package uploads

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"testing"

	"kumo/internal/archive/away"
	"kumo/internal/archive/place"
	"kumo/internal/archive/place/file"
	"kumo/internal/base/vfs"
)

// Files that a run uploads during the verification are not reported as different; lost and changed ones are.
func TestAPlaceThatIsVerifiedWhileARunGoesOn(t *testing.T) {
	part := away.PartName("pages.jsonl", 0)
	list := func(text string) map[string]string { return map[string]string{"pages.jsonl": text} }
	for what, c := range map[string]struct {
		brought, is  map[string]string // "": missing
		named        bool              // in the manifest by now
		goesOn, fine bool
	}{
		"nothing":                   {list("one"), nil, false, false, true},
		"it has grown":              {list("one"), list("one two"), false, true, true},
		"it is longer after a run":  {list("one"), list("one two"), false, false, false},
		"it is another":             {list("one"), list("ONE two"), false, true, false},
		"it is shorter":             {list("one"), list("on"), false, true, false},
		"it is another, as is said": {list("one"), list("ONE"), true, false, true},
		"it is gone":                {map[string]string{part: "one"}, map[string]string{part: ""}, false, true, false},
		"it is whole by now": {map[string]string{part: "one"}, map[string]string{part: "", "pages.jsonl": "one"}, true, false,
			true},
	} {
		at, err := file.Open(filepath.Join(t.TempDir(), "place"), vfs.OS)
		if err != nil {
			t.Fatal(err)
		}
		write := func(m *away.Manifest, files map[string]string, named bool) {
			for name, text := range files {
				if err := at.Remove(t.Context(), name); err != nil {
					t.Fatal(err)
				}
				if text == "" {
					continue
				}
				if err := place.WriteFile(t.Context(), at, name, []byte(text)); err != nil {
					t.Fatal(err)
				}
				sum := sha256.Sum256([]byte(text))
				if named {
					m.Put(away.Entry{Name: name, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])})
				}
			}
			if err := away.WriteSmall(t.Context(), at, away.ManifestName, m.Encode()); err != nil {
				t.Fatal(err)
			}
		}
		write(away.NewManifest(), c.brought, true)
		s := &Source{place: at}
		if s.manifest, err = away.ReadManifest(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		m, err := away.ReadManifest(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		write(m, c.is, c.named)
		all, err := s.differences(t.Context(), c.goesOn)
		if err != nil || len(all) == 0 != c.fine {
			t.Errorf("%s: %+v (%v)", what, all, err)
		}
	}
}
