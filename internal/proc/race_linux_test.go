//go:build race

package proc_test

// raceDetector says whether the race detector is on. It reserves terabytes.
const raceDetector = true

// floodFrames bounds the frames of a flood: each costs some ten times as much.
const floodFrames = 30_000
