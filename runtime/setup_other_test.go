//go:build !unix

package runtime_test

// program is what the test binary is when it is started as another program.
func program(string, []string) int { return 2 }
