package job

// The settings of the guard against traps: that there is none, and the patterns of URLs that are fetched all the same.
// Both may also be taken back.
const (
	NoTrapsKey     = "no-traps"
	ReleaseTrapKey = "release-trap"
)

// FieldsKey is the setting that names the rules for records. Other rules may take their place, for pages that come
// then; there is no way back to none.
const FieldsKey = "fields"

// Bound is a bound that a person gives, as a crawl's Config has it: negative where it is 0, without limit.
func Bound(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}

// NoLimit is how a depth is written that has none.
const NoLimit = "unlimited"
