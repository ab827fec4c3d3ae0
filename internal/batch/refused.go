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

// Links that rules refuse where they are found are counted by rule, and their URLs are not recorded: there are many
// times more of them than pages. What a rule says of a URL follows from the collection, so that is recorded instead.

func settingsName(c *collection.Collection, date string) string {
	return path.Join(c.Directory, "state", date+".settings.json")
}

// writeSettings records the collection as the day is run.
func writeSettings(ctx context.Context, p place.Place, c *collection.Collection, date string) error {
	settings := *c
	settings.FieldRules = nil // they judge no URL, and may be long
	data, err := json.Marshal(&settings)
	if err != nil {
		return err
	}
	return place.WriteFile(ctx, p, settingsName(c, date), append(data, '\n'))
}

// ReadSettings reads the collection as it was when a day was run last. The error of a day of a version that did not
// record it is fs.ErrNotExist.
func ReadSettings(ctx context.Context, p place.Place, c *collection.Collection,
	date string) (*collection.Collection, error) {
	settings := &collection.Collection{}
	if err := ReadJSON(ctx, p, settingsName(c, date), settings); err != nil {
		return nil, err
	}
	return settings, nil
}

// JudgeLink judges a URL by the rules of a day, as a link of a page that is a seed. The error of a day whose rules are
// not known is fs.ErrNotExist.
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
		return policy.Verdict{Rule: "url", Why: "not a URL of the web"}, nil
	}
	return rules.Judge(u, policy.Link{Kind: page.Anchor, Depth: 1}), nil
}
