//go:build !race

package proc_test

import "time"

// raceSlack is for busy machines.
const raceSlack = 300 * time.Millisecond
