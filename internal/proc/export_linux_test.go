package proc

// For the tests with real plugins.
var (
	AsUsers     = asUsers
	Race        = racer
	MakeOutside = makeOutside
	Long        = long
	Scaled      = scaled
)

// LongTests is the variable that switches the long rows on.
const LongTests = longTests

// Check fails if anything outside has changed.
var Check = (*outside).check

// Path returns where it is.
func (o *outside) Path() string { return o.path }
