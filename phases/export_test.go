package phases

// Withhold is what the tests of this package look at beside its public names.
var Withhold = withhold
