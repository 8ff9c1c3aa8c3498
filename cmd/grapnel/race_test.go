//go:build race

package main

// raceDetector says that it multiplies memory and time.
const raceDetector = true
