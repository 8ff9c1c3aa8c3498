//go:build race

package proc_test

import "time"

// raceSlack is added to bounds of time: the race detector makes processes
// start and end late.
const raceSlack = 2 * time.Second

// raceDetector says whether the race detector is on. It reserves terabytes.
const raceDetector = true

// floodFrames bounds the frames of a flood: each costs some ten times as much.
const floodFrames = 30_000
