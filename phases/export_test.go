package phases

// What the tests of this package look at beside its public names.
var (
	InputNames = inputNames
	Withhold   = withhold
)
