package synthweb

// A Trait is something that a host is or does. Some make a host dead: such hosts come on top of Config.Hosts, have four
// pages each and lead nowhere.
type Trait uint8

// The traits.
const (
	Gzip      Trait = iota // compresses what a client accepts compressed
	Chunked                // uses chunked transfer coding
	Closing                // closes the connection after each answer
	Legacy                 // writes windows-1251, Shift_JIS or GBK
	Delay                  // asks for a Crawl-delay
	Throttle               // answers in bursts of 429 with Retry-After
	Slow                   // takes Config.Slow to answer
	Trap                   // has an endless calendar
	NoRobots               // robots.txt is missing: all is allowed
	Forbidden              // robots.txt answers 403: all is allowed
	Shut                   // dead: robots.txt forbids all
	Failing                // dead: robots.txt answers 500, which forbids all
	Refused                // dead: nothing listens
	Hanging                // dead: takes requests and never answers
	Mute                   // dead: its name does not exist
	numTraits
)

var traitNames = [numTraits]string{"gzip", "chunked", "closing", "legacy", "delay", "throttle", "slow", "trap",
	"norobots", "forbidden", "shut", "failing", "refused", "hanging", "mute"}

func (t Trait) String() string { return traitNames[t] }

func (t Trait) dead() bool { return t >= Shut }

// traits is a set of them.
type traits uint32

func (s traits) has(t Trait) bool { return s>>t&1 != 0 }

func (s *traits) put(t Trait) { *s |= 1 << t }

// sparse assigns a trait to count of n hosts, spread evenly from a start of the seed's choice.
func sparse(count, n int, start uint64, give func(i int)) {
	for j := range min(count, n) {
		give(int((start%uint64(n) + uint64(j)*uint64(n)/uint64(count)) % uint64(n)))
	}
}
