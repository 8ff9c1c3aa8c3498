//go:build race

package proc_test

// raceDetector says whether the race detector is on. It reserves terabytes.
const raceDetector = true
