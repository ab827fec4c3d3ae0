package batch

import (
	"context"
	"encoding/json"
	"fmt"
	"path"

	"kumo/internal/archive/place"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/batch/collection"
	"kumo/internal/content/policy"
)

// Refused links are counted by rule, and their URLs are not recorded, as there are many times more of them than pages.
// The verdict on a URL follows from the collection's settings, which are recorded instead.

func settingsName(c *collection.Collection, date string) string {
	return path.Join(c.Directory, "state", date+".settings.json")
}

// writeSettings records the collection's settings for the day.
func writeSettings(ctx context.Context, p place.Place, c *collection.Collection, date string) error {
	settings := *c
	settings.FieldRules = nil // they judge no URLs, and may be long
	data, err := json.Marshal(&settings)
	if err != nil {
		return err
	}
	return place.WriteFile(ctx, p, settingsName(c, date), append(data, '\n'))
}

// ReadSettings reads the collection's settings in the last run of a day. If the day's version did not record them, the
// error is fs.ErrNotExist.
func ReadSettings(ctx context.Context, p place.Place, c *collection.Collection,
	date string) (*collection.Collection, error) {
	settings := &collection.Collection{}
	if err := ReadJSON(ctx, p, settingsName(c, date), settings); err != nil {
		return nil, err
	}
	return settings, nil
}

// JudgeLink judges a URL by the rules of a day, as a link on the page of a seed. If the day's rules are unknown, the
// error is fs.ErrNotExist.
func JudgeLink(ctx context.Context, p place.Place, c *collection.Collection, s *State, url string) (policy.Verdict,
	error) {
	settings, err := ReadSettings(ctx, p, c, s.Date)
	if err != nil {
		return policy.Verdict{}, err
	}
	rules, err := rulesOf(settings, reachedBySeeds(settings.Seeds, s.Moved))
	if err != nil {
		return policy.Verdict{}, fmt.Errorf("%s: %w: %w", settingsName(c, s.Date), ErrDamaged, err)
	}
	u, err := weburl.Parse(url)
	if err != nil || !u.IsHTTP() {
		return policy.Verdict{Rule: "url", Why: "not an http or https URL"}, nil
	}
	return rules.Judge(u, policy.Link{Kind: page.Anchor, Depth: 1}), nil
}
