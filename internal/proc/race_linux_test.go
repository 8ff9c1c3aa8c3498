//go:build race

package proc_test

import "time"

// raceSlack is added to bounds of time: the race detector makes processes
// start and end late.
const raceSlack = 2 * time.Second
