// Package pluginpb is the code that "make generate" makes of plugin.proto. Only tests and test kits import it: package
// wire encodes the product's messages itself, and a test keeps this package out of every binary.
package pluginpb
