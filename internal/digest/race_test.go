//go:build race

package digest_test

// raceDetector is true under go test -race.
const raceDetector = true
